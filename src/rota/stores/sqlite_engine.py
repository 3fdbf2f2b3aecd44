"""A process's connections to one SQLite database: one that writes, one that reads."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib import import_module
from operator import methodcaller
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from rota import forks
from rota.clock import machine_now
from rota.errors import ConfigError, SchemaMismatch, StoreError, StoreUnavailable
from rota.model import Migration
from rota.stores import queries, versions
from rota.stores.database import Params, Row
from rota.stores.exits import at_exit
from rota.stores.rows import as_json
from rota.stores.sqlite_errors import meaning
from rota.stores.sqlite_line import Commits

T = TypeVar("T")

_OLDEST = (3, 35, 0)
_LOG_LIMIT = 64 * 1024 * 1024
_FORK_PATIENCE = 5.0
"""Seconds that a fork waits for a transaction of another thread."""
_LIST = re.compile(r"\bin :(\w+)")
_TEXT = methodcaller("decode", "utf-8", "surrogateescape")
"""Reads any bytes: where one job's arguments are damaged, it is they that are refused, and no look at others fails."""


class Cursor:
    """Runs named queries on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, query: str, params: Params) -> list[Row]:
        bound = {name: bind(name, value) for name, value in params.items()}
        answer: list[Row] | None = None
        for statement in forms()[query]:
            cursor = self._connection.execute(statement, bound)
            if answer is None and cursor.description is not None:
                answer = cursor.fetchall()
                if cursor.description[0][0] == "packed":
                    answer = _unpacked(answer[0][0])
        return answer or []

    def script(self, text: str) -> None:
        for statement in queries.statements(text):
            self._connection.execute(statement)


class Engine(Protocol):
    """The connections that a store and its twins share."""

    users: int
    """How many of them are open."""

    def ready(self, migrates: bool) -> list[str]:
        """Open what is not open, and answer the names of the migrations that this call ran, if it `migrates`.

        Else tables that are missing or old raise `SchemaMismatch`.
        """
        ...

    def there(self) -> bool:
        """Whether there are tables; opens and makes nothing."""
        ...

    def pending(self) -> list[Migration]:
        """The migrations that would run; opens and makes nothing."""
        ...

    def read(self, query: str, params: Params) -> list[Row]: ...

    def write(self, do: Callable[[Cursor], T], durable: bool) -> T: ...

    def vitals(self) -> tuple[list[str], dict[str, str | int | float]]: ...

    def close(self) -> None: ...


class FileEngine:
    """Connections to a file. A thread that wants to write waits for the process's other threads, then for other processes."""

    def __init__(self, path: Path, journal: str, patience: float) -> None:
        _check_version()
        self.users = 0
        self.path = path
        self._journal = journal
        self._patience = patience
        self._inherited: list[sqlite3.Connection | None] = []
        self._holds: list[threading.Lock] = []
        self._start()
        at_exit(self)
        forks.between(self._pause, self._go_on)

    def _pause(self) -> None:
        """Before a fork: of a transaction under way the child would inherit SQLite's locks, which nobody could free there."""
        if self._pid == os.getpid() and self._written_by != threading.get_ident():
            self._holds = [lock for lock in (self._writing, self._reading) if lock.acquire(timeout=_FORK_PATIENCE)]

    def _go_on(self) -> None:
        for lock in self._holds:
            lock.release()
        self._holds = []

    def _start(self) -> None:
        self._writing = threading.Lock()
        self._written_by: int | None = None
        self._reading = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._full_sync = True
        self._pid = os.getpid()  # last: it tells other threads that all is ready

    def ready(self, migrates: bool) -> list[str]:
        if self._pid != os.getpid():
            # A forked child must neither use nor close what it inherited: SQLite's locks belong to the parent.
            self._inherited += [self._writer, self._reader]
            self._start()
        if self._writer is None:
            with self._writing, self._errors():
                if self._writer is None:
                    return self._open(migrates)
        return []

    def there(self) -> bool:
        return self._looked(_made) or False

    def pending(self) -> list[Migration]:
        seen = self._looked(lambda reader: versions.pending(Cursor(reader).run if _made(reader) else None, "sqlite", {}))
        return versions.pending(None, "sqlite", {}) if seen is None else seen

    def _refusal(self) -> SchemaMismatch | None:
        """Why the file cannot be used as it is."""

        def look(reader: sqlite3.Connection) -> SchemaMismatch | None:
            return None if _fits(reader) else versions.refusal(Cursor(reader).run if _made(reader) else None, "sqlite", url)

        url = f"sqlite:///{self.path}"
        return self._looked(look) if self.path.exists() else versions.refusal(None, "sqlite", url)

    def _looked(self, look: Callable[[sqlite3.Connection], T]) -> T | None:
        """What is seen in the file as it is, `None` where there is none: nothing is made or set."""
        if not self.path.exists():
            return None
        with self._errors(), closing(self.connect()) as reader:
            return look(reader)

    def read(self, query: str, params: Params) -> list[Row]:
        with self._reading, self._errors():
            return Cursor(self._open_still(self._reader)).run(query, params)

    def write(self, do: Callable[[Cursor], T], durable: bool) -> T:
        if self._written_by == threading.get_ident():  # it would wait for itself, and all other processes for it
            raise _nested(self.path)
        with self._writing, self._errors():
            writer = self._open_still(self._writer)
            self._written_by = threading.get_ident()
            try:
                if durable is not self._full_sync:
                    writer.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
                    self._full_sync = durable
                return self._transaction(writer, do)
            finally:
                self._written_by = None

    def connect(self) -> sqlite3.Connection:
        with self._errors():
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=256)
            connection.text_factory = _TEXT
            connection.execute(f"pragma busy_timeout = {int(self._patience * 1000)}")
            return connection

    def close(self) -> None:
        with self._writing, self._reading:
            self._close()

    def close_idle(self) -> None:
        """Close them where nobody uses them now: whoever is the last to close a file takes in its log."""
        free = [lock for lock in (self._writing, self._reading) if lock.acquire(blocking=False)]
        if len(free) == 2:
            self._close()
        for lock in free:
            lock.release()

    def _close(self) -> None:
        for connection in (self._writer, self._reader):
            if self._pid != os.getpid():
                self._inherited.append(connection)  # to forget it would be to close it
            elif connection is not None:
                connection.close()
        self._writer = self._reader = None

    def _open_still(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:
            raise StoreUnavailable(f"the SQLite file {self.path} was closed by another thread just now")
        return connection

    def vitals(self) -> tuple[list[str], dict[str, str | int | float]]:
        wal = Path(f"{self.path}-wal")
        wal_bytes = wal.stat().st_size if wal.exists() else 0
        warnings = []
        if wal_bytes > 4 * _LOG_LIMIT:
            warnings.append(
                f"the write-ahead log {wal} has {wal_bytes >> 20} MB: some reader keeps a transaction open, find and end it"
            )
        [journal] = self._one("pragma journal_mode")
        if self._journal == "wal" and journal != "wal":
            warnings.append(f"the SQLite file {self.path} cannot keep a write-ahead log here and is slower without it")
        return warnings, {
            "store": "sqlite",
            "path": str(self.path.absolute()),
            "version": sqlite3.sqlite_version,
            "journal": journal,
            "bytes": self.path.stat().st_size,
            "wal_bytes": wal_bytes,
        }

    def _open(self, migrates: bool) -> list[str]:
        if not migrates and (refusal := self._refusal()) is not None:
            raise refusal
        writer = self.connect()
        try:
            ran = self._prepare(writer)
            reader = self.connect()
        except BaseException:
            writer.close()
            raise
        reader.execute("pragma query_only = 1")
        self._writer, self._reader = writer, reader
        return ran

    def _prepare(self, writer: sqlite3.Connection) -> list[str]:
        self._until_free(lambda: writer.execute(f"pragma journal_mode = {self._journal}").fetchone())
        writer.execute("pragma synchronous = full")
        self._full_sync = True
        writer.execute(f"pragma journal_size_limit = {_LOG_LIMIT}")
        ran: list[str] = []
        if not _fits(writer):
            ran = self._transaction(writer, _migrate)
        if self._journal == "wal":
            # Waiting to begin is done here, more fairly than by SQLite, and nothing else waits in this mode.
            writer.execute("pragma busy_timeout = 0")
        return ran

    def _transaction(self, connection: sqlite3.Connection, do: Callable[[Cursor], T]) -> T:
        self._until_free(lambda: connection.execute("begin immediate"))
        return _commit(connection, do)

    def _until_free(self, attempt: Callable[[], object]) -> None:
        """Try until no other process is in the way.

        SQLite's own wait backs off to a tenth of a second, so newcomers overtake those who wait; here all look about as often.
        """
        deadline = time.monotonic() + self._patience
        while True:
            try:
                attempt()
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or time.monotonic() > deadline:
                    raise
            else:
                return
            time.sleep(random.uniform(0.0005, 0.003))  # noqa: S311  # spreads waiters, guards nothing

    def _one(self, statement: str) -> Row:
        with self._reading, self._errors():
            row: Row = self._open_still(self._reader).execute(statement).fetchone()
            return row

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise meaning(error, self.path, self._patience) from error


class MemoryEngine:
    """One connection to a database in memory."""

    def __init__(self) -> None:
        _check_version()
        self.users = 0
        self._inherited: list[sqlite3.Connection | None] = []
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self.commits = Commits()
        self._pid = os.getpid()

    def ready(self, migrates: bool) -> list[str]:
        if self._pid != os.getpid():
            self._inherited.append(self._connection)
            self._start()
        if self._connection is None:
            with self._lock:
                if self._connection is None:
                    connection = sqlite3.connect(
                        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
                    )
                    connection.text_factory = _TEXT
                    ran = _migrate(Cursor(connection))
                    self._connection = connection
                    return ran
        return []

    def there(self) -> bool:
        return True

    def pending(self) -> list[Migration]:
        return []  # nobody made tables in this memory before

    def read(self, query: str, params: Params) -> list[Row]:
        with self._lock:
            assert self._connection is not None
            return Cursor(self._connection).run(query, params)

    def write(self, do: Callable[[Cursor], T], durable: bool) -> T:
        with self._lock:
            assert self._connection is not None
            if self._connection.in_transaction:
                raise _nested(":memory:")
            before = self._connection.total_changes
            self._connection.execute("begin immediate")
            try:
                answer = _commit(self._connection, do)
            except sqlite3.Error as error:
                raise meaning(error, Path(":memory:"), 0) from error
            changed = self._connection.total_changes != before
        if changed:
            self.commits.add()
        return answer

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def vitals(self) -> tuple[list[str], dict[str, str | int | float]]:
        return [], {"store": "memory", "version": sqlite3.sqlite_version}


def _unpacked(text: str) -> list[Row]:
    try:
        return list(msgspec.json.decode(text))
    except UnicodeEncodeError:  # bytes that are no UTF-8 are in it, which this does not read
        return list(import_module("json").loads(text))


def _commit(connection: sqlite3.Connection, do: Callable[[Cursor], T]) -> T:
    try:
        answer = do(Cursor(connection))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back by itself after some errors
            connection.execute("rollback")
        raise
    return answer


def _migrate(cursor: Cursor) -> list[str]:
    cursor.script(versions.TABLE)
    return versions.migrate(cursor.run, cursor.script, "sqlite")


def _made(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("select 1 from sqlite_master where name = 'rota_migrations'").fetchone())


def _fits(connection: sqlite3.Connection) -> bool:
    return _made(connection) and versions.fits(Cursor(connection).run, "sqlite")


def bind(name: str, value: object) -> object:
    """A parameter as the driver takes it: a list is one, as JSON."""
    if isinstance(value, list):
        return as_json(value)
    return machine_now() if name == "now" and value is None else value


@cache
def forms() -> dict[str, list[str]]:
    """The statements of each query."""
    return {
        name: queries.statements(_LIST.sub(r"in (select value from json_each(:\1))", text))
        for name, text in queries.load("sqlite").items()
    }


def _nested(path: Path | str) -> StoreError:
    return StoreError(
        f"the SQLite file {path} is being written to by this very thread: a limit's key function may not change "
        "anything in the store that asks it"
    )


def _check_version() -> None:
    if sqlite3.sqlite_version_info < _OLDEST:
        raise ConfigError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
