"""A letter goes out if its request succeeds, and no request waits for the mail server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Response, request
from sqlalchemy import event, select

from examples.guestbook.models import Account
from mail.sinks import HANG, Odd, Sink, odd
from rota import State
from working import eventually

from .conftest import ADA, MakeSite, Site, shown


@pytest.mark.parametrize("times", [1, 2], ids=["once", "and its error page fails too"])
def test_a_request_that_fails_keeps_nothing_and_sends_nothing(any_site: Site, times: int) -> None:
    failures: list[RuntimeError] = []

    @any_site.web.after_request
    def fail(response: Response) -> Response:
        if request.method == "POST" and failures:
            raise failures.pop()
        return response

    any_site.web.logger.disabled = True
    visitor = any_site.visitor()
    failures += [RuntimeError("when all was done")] * times
    assert visitor.send("/sign-up", **ADA).status_code == 500
    assert failures == []
    assert any_site.letters() == []
    assert "Look into your mail" in shown(visitor.send("/sign-up", **ADA))
    assert [letter["Subject"] for letter in any_site.letters()] == ["Confirm your address"], "the account had been kept"


def test_a_request_that_cannot_be_committed_says_nothing_of_success(any_site: Site) -> None:
    ada = any_site.ada()
    ada.see("/")
    commits: list[str] = []

    def fail(_connection: object) -> None:
        commits.append(request.method)
        if commits == ["GET", "POST", "POST"]:  # the first of these counts the use of the form
            raise RuntimeError("the disk is full")

    any_site.web.logger.disabled = True
    event.listen(any_site.book.database.reading().get_bind(), "commit", fail)
    answer = ada.send("/", text="Lost")
    page = ada.see("/")
    assert commits == ["GET", "POST", "POST", "GET"]
    assert (answer.status_code, "is in the guestbook" in answer.text) == (500, False)
    assert ("is in the guestbook" in page, "Lost" in page, "Write in it" in page) == (False, False, True)


def test_a_letter_that_cannot_be_sent_is_refused_and_so_is_what_asked_for_it(any_site: Site) -> None:
    """Its address is right for the form, and no header could hold it."""
    visitor = any_site.visitor()
    for path, fields in (("/sign-up", ADA), ("/resets", {})):
        answer = visitor.send(path, **fields | {"email": "=?utf-8?q?x?=@example.org"})
        assert (answer.status_code, "No letter can go there" in shown(answer)) == (422, True)
    assert any_site.letters() == []
    with any_site.book.database.reading() as session:
        assert session.scalars(select(Account)).all() == []


def test_a_letter_is_a_row_of_the_request_and_is_gone_once_it_was_sent(any_site: Site) -> None:
    any_site.visitor().send("/sign-up", **ADA)
    [job] = any_site.book.jobs.jobs()
    assert (job.task, job.queue, job.status) == ("deliver", "mail", State.QUEUED)
    assert len(any_site.letters()) == 1
    assert any_site.book.jobs.jobs() == []


@pytest.fixture
def hanging() -> Iterator[Odd]:
    with odd({"greeting": [HANG]}) as server:
        yield server


def test_sign_up_answers_while_the_mail_server_hangs(make_site: MakeSite, hanging: Odd) -> None:
    site = make_site(mail=hanging.url)
    with site.book.jobs.beside(queues=["mail"], concurrency=1, shutdown_timeout=0.1):
        visitor = site.visitor()
        visitor.send("/sign-up", **ADA)
        eventually(lambda: hanging.open == 1)
        assert "Look into your mail" in shown(visitor.send("/sign-up", **ADA | {"email": "bo@example.org"}))
        assert (hanging.open, hanging.letters) == (1, []), "the first letter is still on its way"


def test_letters_that_no_worker_sent_go_out_when_the_guestbook_is_there_again(
    make_site: MakeSite, sink: Sink, tmp_path: Path
) -> None:
    before = make_site()
    before.visitor().send("/sign-up", **ADA)
    before.book.close()
    assert sink.letters == []
    assert [letter["To"] for letter in make_site().letters()] == [ADA["email"]]


def test_letters_arrive_in_the_order_of_their_requests(site: Site, sink: Sink) -> None:
    people = [f"person{number}@example.org" for number in range(8)]
    with site.book.jobs.beside(queues=["mail"], concurrency=1):
        for each in people:
            site.visitor().send("/sign-up", **ADA | {"email": each})
        eventually(lambda: any(letter.rcpt_tos == [people[-1]] for letter in sink.letters))
        assert [letter.rcpt_tos for letter in sink.letters] == [[each] for each in people]


def test_of_two_who_sign_up_with_an_address_at_once_one_has_the_account(any_site: Site) -> None:
    visitors = [any_site.visitor() for _ in range(4)]
    pages = [visitor.send("/sign-in", email="x@example.org", password="x") for visitor in visitors]
    assert {page.status_code for page in pages} == {422}
    _at_once(*[lambda visitor=visitor: visitor.send("/sign-up", **ADA) for visitor in visitors])  # type: ignore[misc]
    subjects = [letter["Subject"] for letter in any_site.letters()]
    assert sorted(subjects) == ["Confirm your address"] + 3 * ["You have an account already"]


def test_wrong_passwords_tried_at_once_are_all_counted_and_lock_once(any_site: Site) -> None:
    any_site.ada()
    visitors = [any_site.visitor() for _ in range(8)]
    send = [
        lambda visitor=visitor: visitor.send("/sign-in", email=ADA["email"], password="a wrong one")  # type: ignore[misc]
        for visitor in visitors
    ]
    _at_once(*send)
    assert [letter["Subject"] for letter in any_site.letters()] == ["Confirm your address", "Your account is locked"]


def _at_once(*calls: object) -> None:
    start = threading.Barrier(len(calls))
    failed: list[BaseException] = []

    def run(call: object) -> None:
        assert callable(call)
        start.wait(10)
        try:
            assert call().status_code < 500
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
