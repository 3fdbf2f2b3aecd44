"""Named queries on a Postgres connection, and Postgres's errors in Rota's words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable
from rota.stores import queries
from rota.stores.database import Call, Params, Row

_TABLE = re.compile(r"\brota_(?:jobs|history|attempts|workers|tasks|migrations)\b")
_PARAMETER = re.compile(r"(?:\bin )?(?<!:):([a-z_]+)")
_NOW = "coalesce(%(now)s::bigint, (extract(epoch from statement_timestamp()) * 1000000)::bigint)"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch

_PIPELINE = psycopg.Pipeline.is_supported()
"""Whether the client library can send several statements at once; one older than version 14 takes a round trip for each."""

_HURRIES = frozenset({"claim"})
"""Queries that themselves see to it that their commit need not wait for the disk."""

_TYPES = {
    **dict.fromkeys(("jobs", "ends", "reports"), "jsonb"),
    **dict.fromkeys(("asleep", "durable", "among_live", "among_finished", "key_waiting"), "boolean"),
    **dict.fromkeys(("age", "delay", "lease", "limit", "pid", "run_at"), "bigint"),
    **dict.fromkeys(("priority", "max_attempts", "concurrency", "excuse", "number"), "integer"),
    **dict.fromkeys(("job_id", "before"), "uuid"),
    "queues": "text[]",
}
"""The types of parameters that are not text. Every parameter is cast, so that a null has a type too."""


class Queries:
    """The named queries of a schema, whatever its name, in psycopg's form."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.quoted = '"{}"'.format(schema.replace('"', '""'))
        self.channel = "rota_" + hashlib.sha256(schema.encode()).hexdigest()[:16]
        """Where this schema's sleepers listen; a name of any length or alphabet becomes a short one."""
        self._texts = {name: self._in_form(text) for name, text in queries.load("postgres").items()}

    def __getitem__(self, name: str) -> sql.SQL:
        return self._texts[name]

    def table(self, name: str) -> str:
        """A table's full name, quoted."""
        return f"{self.quoted}.{name}"

    def qualify(self, text: str) -> str:
        return _TABLE.sub(lambda found: self.table(found[0]), text)

    def _in_form(self, text: str) -> sql.SQL:
        text = text.replace("%", "%%").replace(":channel", f"'{self.channel}'").replace(":now", "\0")
        text = _PARAMETER.sub(_parameter, text).replace("\0", _NOW)
        return sql.SQL(self.qualify(text))


class Session:
    """Runs named queries on a connection for as long as it is borrowed."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], queries: Queries) -> None:
        self.connection = connection
        self.queries = queries

    def run(self, query: str, params: Params) -> list[Row]:
        return _rows(self._execute(query, params))

    def send(self, calls: Sequence[Call], durable: bool) -> list[list[Row]]:
        """Run queries as one transaction in one round trip; a single one is its own transaction."""
        if len(calls) == 1 and (durable or calls[0][0] in _HURRIES):
            [(query, params)] = calls
            return [self.run(query, {**params, "durable": durable})]
        # The driver's own transaction would wait for the server at its begin and at its end.
        try:
            with self.connection.pipeline() if _PIPELINE else nullcontext():
                self.connection.execute("begin isolation level read committed")
                if not durable:
                    self.connection.execute("set local synchronous_commit = off")
                cursors = [self._execute(query, {**params, "durable": True}) for query, params in calls]
                self.connection.execute("commit")
        except psycopg.Error:
            if self.connection.info.transaction_status is TransactionStatus.INERROR:
                self.connection.execute("rollback")
            raise
        return [_rows(cursor) for cursor in cursors]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.connection.transaction():
            yield

    def script(self, text: str) -> None:
        for statement in queries.statements(self.queries.qualify(text)):
            self.connection.execute(sql.SQL(statement))

    def _execute(self, query: str, params: Params) -> psycopg.Cursor[tuple[object, ...]]:
        bound = {name: _bind(name, value) for name, value in params.items()}
        return self.connection.execute(self.queries[query], bound)


def meaning(error: psycopg.Error, place: str) -> StoreError:
    """What a driver's error means to whoever runs jobs, in one line."""
    said = " ".join(str(error).split())
    state = error.sqlstate or ""
    match state[:2]:
        case "40":
            return StoreUnavailable(f"Postgres at {place} ended the transaction to resolve a conflict with others: {said}")
        case "53":
            return StoreUnavailable(f"Postgres at {place} is out of room ({said}): free disk, memory or connections")
        case "25" if state == "25006":
            return StoreUnavailable(f"Postgres at {place} takes no writes ({said}): point the URL at the primary")
        case "08" | "57" | "55" | "58":
            return StoreUnavailable(f"Postgres at {place} cannot serve now ({said}): wait, or look at its log")
        case "28":
            return StoreUnavailable(f"Postgres at {place} refuses this user ({said}): check user and password in the URL")
        case "3D":
            return StoreUnavailable(f"Postgres at {place} has no such database ({said}): create it, or correct the URL")
        case _ if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return SchemaMismatch(f"the tables in Postgres at {place} are not those of this Rota ({said}): run `rota migrate`")
        case "42" if state == "42501":
            return StoreError(f"this user lacks a right in Postgres at {place} ({said}): have it granted")
        case "" if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreUnavailable(
                f"Postgres at {place} cannot be reached ({said}): see that it runs and that the URL is right"
            )
        case _:
            return StoreError(f"Postgres at {place} refused a query: {said}")


def _rows(cursor: psycopg.Cursor[tuple[object, ...]]) -> list[Row]:
    return list(cursor.fetchall()) if cursor.description is not None else []


def _bind(name: str, value: object) -> object:
    if name == "before" and isinstance(value, str):
        return value if _UUID(value) else None
    if name == "ids" and isinstance(value, list):
        # An array in text, quicker than the driver makes one. What is no UUID is no job's id.
        return "{" + ",".join(filter(_UUID, value)) + "}"
    return value


def _parameter(found: re.Match[str]) -> str:
    name = found[1]
    if found[0].startswith("in "):
        return f"= any(%({name})s::{'uuid' if name == 'ids' else 'text'}[])"
    return f"%({name})s::{_TYPES.get(name, 'text')}"
