"""What may happen to an account. Each function is part of the session's transaction, and so are the letters that it queues."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from . import passwords
from .letters import Letters
from .links import Links, bound_to
from .models import Account

TRIES = 5
"""The wrong passwords in a row that lock an account."""
REFUSAL = (
    "That address and that password do not belong together, or the account is locked. "
    f"After {TRIES} wrong passwords its owner gets a letter with a link that unlocks it."
)
"""The same whatever the reason is, so that nobody learns who has an account."""


def sign_up(session: Session, letters: Letters, *, name: str, email: str, digest: str) -> None:
    """Make an account and queue the letter that asks to confirm it.

    Where the address has one already, that is left as it is, and its owner is told: whoever asked sees no difference.
    """
    account = Account(name=name, email=email, address=email.lower(), password=digest, wrong_passwords=0)
    try:
        with session.begin_nested():
            session.add(account)
    except IntegrityError:
        letters.already(session, _of_address(session, email))
    else:
        letters.confirm(session, account)


@dataclass(frozen=True)
class Check:
    """Whether a password is right, and for which digest."""

    right: bool
    digest: str | None


def check(session: Session, email: str, password: str) -> Check:
    """Compare the password with that of the account, which takes as long where there is none.

    It takes a while, so it has no part in the transaction that acts on it, for which others would wait.
    """
    digest = session.scalar(select(Account.password).where(Account.address == email.lower()))
    session.rollback()
    right = passwords.is_right(password, digest or passwords.NOBODYS)
    return Check(right and digest is not None, digest)


def sign_in(session: Session, letters: Letters, *, email: str, checked: Check, now: int) -> Account | None:
    """The account, if the password is its own and it is not locked.

    Wrong passwords are counted, however many are tried at once; the last of them locks the account and queues a letter.
    That letter is queued each time and taken back, or the time that it takes would tell who has an account.
    """
    account = session.scalar(select(Account).where(Account.address == email.lower()).with_for_update(of=Account))
    tried = account if account and account.locked_at is None and account.password == checked.digest else None
    if tried and checked.right:
        tried.wrong_passwords = 0
        return tried
    if tried:
        tried.wrong_passwords += 1
        tried.locked_at = now if tried.wrong_passwords >= TRIES else None
    with session.begin_nested() as savepoint:
        letters.unlock(session, account or Account(id=0, email=email))
        if tried is None or tried.locked_at is None:
            savepoint.rollback()
    return None


def forget(session: Session, letters: Letters, *, email: str) -> None:
    """Queue a letter with a link to choose another password, if the address has an account.

    Where it has none the same is done and taken back, so that it takes as long.
    """
    account = session.scalar(select(Account).where(Account.address == email.lower()))
    with session.begin_nested() as savepoint:
        letters.reset(session, account or Account(id=0, email=email, password=passwords.NOBODYS))
        if account is None:
            savepoint.rollback()


def reset(session: Session, letters: Letters, account: Account, *, digest: str, now: int) -> None:
    """Give the account another password, which ends its other sessions, its lock and the links to reset it.

    Whoever comes by such a link reads the account's mail, so the address is confirmed as well.
    """
    account.password = digest
    account.confirmed_at = account.confirmed_at or now
    unlock(account)
    letters.changed(session, account)


def of_token(session: Session, links: Links, purpose: str, token: str) -> Account | None:
    """The account that a link's token is for, if what the link is bound to is still so."""
    if (told := links.account(purpose, token)) is None:
        return None
    account = session.get(Account, told[0], with_for_update=True)
    if account is None:
        return None
    return account if hmac.compare_digest(told[1], links.fingerprint(bound_to(account, purpose))) else None


def confirm(account: Account, now: int) -> None:
    account.confirmed_at = account.confirmed_at or now


def unlock(account: Account) -> None:
    account.locked_at = None
    account.wrong_passwords = 0


def _of_address(session: Session, email: str) -> Account:
    return session.scalars(select(Account).where(Account.address == email.lower())).one()
