"""How often forms may be sent. It is counted in the database, so it holds over all processes that serve the guestbook."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from sqlalchemy import delete, text
from sqlalchemy.orm import Session

from .models import FormUse

STRETCH = 600
"""Seconds over which uses are counted."""
LETTERS = 5
"""How many letters the forms that anybody may send will have sent to one mail address in that time."""

# One statement, so that of two who use a form at once each hears another number.
_count = text(
    """
    insert into form_uses (form, who, since, uses) values (:form, :who, :since, 1)
    on conflict (form, who, since) do update set uses = form_uses.uses + 1
    returning uses
    """
)


def uses(session: Session, form: str, who: str, now: int) -> int:
    """How often this form was used by them in this stretch of time, this time included."""
    since = now - now % STRETCH
    number: int = session.execute(_count, {"form": form, "who": who, "since": since}).scalar_one()
    if number == 1:
        session.execute(delete(FormUse).where(FormUse.since < since))
    return number


def until_next(now: int) -> int:
    """The seconds until counting begins anew."""
    return STRETCH - now % STRETCH


def neighbourhood(address: str | None) -> str:
    """A network address as it is counted: of IPv6 the /64, for whoever has one has all of it."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)
