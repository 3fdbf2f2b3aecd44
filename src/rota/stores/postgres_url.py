"""A Postgres URL as libpq reads it: what is Rota's own is taken out, and all else is passed on letter for letter.

See libpq's `conninfo_uri_parse_options`. The standard library reads URLs in another way: it takes `+` for a space, a `#` or `?`
in a password for the URL's end, and several hosts for a port that is no number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict

from rota.errors import ConfigError

_FLAGS = re.DOTALL | re.IGNORECASE
_URL = re.compile(r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^:@/]*)(?P<password>:[^@/]*)?@)?(?P<rest>.*)", _FLAGS)
_OWN = ("schema", "pooler")
_SECRET = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
_LONGEST_PORT = 65_535

_ENVIRONMENT = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "service": "PGSERVICE",
}
"""What counts where a URL does not say it, of what is looked at here."""


class PostgresUrl(Struct, frozen=True):
    """What a URL says."""

    conninfo: str
    """What the driver is given."""
    shown: str
    """The URL without its passwords."""
    own: Mapping[str, str]
    """Of `schema` and `pooler` what is said."""
    known: Mapping[str, str]
    """The connection's parameters, as far as URL, service file and environment say them. The password is not among them."""

    @property
    def hosts(self) -> list[str]:
        return (self.known.get("host") or self.known.get("hostaddr") or "").split(",")

    @property
    def place(self) -> str:
        """Where it leads, for messages: `host:port/database`."""
        ports = self.known.get("port", "").split(",")
        if len(ports) == 1:
            ports *= len(self.hosts)
        named = (_server(host, port) for host, port in zip(self.hosts, ports, strict=False))
        return f"{','.join(named)}/{self.known.get('dbname') or self.known.get('user') or ''}"


def read_url(url: str) -> PostgresUrl:
    """Read a URL. Raises `ConfigError`, which shows no password."""
    found = _URL.fullmatch(url.strip())
    if found is None:
        raise ConfigError("a Postgres URL is written postgresql://user:password@host:5432/database, with // after the colon")
    scheme, user, password, rest = found.group("scheme").lower(), found["user"], found["password"] or "", found["rest"]
    where, _, query = rest.partition("?")
    named = [(unquote(part.partition("=")[0]), _one(part)) for part in query.split("&") if part]
    own = {name: unquote(part.partition("=")[2]) for name, part in named if name in _OWN}
    shown = _joined(scheme, user, "", where, [part for name, part in named if name not in _SECRET])
    public = [part for name, part in named if name not in _OWN and name not in _SECRET]
    known = _parsed(_joined(scheme, user, "", where, public), shown)
    conninfo = _joined(scheme, user, password, where, [part for name, part in named if name not in _OWN])
    if known != {name: value for name, value in _parsed(conninfo, None).items() if name not in _SECRET}:
        _misread()
    return PostgresUrl(conninfo, shown, own, _completed(known))


def _one(part: str) -> str:
    """A parameter whose value may be written as it is, as in `options=-c name=value`: libpq wants `=` and spaces escaped."""
    name, equals, value = part.partition("=")
    return f"{name}{equals}{value.replace('=', '%3D').replace(' ', '%20')}"


def _joined(scheme: str, user: str | None, password: str, where: str, parts: list[str]) -> str:
    who = "" if user is None else f"{user}{password}@"
    return f"{scheme}{who}{where}{'?' if parts else ''}{'&'.join(parts)}"


def _parsed(conninfo: str, shown: str | None) -> dict[str, str]:
    """The parameters that libpq finds. Where it finds none, its words are told only if the URL may be `shown`."""
    try:
        known = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if value is not None}
    except psycopg.Error as error:
        if shown is None:
            _misread()
        said = " ".join(str(error).split())
        raise ConfigError(
            f"{shown!r} is no Postgres URL ({said}): it is written postgresql://user@host:5432/database"
        ) from error
    ports = [port for port in known.get("port", "").split(",") if port]
    wrong = [port for port in ports if not (port.isascii() and port.isdigit() and 1 <= int(port) <= _LONGEST_PORT)]
    if wrong or "@" in known.get("host", ""):
        _misread()
    return known


def _misread() -> NoReturn:
    """What was to be a password may stand anywhere in the URL then, so nothing of it is shown."""
    raise ConfigError(
        "the Postgres URL cannot be read: a port is a number from 1 to 65535, and in the user's name and the password @ is "
        "written %40, / %2F, : %3A and % %25"
    )


def _completed(known: Mapping[str, str]) -> dict[str, str]:
    """The parameters, with those of the service file and the environment where the URL does not say them."""
    environment = {name: os.environ[variable] for name, variable in _ENVIRONMENT.items() if os.environ.get(variable)}
    service = known.get("service") or environment.get("service")
    return {**environment, **(_of_service(service) if service else {}), **known}


def _of_service(service: str) -> dict[str, str]:
    """What a service file says, the user's or the system's; whether it can be used is for libpq to say."""
    from configparser import Error, RawConfigParser  # few need it

    users = os.environ.get("PGSERVICEFILE") or str(Path.home() / ".pg_service.conf")
    for file in (Path(users), Path(os.environ.get("PGSYSCONFDIR") or "/etc") / "pg_service.conf"):
        parser = RawConfigParser(delimiters="=", comment_prefixes="#", strict=False, default_section="")
        try:
            parser.read(file, "utf-8")
        except (Error, UnicodeDecodeError):
            continue
        if parser.has_section(service):
            return {name: value for name, value in parser.items(service) if name not in _SECRET}
    return {}


def _server(host: str, port: str) -> str:
    named = f"[{host}]" if ":" in host and "/" not in host else host or "localhost"
    return f"{named}:{port}" if port else named
