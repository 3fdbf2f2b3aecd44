"""Servers that refuse, put off, hang, drip or hang up, at each step of a delivery."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from time import monotonic

import pytest

from mail.conftest import MakeMailer, letter
from mail.sinks import DRIP, DROP, HANG, odd
from rota import Rota, State
from rota.mail import Delivery, DeliveryFailed, DeliveryPutOff, NotDelivered

STEPS = ["greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "content"]
WITH_TLS = ("STARTTLS",)
WITH_AUTH = ("AUTH PLAIN",)


def url_to(port: int, step: str) -> str:
    match step:
        case "STARTTLS":
            return f"smtp://127.0.0.1:{port}?tls=starttls"
        case "AUTH":
            return f"smtp://shop:sesame@127.0.0.1:{port}"
    return f"smtp://127.0.0.1:{port}"


@pytest.mark.parametrize("step", STEPS)
def test_5xx_fails_at_once_with_the_servers_words(app: Rota, mailer: MakeMailer, step: str) -> None:
    with odd({step: "554 5.7.1 not you", "HELO": "554 5.7.1 not you"}, extensions=WITH_TLS + WITH_AUTH) as server:
        job = mailer(url_to(server.port, step)).deliver_later(letter())
        [event] = app.drain()
    assert job.refresh().status is State.FAILED
    assert job.attempt == 1
    assert "554 5.7.1 not you" in str(event)
    assert "failed deliver on attempt 1: " in str(event)


@pytest.mark.parametrize("step", STEPS)
def test_4xx_is_tried_again_by_the_policy(app: Rota, mailer: MakeMailer, step: str) -> None:
    with odd({step: ["451 4.3.0 not now"]}, extensions=WITH_AUTH if step != "STARTTLS" else WITH_TLS) as server:
        mine = mailer(url_to(server.port, step), max_attempts=2)
        job = mine.deliver_later(letter())
        assert "failed deliver on attempt 1: " in str(app.run_one())
        assert job.refresh().status is State.SCHEDULED
        assert "451 4.3.0 not now" in (job.reason or "")
        if step == "STARTTLS":  # this server has no TLS to go on with
            return
        job.edit(delay=0)
        assert str(app.run_one()) == "ran deliver"
        assert len(server.letters) == 1


@pytest.mark.parametrize("step", STEPS)
def test_421_counts_as_later_and_not_as_an_attempt(app: Rota, mailer: MakeMailer, step: str) -> None:
    extensions = WITH_AUTH if step != "STARTTLS" else WITH_TLS
    with odd({step: ["421 4.7.0 too many"]}, extensions=extensions) as server:
        job = mailer(url_to(server.port, step), max_attempts=1).deliver_later(letter())
        assert str(app.run_one()).startswith("snoozed deliver for ")
        assert (job.refresh().status, job.attempt) == (State.SCHEDULED, 0)
        if step == "STARTTLS":
            return
        job.edit(delay=0)
        assert str(app.run_one()) == "ran deliver"
        assert (len(server.letters), job.refresh().attempt) == (1, 1)


@pytest.mark.parametrize("what", [HANG, DROP, DRIP])
@pytest.mark.parametrize("step", STEPS)
def test_a_server_that_falls_silent_is_left_in_time_and_tried_again(
    app: Rota, mailer: MakeMailer, step: str, what: str
) -> None:
    extensions = WITH_AUTH if step != "STARTTLS" else WITH_TLS
    with odd({step: [what]}, extensions=extensions) as server:
        mine = mailer(url_to(server.port, step), timeout=0.15, total_timeout=0.3)
        begun = monotonic()
        with pytest.raises(DeliveryPutOff, match=r"did not answer in 0\.\d+ s|took too long|was lost") as late:
            mine.deliver(letter())
        assert monotonic() - begun < 10.0
        assert not late.value.busy
        # Only of a letter that the server has as a whole is it unknown what became of it.
        assert late.value.ambiguous == (step == "content")
        assert ("may have been delivered" in str(late.value)) == (step == "content")


def test_a_hang_in_tls_ends_in_time(mailer: MakeMailer) -> None:
    with odd({"STARTTLS": "220 go"}, extensions=WITH_TLS) as server, pytest.raises(DeliveryPutOff, match="STARTTLS"):
        mailer(url_to(server.port, "STARTTLS"), timeout=0.3).deliver(letter())


def test_a_server_that_reads_no_more_is_left_in_time(mailer: MakeMailer) -> None:
    """It says that it takes the letter and then reads nothing of it, as one stuck on its disk."""
    with odd(reads_letters=False) as server:
        mine = mailer(server.url, timeout=0.3, max_size=100_000_000)
        with pytest.raises(DeliveryPutOff, match="did not answer"):
            mine.deliver(letter(attachments=[("a.bin", bytes(6_000_000))]))


def test_what_a_server_says_before_it_hangs_up_in_the_middle_of_a_letter_is_heard(mailer: MakeMailer) -> None:
    hasty = odd({"DATA": "354 go on\r\n552 too long for me"}, hangs_up_after_data=True)
    with hasty as server, pytest.raises(DeliveryFailed, match="552 too long for me"):
        mailer(server.url).deliver(letter(attachments=[("a.bin", bytes(6_000_000))]))


def test_the_answer_to_the_letter_may_take_longer_than_a_step(mailer: MakeMailer) -> None:
    """Giving up on it early would send the letter twice."""
    with odd({"content": [DRIP]}) as server:
        begun = monotonic()
        with pytest.raises(DeliveryPutOff, match=r"took too long|did not answer"):
            mailer(server.url, timeout=0.1, total_timeout=0.5).deliver(letter())
        assert monotonic() - begun > 0.45


def test_many_addresses_that_do_not_answer_have_the_time_of_one_step(
    mailer: MakeMailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a large provider behind a firewall, whose last address is the one that is open."""
    with odd() as server, socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as crowd:
        for _ in range(2):  # who wait to be let in, so that nobody else may
            waiting = crowd.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", each) for each in [full.getsockname()] * 20]
        found.append((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", server.port)))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
        begun = monotonic()
        mailer("smtp://smtp.example.com?tls=none", timeout=1.0).deliver(letter())
        assert monotonic() - begun < 10.0
        assert len(server.letters) == 1


def test_a_port_where_nobody_listens_and_a_name_that_is_none(mailer: MakeMailer) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(DeliveryPutOff, match=r"refused \(the connection\)"):
            mailer(f"smtp://127.0.0.1:{bound.getsockname()[1]}").deliver(letter())
    with pytest.raises(DeliveryPutOff, match="was lost"):
        mailer("smtp://nowhere.invalid", name="other").deliver(letter())


@pytest.mark.parametrize("answer", ["hello", "250-and\r\n250-so on\r\n" * 5_000 + "250 on", "", "999 what", "150 what"])
def test_nonsense_is_put_off(mailer: MakeMailer, answer: str) -> None:
    with odd({"MAIL": answer}) as server:
        with pytest.raises(NotDelivered):
            mailer(server.url, timeout=0.5).deliver(letter())
        assert server.letters == []


# -- some of several ----------------------------------------------------------------------------

THREE = ["ada@example.org", "bo@example.org", "cy@example.org"]


def test_what_became_of_each_recipient_is_told(mailer: MakeMailer) -> None:
    with odd(recipients={"bo@example.org": "550 5.1.1 no Bo", "cy@example.org": "450 4.2.1 later"}) as server:
        delivery = mailer(server.url).deliver(letter(THREE))
    assert delivery.accepted == ("ada@example.org",)
    assert delivery.refused == {"bo@example.org": "550 5.1.1 no Bo"}
    assert delivery.put_off == {"cy@example.org": "450 4.2.1 later"}
    assert str(delivery) == (
        "accepted: ada@example.org; refused: bo@example.org (550 5.1.1 no Bo); put off: cy@example.org (450 4.2.1 later)"
    )


def test_what_is_said_of_many_is_said_once() -> None:
    put_off = {f"{number}@example.org": "452 too many" for number in range(3)} | {"bo@example.org": "450 later"}
    said = "put off: 0@example.org, 1@example.org, 2@example.org (452 too many); put off: bo@example.org (450 later)"
    assert str(Delivery(message_id="<1@example.org>", put_off=put_off)) == said


def test_only_those_who_were_put_off_are_tried_again(app: Rota, mailer: MakeMailer) -> None:
    with odd(recipients={"bo@example.org": "550 5.1.1 no Bo", "cy@example.org": ["450 4.2.1 later"]}) as server:
        job = mailer(server.url).deliver_later(letter(THREE), queue="letters", priority=7, max_attempts=3)
        # The second of them is Bo's own job, which fails and stays to be seen.
        assert [str(event) for event in app.drain()] == [
            "ran deliver",
            "failed deliver on attempt 1: refused: bo@example.org (550 5.1.1 no Bo)",
        ]
        assert job.result().accepted == ("ada@example.org",)
        [cy] = app.jobs(status="scheduled")
        assert (cy.queue, cy.priority, cy.max_attempts) == ("letters", 7, 3)
        cy.edit(delay=0)
        assert [str(event) for event in app.drain()] == ["ran deliver"]
    assert [taken.recipients for taken in server.letters] == [("ada@example.org",), ("cy@example.org",)]
    assert len({taken.content for taken in server.letters}) == 1
    [failed] = app.jobs(status="failed")
    assert failed.reason == "refused: bo@example.org (550 5.1.1 no Bo)"


def test_who_is_put_off_gets_each_of_two_letters_that_share_a_message_id(app: Rota, mailer: MakeMailer) -> None:
    with odd(recipients={"bo@example.org": ["450 later", "450 later"]}) as server:
        mine = mailer(server.url)
        for subject in ("One", "Two"):
            mine.deliver_later(letter(THREE[:2], subject=subject, headers={"Message-ID": "<news@example.org>"}))
        app.drain()
        for job in app.jobs(status="scheduled"):
            job.edit(delay=0)
        app.drain()
    assert [taken.recipients for taken in server.letters] == [("ada@example.org",)] * 2 + [("bo@example.org",)] * 2
    assert len({taken.content for taken in server.letters}) == 2


def test_nobody_accepted_and_not_for_one_reason(app: Rota, mailer: MakeMailer) -> None:
    with odd(recipients={"ada@example.org": "550 no Ada", "bo@example.org": ["451 later"]}) as server:
        mine = mailer(server.url)
        with pytest.raises(DeliveryPutOff, match=r"refused: ada.*put off: bo") as late:
            mine.deliver(letter(THREE[:2]))
        assert late.value.delivery is not None
        assert late.value.delivery.refused == {"ada@example.org": "550 no Ada"}
        server.recipients["bo@example.org"] = ["451 later"]
        mine.deliver_later(letter(THREE[:2]))
        app.drain()
        [bo] = app.jobs(status="scheduled")
        bo.edit(delay=0)
        app.drain()
    assert [taken.recipients for taken in server.letters] == [("bo@example.org",)]
    assert [job.reason for job in app.jobs(status="failed")] == ["refused: ada@example.org (550 no Ada)"]


@pytest.mark.parametrize("data", ["554 no", "451 later"])
def test_what_is_said_to_data_concerns_those_alone_who_were_accepted_before(mailer: MakeMailer, data: str) -> None:
    answers = {"bo@example.org": "550 5.1.1 no Bo", "cy@example.org": "450 4.2.1 later"}
    with odd({"DATA": data}, recipients=answers) as server, pytest.raises(NotDelivered) as failed:
        mailer(server.url).deliver(letter(THREE))
    delivery = failed.value.delivery
    assert delivery is not None
    assert delivery.refused.get("bo@example.org") == "550 5.1.1 no Bo"
    assert delivery.put_off.get("cy@example.org") == "450 4.2.1 later"
    assert (delivery.refused | delivery.put_off)["ada@example.org"] == data


def test_one_odd_letter_keeps_no_other_from_going_out(app: Rota, mailer: MakeMailer) -> None:
    """The fifth of ten meets what nobody foresaw."""
    with odd(recipients={"4@example.org": DROP}) as server:
        mine = mailer(server.url, max_attempts=2)
        jobs = [mine.deliver_later(letter(f"{number}@example.org")) for number in range(10)]
        jobs.insert(4, mine.deliver_later(mine.letter(letter("x@example.org"))))
        broken = app.named("deliver").enqueue({"sender": "x", "recipients": 5})
        app.drain()
        assert sorted(taken.recipients[0] for taken in server.letters) == [
            *(f"{number}@example.org" for number in range(10) if number != 4),
            "x@example.org",
        ]
        assert jobs[5].refresh().status is State.SCHEDULED
        jobs[5].edit(delay=0)
        app.drain()
        assert jobs[5].refresh().status is State.FAILED
        assert broken.refresh().status is not State.SUCCEEDED


def test_a_refusal_stands_though_the_connection_is_lost_after_it(mailer: MakeMailer) -> None:
    with odd({"RSET": DROP, "RCPT": "550 no"}) as server, pytest.raises(DeliveryFailed, match="550 no"):
        mailer(server.url).deliver(letter())
