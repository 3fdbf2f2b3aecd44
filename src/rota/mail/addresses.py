"""Addresses: which are taken, and how they stand in an envelope and in a header."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from email.errors import InvalidHeaderDefect
from email.headerregistry import Address, AddressHeader, Group

from msgspec import Struct

from rota.codec.wire import brief
from rota.errors import DriverMissing
from rota.mail.errors import MessageRefused
from rota.mail.words import encoded

_SPECIALS = frozenset('()<>[]:;@\\,."')


class Mailbox(Struct, frozen=True):
    """An address as it stands in an envelope, its domain in ASCII, and the name that goes with it."""

    address: str
    name: str = ""

    @property
    def utf8(self) -> bool:
        """Whether only servers with SMTPUTF8 know what to do with it."""
        return not self.address.isascii()


def mailbox(text: str, name: str = "", where: str = "address") -> Mailbox:
    """The mailbox of an address alone. Raises `MessageRefused` for what is none, naming `where` it stands.

    >>> mailbox("ada@bücher.example").address
    'ada@xn--bcher-kva.example'
    """
    try:
        return Mailbox(_checked(text), name)
    except DriverMissing:  # which is a ValueError too, and says nothing of the address
        raise
    except ValueError as error:
        raise MessageRefused(f"{where}: {brief(text)} is no address: {_sentence(error)}") from None


def mailboxes(header: object, where: str) -> list[Mailbox]:
    """Every mailbox of an address header, those in groups included. Raises `MessageRefused`."""
    return [_of(address, where) for group in groups(header, where) for address in group.addresses]


def groups(header: object, where: str) -> tuple[Group, ...]:
    """What an address header is made of; an address in no group is a group without a name."""
    if not isinstance(header, AddressHeader):
        raise MessageRefused(f"{where}: it was not made as an address header: use an EmailMessage with its usual policy")
    # Its parser makes something of anything, and says beside it what it passed over: the second of two without a comma.
    wrong = [each for each in header.defects if isinstance(each, InvalidHeaderDefect)]  # type: ignore[attr-defined]
    if wrong:
        for group in header.groups:
            for address in group.addresses:
                _of(address, where)  # which may have better words for it
        raise MessageRefused(f"{where}: {brief(str(header))} is no address or list of them: {wrong[0]}")
    try:
        "".join(name or "" for group in header.groups for name in _names(group)).encode()
    except UnicodeEncodeError as error:  # the text of the header has another character in its place
        raise MessageRefused(f"{where}: a name has a lone surrogate, as bytes have that were not decoded, in it") from error
    return tuple(header.groups)


def _names(group: Group) -> Iterator[str | None]:
    yield group.display_name
    for address in group.addresses:
        yield address.display_name


def written(name: str, header: object) -> tuple[str, bool]:
    """An address header as it goes over the wire, folded between addresses, and whether it takes SMTPUTF8."""
    parts: list[str] = []
    utf8 = False
    for group in groups(header, name):
        found = [_of(address, name) for address in group.addresses]
        utf8 = utf8 or any(each.utf8 for each in found)
        shown = [_shown(each) for each in found]
        parts += shown if group.display_name is None else [f"{_phrase(group.display_name)}: {_joined(shown)};"]
    return f"{name}: {_joined(parts)}", utf8


def shown(name: str, address: str) -> str:
    """A mailbox as one writes it into a header that is yet to be parsed."""
    return f"{_quoted(name)} <{address}>" if name else address


def _of(address: Address, where: str) -> Mailbox:
    return mailbox(address.addr_spec, address.display_name, where)


def _joined(parts: Iterable[str]) -> str:
    return ",\n ".join(parts)


def _shown(box: Mailbox) -> str:
    return f"{_phrase(box.name)} <{box.address}>" if box.name else box.address


def _phrase(name: str) -> str:
    """A display name as it may stand before an address, whatever is in it."""
    if not name.isascii() or "=?" in name or len(name) > 200:
        return encoded(name)
    return _quoted(name) if _SPECIALS.intersection(name) or name != " ".join(name.split()) else name


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _checked(text: str) -> str:
    """The address with its domain in ASCII. Raises `ValueError` in words."""
    try:
        from email_validator import SPECIAL_USE_DOMAIN_NAMES, validate_email
    except ModuleNotFoundError as error:
        raise DriverMissing("mail needs email-validator: pip install 'rota[mail]'") from error

    def check(text: str) -> str:
        found = validate_email(
            text, check_deliverability=False, allow_quoted_local=True, allow_domain_literal=True, globally_deliverable=False
        )
        local = found.local_part
        return f"{local}@{found.ascii_domain}"

    domain = text.rpartition("@")[2].lower()
    if any(domain == name or domain.endswith(f".{name}") for name in SPECIAL_USE_DOMAIN_NAMES):
        # Such as localhost, which no mail of the world goes to, but that of one's own machine and of tests does.
        return check(f"{text}.com").removesuffix(".com")
    return check(text)


def _sentence(error: Exception) -> str:
    text = str(error)
    return (text[:1].lower() + text[1:]).rstrip(".")
