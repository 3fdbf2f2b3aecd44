"""Postgres's errors, and a pooler's, in Rota's words: what happened, what was said, and what to do about it."""

from __future__ import annotations

import re

import psycopg
from msgspec import Struct

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable

READ_ONLY = "25006"
"""What a server that became a standby says to a write."""


class Known(Struct, frozen=True):
    """An error that is known by the words of the server, the pooler or the client library."""

    words: re.Pattern[str]
    told: str
    """With `{place}` and `{said}`."""
    away: bool = True
    """Whether it may be over in a while, as of a store that is away."""


def _known(words: str, told: str, away: bool = True) -> Known:
    return Known(re.compile(words, re.IGNORECASE), told, away)


_FROM_POOLERS = (
    _known(
        "statement pooling mode",
        "the pooler at {place} lends connections for a statement ({said}), and Rota's transactions have several: set its "
        "pool_mode to transaction or session, for this database at least",
        away=False,
    ),
    _known(
        "query_wait_timeout|no more connections allowed",
        "the pooler at {place} has no connection left ({said}): raise its pool_size or max_client_conn, or run fewer processes",
    ),
    _known(
        "(idle|query|transaction).*timeout",
        "the pooler at {place} ended a connection by a time-out of its own ({said}): raise that, so that it is longer than "
        "anything Rota waits for",
    ),
)
"""What a pooler refuses has the code of a violated protocol, whatever it is."""

_OF_CONNECTING = (
    _known(
        "unsupported startup parameter",
        "the pooler at {place} refuses a parameter of the connection ({said}): leave it out of the URL, or name it in the "
        "pooler's ignore_startup_parameters",
        away=False,
    ),
    _known(
        "too many clients|max clients|connection slots are reserved|no more connections allowed",
        "Postgres at {place} has no room for another connection ({said}): raise max_connections, run fewer processes, or "
        "put a pooler in front",
    ),
    _known(
        "too many connections for",
        "Postgres at {place} has no room for another connection of this user or to this database ({said}): raise its "
        "connection limit, or run fewer processes",
    ),
    _known(
        "not in hot standby mode|session is not read-only",
        "target_session_attrs asks for a standby, which takes no writes, and no server of {place} is one ({said}): leave it "
        "out of the URL, or say read-write",
        away=False,
    ),
    _known(
        "session is read-only|server is in hot standby mode",
        "no server of {place} takes writes now ({said}): wait until one is promoted, or correct the hosts in the URL",
    ),
    _known(
        "definition of service|service file|"
        "(invalid|unrecognized|unknown|bad value) .*(parameter|option|value|connect_timeout|[a-z]+mode)",
        "a parameter of the connection to Postgres at {place} cannot be right ({said}): correct it in the URL, or in the "
        "service file or the environment where it comes from there",
        away=False,
    ),
    _known(
        "invalid response|unexpected message",
        "what answers at {place} does not speak Postgres's protocol ({said}): correct host and port in the URL",
    ),
    _known(
        "permission denied for database",
        "this user may not connect to the database of Postgres at {place} ({said}): have connect on it granted",
    ),
    _known(
        "authentication|no password supplied|not permitted to log in|role .* does not exist|no such user",
        "Postgres at {place} refuses this user ({said}): check user and password in the URL",
    ),
    _known(
        "database .* does not exist|no such database",
        "Postgres at {place} has no such database ({said}): create it, or correct the URL",
    ),
    _known(
        "no pg_hba.conf entry|rejects connection",
        "Postgres at {place} does not let this user in from here ({said}): add a line to its pg_hba.conf, or sslmode=require "
        "to the URL where it is only that there was no encryption",
    ),
    _known(
        "certificate|(SSL|TLS|encryption)( connection)?( is| was)? required|not support SSL|SSL error: (?!unexpected eof)|"
        "no encryption|channel binding",
        "the connection to Postgres at {place} cannot be made as secure as it must be ({said}): see to sslmode and sslrootcert "
        "in the URL, and to the certificate of the server",
    ),
    _known(
        "starting up|shutting down|recovery mode|not yet accepting connections|cannot connect to server",
        "Postgres at {place} cannot serve now ({said}): wait, or look at its log",
    ),
    _known(
        "failed to resolve host|could not translate host name",
        "the host of Postgres at {place} is not known here ({said}): correct its name in the URL, or see whether this "
        "machine's name server answers",
    ),
    _known(
        "timeout expired",
        "nothing answers at {place} ({said}): see that host and port are right, that no firewall is between, and that a pooler "
        "which is between reaches its server",
    ),
)
"""An error met while connecting has no code. Several may be told at once, for each host and with encryption and without; then
the first of these that fits is what matters most. One that is in none of these words is taken for a server that is away.
"""

_ASKED = re.compile(r"\s+Is the server running [^\n]*\?")
"""What libpq asks below its error; what is told says it already."""


def meaning(error: psycopg.Error, place: str) -> StoreError:
    """What a driver's error means to whoever runs jobs, in one line."""
    said = " ".join(_ASKED.sub("", str(error)).split())
    state = error.sqlstate or ""
    if found := _by_words(said, place, _OF_CONNECTING if not state else _FROM_POOLERS if state == "08P01" else ()):
        return found
    match state[:2]:
        case "40":
            return StoreUnavailable(f"Postgres at {place} ended the transaction to resolve a conflict with others: {said}")
        case "53":
            return StoreUnavailable(f"Postgres at {place} is out of room ({said}): free disk, memory or connections")
        case "25" if state == READ_ONLY:
            return StoreUnavailable(
                f"Postgres at {place} takes no writes ({said}): point the URL at the primary, or name all hosts in it; if it "
                "is the primary, default_transaction_read_only is on there, for all or for this user or database"
            )
        case "25" if state in {"25P03", "25P04"}:
            return StoreUnavailable(
                f"Postgres at {place} ended a transaction that was open for too long ({said}): this process was held up, or a "
                "limit's key function takes long"
            )
        case "25":
            return StoreUnavailable(
                f"the session with Postgres at {place} was in another transaction than this process thought ({said}): where a "
                "pooler is between, say pooler=True, or ?pooler=true in the URL"
            )
        case "55" if state == "55P03":
            return StoreUnavailable(
                f"Postgres at {place} gave up waiting for a lock that others hold ({said}): end the transaction that holds it "
                "(pg_locks and pg_blocking_pids() name it), or raise this user's lock_timeout"
            )
        case "57" if state == "57014":
            return StoreUnavailable(
                f"Postgres at {place} ended a query ({said}): raise this user's statement_timeout if that is what did, and "
                "see what made the query slow"
            )
        case "57" if state == "57P05":
            return StoreUnavailable(
                f"Postgres at {place} ended a connection that was not used for a while ({said}): set idle_session_timeout to "
                "0 for this user, for a worker's connection rests while there is nothing to do"
            )
        case "08" | "57" | "55" | "58":
            return StoreUnavailable(f"Postgres at {place} cannot serve now ({said}): wait, or look at its log")
        case "28":
            return StoreUnavailable(f"Postgres at {place} refuses this user ({said}): check user and password in the URL")
        case "3D":
            return StoreUnavailable(f"Postgres at {place} has no such database ({said}): create it, or correct the URL")
        case _ if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return SchemaMismatch(
                f"the tables in Postgres at {place} are not those of this Rota ({said}): `rota migrate` makes them so where "
                "they are older, and says whether they are newer"
            )
        case "26" | "42" if state in {"26000", "42P05"}:
            return StoreError(
                f"Postgres at {place} lost or mixed up prepared statements ({said}), for a pooler lends the connection to "
                "others between transactions: say pooler=True, or ?pooler=true in the URL"
            )
        case "42" if state == "42501":
            return StoreError(
                f"this user lacks a right in Postgres at {place} ({said}): have it granted; to work it takes usage on the "
                "schema, and select, insert, update and delete on its tables"
            )
        case "P0":  # a trigger's own words; where it stands in the database says nothing more
            return StoreError(f"Postgres at {place} refused a change: {str(error).splitlines()[0]}")
        case "XX":
            return StoreError(f"Postgres at {place} found damage or a fault of its own ({said}): look at its log")
        case "" if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreUnavailable(
                f"Postgres at {place} cannot be reached ({said}): see that it runs and that the URL is right"
            )
        case _:
            return StoreError(f"Postgres at {place} refused a query: {said}")


def _by_words(said: str, place: str, known: tuple[Known, ...]) -> StoreError | None:
    for each in known:
        if each.words.search(said):
            return (StoreUnavailable if each.away else StoreError)(each.told.format(place=place, said=said))
    return None
