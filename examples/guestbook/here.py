"""What pages ask of the request that they answer: the guestbook, the database session, and who is signed in."""

from __future__ import annotations

from typing import cast

from flask import Flask, Response, current_app, g, request
from flask import session as cookie
from sqlalchemy.orm import Session
from werkzeug.exceptions import TooManyRequests

from . import pacing
from .guestbook import Guestbook
from .models import Account


def guestbook() -> Guestbook:
    return cast("Guestbook", current_app.extensions["guestbook"])


def database() -> Session:
    """The request's session. All that a request writes is one transaction, and so are the letters that it queues."""
    if "database" not in g:
        reads = request.method in ("GET", "HEAD", "OPTIONS")
        g.database = guestbook().database.reading() if reads else guestbook().database.writing()
    return cast("Session", g.database)


def one_transaction_a_request(web: Flask) -> None:
    """Commit what a request did before it is answered, or roll all of it back if it fails."""

    @web.after_request
    def commit(response: Response) -> Response:
        if "database" in g:
            if response.status_code < 500:
                g.database.commit()
            else:
                g.database.rollback()
        return response

    @web.teardown_request
    def close(_error: BaseException | None) -> None:
        if "database" in g:
            g.pop("database").close()


def visitor() -> Account | None:
    """Who is signed in, if anybody. Their cookie ends when they sign out, and with the password that they signed in with."""
    if "visitor" not in g:
        account = database().get(Account, cookie["account"]) if "account" in cookie else None
        known = account is not None and _proof(account) == cookie.get("proof")
        g.visitor = account if known else None
    return cast("Account | None", g.visitor)


def welcome(account: Account) -> None:
    """Sign them in: with a new cookie, for somebody else may have given them the old one."""
    cookie.clear()
    cookie.permanent = True
    cookie["account"] = account.id
    cookie["proof"] = _proof(account)


def see_out() -> None:
    """Sign them out, on all their devices."""
    if (account := visitor()) is not None:
        account.signed_out += 1
    cookie.clear()


def _proof(account: Account) -> str:
    return guestbook().links.fingerprint(f"{account.password} {account.signed_out}")


def take_back_cookie() -> None:
    """Leave the browser with the cookie that it sent: what the request would have said in it did not come about."""
    sent = current_app.session_interface.open_session(current_app._get_current_object(), request)  # type: ignore[attr-defined]
    cookie.clear()
    cookie.update(sent or {})


def paced(form: str, addressee: str | None = None) -> None:
    """Count this use of a form, and answer 429 where it is one too many.

    It is a transaction of its own: it counts although the request may fail, and nobody waits until that is over. Where a
    form sends letters, they are counted by their addressee as well, whether or not there is an account.
    """
    assert "database" not in g, "on SQLite the request's own transaction would keep this one waiting"
    book, now = guestbook(), guestbook().now()
    counted = [(form, pacing.neighbourhood(request.remote_addr), book.settings.form_limit)]
    if addressee is not None:
        counted.append((f"{form} to", addressee.lower(), pacing.LETTERS))
    with book.database.writing() as session, session.begin():
        over = [most for name, who, most in counted if pacing.uses(session, name, book.links.fingerprint(who), now) > most]
    if over:
        raise TooManyRequests(retry_after=pacing.until_next(now))


def noted(form: str, who: str) -> None:
    """Write down, as a part of the request's transaction, that a form was used.

    Whatever else the request does, there is something to commit: a commit takes longer than none, and would tell who has an
    account.
    """
    pacing.uses(database(), form, guestbook().links.fingerprint(who.lower()), guestbook().now())
