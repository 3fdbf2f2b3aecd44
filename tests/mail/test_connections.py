"""Connections are used again, are no more than they may be, and are closed when nobody needs them."""

from __future__ import annotations

import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mail.conftest import MakeMailer, letter
from mail.sinks import DROP, HANG, odd
from rota import Rota, State
from rota.mail import DeliveryPutOff
from working import eventually, working


def test_one_connection_serves_letter_after_letter(mailer: MakeMailer) -> None:
    with odd() as server:
        mine = mailer(server.url)
        for _ in range(5):
            mine.deliver(letter())
        assert (len(server.letters), server.connections) == (5, 1)
        mine.close()
        eventually(lambda: server.open == 0)
        assert server.commands[-1] == "QUIT"
        mine.deliver(letter())
        assert server.connections == 2


def test_threads_share_no_more_than_there_may_be(mailer: MakeMailer) -> None:
    with odd(most=2) as server, ThreadPoolExecutor(8) as threads:
        mine = mailer(server.url, connections=2)
        list(threads.map(lambda _: mine.deliver(letter()), range(40)))
        assert len(server.letters) == 40
        assert (server.turned_away, server.highest <= 2) == (0, True)


def test_an_idle_connection_is_closed(mailer: MakeMailer) -> None:
    with odd() as server:
        mailer(server.url, idle=0.05).deliver(letter())
        eventually(lambda: server.open == 0)
        assert server.commands[-1] == "QUIT"
        mailer(server.url, idle=0, name="other").deliver(letter())
        eventually(lambda: server.open == 0)


def test_no_thread_to_close_idle_connections_fails_no_letter(mailer: MakeMailer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a limit of processes, or while a program ends: the letter has arrived, and to say it failed would send another."""

    def none_left(_timer: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Timer, "start", none_left)
    with odd() as server:
        assert mailer(server.url).deliver(letter()).accepted == ("ada@example.org",)
        eventually(lambda: server.open == 0)


def test_a_connection_that_went_while_it_lay_idle_costs_no_attempt(mailer: MakeMailer) -> None:
    with odd({"MAIL": [None, DROP, None, "421 enough letters", None]}) as server:
        mine = mailer(server.url)
        for _ in range(3):
            mine.deliver(letter())
        assert (len(server.letters), server.connections) == (3, 3)


def test_a_connection_that_lay_idle_is_asked_before_it_is_used(mailer: MakeMailer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.mail.connections._FRESH", 0.0)
    with odd({"NOOP": [None, HANG]}) as server:
        mine = mailer(server.url, timeout=0.2)
        for _ in range(3):
            mine.deliver(letter())
        assert (len(server.letters), server.connections) == (3, 2)
        assert server.commands.count("NOOP") == 2


def test_a_letter_that_was_sent_is_not_sent_again_on_another_connection(mailer: MakeMailer) -> None:
    with odd({"content": [None, DROP]}) as server:
        mine = mailer(server.url)
        mine.deliver(letter())
        with pytest.raises(DeliveryPutOff, match="may have been delivered") as late:
            mine.deliver(letter())
        assert late.value.ambiguous
        assert server.connections == 1


def test_who_finds_no_connection_free_comes_later(mailer: MakeMailer) -> None:
    with odd(hold=threading.Event()) as server, ThreadPoolExecutor(1) as other:
        mine = mailer(server.url, connections=1)
        first = other.submit(mine.deliver, letter())
        assert server.holding.acquire(timeout=10)
        mine._transport._whole = 0.1  # type: ignore[attr-defined]  # from now on
        with pytest.raises(DeliveryPutOff, match="none of 1 connections was free") as late:
            mine.deliver(letter())
        assert late.value.busy
        assert server.hold is not None
        server.hold.set()
        assert first.result().accepted


def test_a_fork_has_connections_of_its_own(mailer: MakeMailer) -> None:
    with odd() as server:
        mine = mailer(server.url)
        mine.deliver(letter())
        child = os.fork()
        if not child:
            try:
                mine.deliver(letter("child@example.org"))
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        mine.deliver(letter("parent@example.org"))
        assert [taken.recipients[0] for taken in server.letters[1:]] == ["child@example.org", "parent@example.org"]
        assert server.connections == 2


def test_a_crowd_that_the_server_does_not_admit_arrives_all_the_same(shared_url: str, mailer: MakeMailer) -> None:
    """It takes two connections, and the two workers have eight slots; 421 uses no attempt."""
    with Rota(shared_url) as app, odd(most=2) as server:
        mine = mailer(server.url, app=app, connections=8, idle=0, max_attempts=1)
        mine.task.enqueue_many([(mine.letter(letter(f"{number}@example.org")),) for number in range(60)])
        with working(app, concurrency=4), working(app, concurrency=4):
            eventually(lambda: _hurried(app) == 60, within=60)
        assert Counter(taken.recipients[0] for taken in server.letters) == {f"{n}@example.org": 1 for n in range(60)}
        assert len({taken.message_id for taken in server.letters}) == 60
        assert server.highest <= 2


def test_a_limit_keeps_all_workers_together_within_what_the_server_admits(tmp_path: Path, mailer: MakeMailer) -> None:
    with Rota(f"sqlite:///{tmp_path / 'jobs.db'}") as app, odd(most=2) as server:
        mine = mailer(server.url, app=app, concurrency=2, idle=0)
        mine.task.enqueue_many([(mine.letter(letter(f"{number}@example.org")),) for number in range(40)])
        with working(app, concurrency=4), working(app, concurrency=4):
            eventually(lambda: app.stats().states[State.SUCCEEDED] == 40, within=60)
        assert len(server.letters) == 40
        assert server.highest <= 2


def test_servers_that_hang_keep_other_work_waiting_no_longer_than_their_time(app: Rota, mailer: MakeMailer) -> None:
    @app.task(name="ordinary")
    def ordinary() -> None: ...

    with odd({"greeting": HANG}) as server:
        mine = mailer(server.url, timeout=0.2)
        letters = [mine.deliver_later(letter()) for _ in range(8)]
        last = ordinary.enqueue()
        with working(app, concurrency=4):
            last.wait(timeout=30)
            eventually(lambda: all(job.refresh().attempt == 1 and job.reason for job in letters))
        assert all("did not answer in 0.2 s (the greeting)" in (job.reason or "") for job in letters)


def _hurried(app: Rota) -> int:
    """How many have arrived; those that wait for the server to have time are made to come at once."""
    for job in app.jobs(status="scheduled"):
        job.edit(delay=0)
    return app.stats().states[State.SUCCEEDED]
