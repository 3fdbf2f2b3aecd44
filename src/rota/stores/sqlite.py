"""The store in a SQLite file, and the same store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from rota.clock import Micros, machine_now
from rota.errors import ConfigError, NotSupported
from rota.model import Inserted, Migration, NewJob, Seal, Vitals
from rota.stores import mounts, rows, versions
from rota.stores.adding import add, chunked, settle
from rota.stores.database import Call, Link, Params, Row, Run, Send
from rota.stores.given import flag, number
from rota.stores.sql import SqlStore
from rota.stores.sqlite_engine import Cursor, Engine, FileEngine, MemoryEngine
from rota.stores.sqlite_line import CommitWatch, DirectLine, MemoryWatch

if TYPE_CHECKING:
    from rota.stores.foreign import Dialect

T = TypeVar("T")


def open_sqlite(
    url: str, *, journal: str = "wal", network: str = "warn", migrate: bool = True, patience: float = 30.0
) -> SqlStore:
    """The store in the file of `sqlite:///relative.db` or `sqlite:////absolute.db`; nothing is opened yet.

    `journal="delete"` does without a write-ahead log. `network="refuse"` raises `ConfigError` when the file lies on a
    network or shared file system, where SQLite's locks cannot be trusted. With `migrate=False` tables that are missing or old
    are refused instead of changed. `patience` is for how many seconds a write waits for other processes.
    Raises `ConfigError` naming the path when it cannot be written.
    """
    path = _path(url)
    flag("migrate", migrate)
    number("patience", patience, least=0)
    if journal not in {"wal", "delete"}:
        raise ConfigError(f"journal={journal!r} is not known: it is 'wal' or 'delete'")
    if network not in {"warn", "refuse"}:
        raise ConfigError(f"network={network!r} is not known: it is 'warn' or 'refuse'")
    mounts.check_writable(path)
    warning = mounts.warning(path)
    if warning and network == "refuse":
        raise ConfigError(warning)
    return SqlStore(SqliteDatabase(url, FileEngine(path, journal, patience), [warning] if warning else [], migrate))


def open_memory(url: str = "memory://") -> SqlStore:
    """A store of its own in this process's memory, for tests and trials; it ends when it and its twins are closed."""
    if url.rstrip("/") not in {"memory:", "memory"}:
        raise ConfigError(f"{url!r} names something in memory: each memory store is its own, so write memory://")
    return SqlStore(SqliteDatabase("memory://", MemoryEngine(), [], migrates=True))


class SqliteDatabase:
    """A `Database` over an engine that twins share: one writer, however many threads, because SQLite has but one."""

    wades = False
    looks_first = True
    kind = "sqlite"

    def __init__(self, url: str, engine: Engine, warnings: list[str], migrates: bool) -> None:
        self.url = url
        self._engine = engine
        self._warnings = warnings
        self._migrates = migrates
        self._asleep: set[str] = set()
        self._holds = False

    def open(self) -> None:
        self._ready(self._migrates)

    def close(self) -> None:
        if self._holds:
            self._holds = False
            self._engine.users -= 1
            if not self._engine.users:
                self._engine.close()

    def twin(self) -> SqliteDatabase:
        self.open()
        twin = SqliteDatabase(self.url, self._engine, self._warnings, self._migrates)
        twin._asleep = self._asleep
        return twin

    def migrate(self) -> list[str]:
        ran = self._ready(migrates=True)  # which makes tables that are missing
        return ran + self._engine.write(lambda cursor: versions.migrate(cursor.run, cursor.script, self.kind), durable=True)

    def pending(self) -> list[Migration]:
        return self._engine.pending()

    def there(self) -> bool:
        return self._engine.there()

    def schema(self) -> list[tuple[str, str]]:
        return versions.script(self.kind)

    def read(self, query: str, params: Params) -> list[Row]:
        self.open()
        return self._engine.read(query, params)

    def send(self, calls: Sequence[Call], durable: bool = True) -> list[list[Row]]:
        self.open()
        return self._engine.write(lambda cursor: [_answer(cursor, query, params) for query, params in calls], durable)

    def work(self, do: Callable[[Run], T]) -> T:
        self.open()
        return self._engine.write(lambda cursor: do(cursor.run), durable=True)

    def decide(self, do: Callable[[Send, Send], T]) -> T:
        def transaction(cursor: Cursor) -> T:
            def send(calls: Sequence[Call]) -> list[list[Row]]:
                return [_answer(cursor, query, params) for query, params in calls]

            return do(send, send)

        self.open()
        return self._engine.write(transaction, durable=False)

    def seal(self, seal: Seal) -> None:
        from rota.stores import sqlite_sealing  # few need it

        self.open()
        self._engine.write(lambda cursor: sqlite_sealing.seal(cursor, seal), durable=True)

    def unseal(self, id: str) -> bool:
        from rota.stores import sqlite_sealing

        self.open()
        return self._engine.write(lambda cursor: sqlite_sealing.unseal(cursor, id), durable=True)

    def sealed(self) -> Seal | None:
        if not self.read("sealing", {}):
            return None
        from rota.stores import sqlite_sealing

        return sqlite_sealing.sealed(self.read)

    def beneath(self, seal: str, do: Callable[[Run], T]) -> T:
        from rota.stores import sqlite_sealing

        self.open()
        return self._engine.write(lambda cursor: sqlite_sealing.beneath(cursor, seal, do), durable=True)

    def insert(self, jobs: Iterable[NewJob], now: Micros | None) -> list[Inserted]:
        chunks = chunked(jobs)
        first = next(chunks, None)
        if first is None:
            return []
        present = machine_now() if now is None else now
        if len(first) == 1:
            return self._insert_one(first[0], present)

        def write(run: Run) -> list[Inserted]:
            answers = add(run, first, present)
            for chunk in chunks:
                answers += add(run, chunk, present)
            return answers

        return self.work(write)

    def _ready(self, migrates: bool) -> list[str]:
        if not self._holds:
            self._holds = True
            self._engine.users += 1
        return self._engine.ready(migrates)

    def _insert_one(self, job: NewJob, present: Micros) -> list[Inserted]:
        """A lone job, without the way through JSON; only when it was not added is it looked up why."""
        [added] = self.send([("insert_one", rows.job_params(job, present))])
        return [Inserted(job.id)] if added else self.work(lambda run: settle(run, [job], 0, present))

    def rest(self, worker: str, asleep: bool) -> None:
        """Kept in memory: watches see every commit anyway, and a commit of this would only wake the others."""
        if asleep:
            self._asleep.add(worker)
        else:
            self._asleep.discard(worker)

    def sleepers(self) -> frozenset[str]:
        return frozenset(self._asleep)

    def line(self) -> Link:
        self.open()
        if isinstance(self._engine, FileEngine):
            return DirectLine(self.send, CommitWatch(self._engine.connect, self._engine.path))
        assert isinstance(self._engine, MemoryEngine)
        return DirectLine(self.send, MemoryWatch(self._engine.commits))

    def dialect(self) -> Dialect:
        from rota.stores.sqlite_foreign import SqliteDialect  # few need it

        if not isinstance(self._engine, FileEngine):
            raise NotSupported(
                "the store memory:// is in this process's memory, where no connection of yours leads: enqueue without one, or "
                "use a store in the connection's own database (for the pytest fixture rota_app, override rota_url)"
            )
        return SqliteDialect(str(self._engine.path), lambda: self.read("files", {}))

    def vitals(self) -> Vitals:
        self.open()
        warnings, facts = self._engine.vitals()
        [[tables]] = self.read("version", {})
        return Vitals(now=machine_now(), warnings=self._warnings + warnings, facts=facts | {"tables": tables})


_HEAVY = frozenset({"claim", "candidates"})
"""Queries that leave heavy arguments out."""


def _answer(cursor: Cursor, query: str, params: Params) -> list[Row]:
    found = cursor.run(query, params)
    if query in _HEAVY and (lacking := [row[0] for row in found if row[3] is None]):
        heavy = {row[0]: row[1] for row in cursor.run("heavy", {"ids": lacking})}
        return [[*row[:3], heavy.get(row[0], row[3]), *row[4:]] for row in found]
    return found


def _path(url: str) -> Path:
    wrong = ConfigError(f"{url!r} names no file: write sqlite:///relative.db or sqlite:////absolute/path.db")
    try:
        parts = urlsplit(url)
    except ValueError as error:  # a bracket where a host would be
        raise wrong from error
    if parts.netloc or parts.query or parts.fragment or not parts.path.strip("/"):
        raise wrong
    return Path(unquote(parts.path[1:]))
