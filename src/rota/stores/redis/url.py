"""Where a Redis URL leads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import unquote

from msgspec import Struct

from rota.errors import ConfigError

_FORM = re.compile(
    r"(?P<scheme>rediss?|unix|rediss?\+sentinel)://"
    r"(?:(?P<user>[^:@/?]*)(?::(?P<password>[^@/?]*))?@)?(?P<where>[^/?#]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.DOTALL | re.IGNORECASE,
)
_PORT = 6379
_SENTINELS_PORT = 26379
_LONGEST_PORT = 65_535

_TLS = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")
_OWN = ("prefix", "db", "sentinel_username", "sentinel_password")
_CHECKS = ("none", "optional", "required")


class Sentinel(Struct, frozen=True):
    """Which server the Sentinels are asked for, and as whom."""

    service: str
    username: str | None
    password: str | None


class Address(Struct, frozen=True):
    """What a URL says."""

    shown: str
    """The URL without its passwords."""
    hosts: tuple[tuple[str, int], ...]
    """The server, or the Sentinels; none where it is a socket."""
    path: str
    """The socket; empty where there is none."""
    db: int
    username: str | None
    password: str | None
    tls: Mapping[str, str | bool] | None
    """How the connection is encrypted, in the driver's words; `None` where it is not."""
    sentinel: Sentinel | None
    prefix: str | None

    @property
    def place(self) -> str:
        """Where it leads, for messages."""
        where = self.path or ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"{where}/{self.sentinel.service}/{self.db}" if self.sentinel else f"{where}/{self.db}"


def read_url(url: str) -> Address:
    """Read a URL. Raises `ConfigError`, which shows no password."""
    found = _FORM.fullmatch(url.strip())
    if found is None:
        _misread()
    scheme, where, path = found["scheme"].lower(), found["where"], found["path"] or ""
    query = _query(found["query"] or "")
    tls = {name: _tls(name, value) for name, value in query.items() if name in _TLS}
    if tls and not scheme.startswith("rediss"):
        raise ConfigError(f"{', '.join(tls)}: without TLS there is nothing to check; write rediss:// in the URL")
    user = None if found["user"] is None else unquote(found["user"]) or None
    password = None if found["password"] is None else unquote(found["password"])
    hosts: tuple[tuple[str, int], ...] = ()
    sentinel, socket, db = None, "", query.get("db")
    if scheme == "unix":
        socket = unquote(where + path)
        if not socket.startswith("/"):
            raise ConfigError("a socket's URL is written unix:///path/to/socket?db=0, with three slashes")
    elif scheme.endswith("+sentinel"):
        service, _, rest = path.removeprefix("/").partition("/")
        if not service:
            raise ConfigError(
                f"the URL names no service: it is written {scheme}://host:{_SENTINELS_PORT},host:{_SENTINELS_PORT}/service/0"
            )
        hosts = tuple(_host(each, _SENTINELS_PORT) for each in where.split(","))
        sentinel = Sentinel(unquote(service), query.get("sentinel_username"), query.get("sentinel_password"))
        db = db or rest or None
    else:
        hosts = (_host(where, _PORT),)
        db = db or path.removeprefix("/") or None
    return Address(
        shown=_shown(found),
        hosts=hosts,
        path=socket,
        db=_database(db or "0"),
        username=user,
        password=password,
        tls=tls if scheme.startswith("rediss") else None,
        sentinel=sentinel,
        prefix=query.get("prefix"),
    )


def _query(text: str) -> dict[str, str]:
    query = {}
    for part in filter(None, text.split("&")):
        name, equals, value = part.partition("=")
        if not equals or name not in (*_OWN, *_TLS):
            raise ConfigError(
                f"{name!r} in the Redis URL is not known, or says nothing; after the ? may stand {', '.join((*_OWN, *_TLS))}"
            )
        query[name] = unquote(value)
    return query


def _tls(name: str, value: str) -> str | bool:
    if name == "ssl_check_hostname":
        if value not in {"true", "false"}:
            raise ConfigError(f"ssl_check_hostname={value!r} in the URL is neither true nor false")
        return value == "true"
    if name == "ssl_cert_reqs" and value not in _CHECKS:
        raise ConfigError(f"ssl_cert_reqs={value!r} in the URL is none of {', '.join(_CHECKS)}")
    return value


def _host(text: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(?P<host>\[[^\]]+\]|[^:\[\]]*)(?::(?P<port>[0-9]+))?", text)
    if found is None:
        _misread()
    number = int(found["port"] or port)
    if not 1 <= number <= _LONGEST_PORT:
        _misread()
    return unquote(found["host"].strip("[]")) or "localhost", number


def _database(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"the database {text!r} in the Redis URL is no number: it is 0 unless the server has several")
    return int(text)


def _shown(found: re.Match[str]) -> str:
    query = "&".join(part for part in (found["query"] or "").split("&") if part and not part.startswith("sentinel_password="))
    who = f"{found['user']}@" if found["user"] else ""
    return f"{found['scheme'].lower()}://{who}{found['where']}{found['path'] or ''}{'?' if query else ''}{query}"


def _misread() -> NoReturn:
    """What was to be a password may stand anywhere in the URL then, so nothing of it is shown."""
    raise ConfigError(
        "the Redis URL cannot be read: it is written redis://user:password@host:6379/0, rediss:// with TLS, "
        "unix:///path/to/socket, or redis+sentinel://host:26379,host:26379/service/0; in user and password @ is written %40, "
        "/ %2F, : %3A and % %25"
    )
