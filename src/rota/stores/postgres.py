"""The store in a Postgres schema."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import psycopg

from rota.clock import Micros
from rota.errors import ConfigError, SchemaMismatch, StoreError, StoreUnavailable
from rota.model import Inserted, Migration, NewJob, Seal, Vitals
from rota.stores import rows, versions
from rota.stores.adding import add, chunked, in_order, key_order, settle
from rota.stores.database import Call, Link, Params, Row, Run, Send
from rota.stores.given import flag, text, whole
from rota.stores.postgres_copy import Ahead, copy
from rota.stores.postgres_driver import Exchange, Session, bound
from rota.stores.postgres_line import PostgresLine
from rota.stores.postgres_migrating import Migrating, names
from rota.stores.postgres_pool import Plans, Pool
from rota.stores.postgres_queries import Queries
from rota.stores.postgres_url import read_url
from rota.stores.sql import SqlStore

if TYPE_CHECKING:
    from rota.stores.foreign import Dialect

T = TypeVar("T")

_MANY = 200
"""From this many jobs on, COPY is faster than an insert."""

_FIRST = 1_000
"""So many jobs are looked at before it is decided how to insert them."""

_CROWDED = 0.9
"""The share of the server's connections from which on it is told that they are taken."""
_WIDE = frozenset({"counts", "find", "find_failed", "find_key", "prunable", "unfinished", "vitals", "oldest_transaction"})
"""Reads whose best plan depends on what is asked for and on how much there is."""

_SILENCE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""What a network does that swallows packets without a word is noticed in half a minute to a minute, not after hours."""

_CONNECTING = 5
_LONGEST_NAME = 63
_POOLER = {"": None, "true": True, "false": False}
"""What a URL may say of a pooler."""

_LONG = "5 minutes"
"""How long a transaction of anybody may be open before people are told."""

_TRIES = 5
"""How often a transaction that met a deadlock is run."""


def open_postgres(
    url: str,
    *,
    schema: str = "",
    pooler: bool | None = None,
    migrate: bool = True,
    max_size: int = 4,
    connect_timeout: int | None = None,
) -> SqlStore:
    """The store in a schema of the database of `postgresql://user@host/database?schema=name`; nothing is opened yet.

    `schema` may stand in the URL and is "public" by default; any name will do. `pooler=True` keeps to what works behind a
    transaction pooler such as PgBouncer, `False` says that there is none or that it pools sessions, and `None` finds out; it
    may stand in the URL as `pooler=true` or `false`. With `migrate=False` tables that are missing or old are refused instead
    of changed. At most `max_size` connections are open at once, besides those of twins and lines. Of several hosts the one
    that takes writes is used. `connect_timeout` is in seconds, and 5 where neither URL, service file nor environment say it.
    """
    whole("max_size", max_size, least=1)
    flag("migrate", migrate)
    read = read_url(url)
    name = _schema(text("schema", schema) or read.own.get("schema") or "public")
    told = read.own.get("pooler", "")
    if told not in _POOLER:
        raise ConfigError(f"pooler={told!r} in the URL is neither true nor false")
    if pooler is None:
        pooler = _POOLER[told]
    else:
        flag("pooler", pooler)
    defaults: dict[str, int | str] = {"connect_timeout": _CONNECTING, **_SILENCE}
    if len(read.hosts) > 1:
        defaults["target_session_attrs"] = "read-write"
    settings = {key: value for key, value in defaults.items() if key not in read.known}
    if connect_timeout is not None:
        settings["connect_timeout"] = whole("connect_timeout", connect_timeout, least=1)
    # Unlike a name that is set, this one gives way to that of a service file or the environment.
    settings["fallback_application_name"] = "rota"
    return SqlStore(PostgresDatabase(read.shown, Queries(name), Pool(read, settings, pooler, max_size), migrate))


def _schema(name: str) -> str:
    if len(name.encode()) > _LONGEST_NAME or name.startswith("pg_") or "\0" in name:
        raise ConfigError(
            f"schema={name!r} cannot be: a schema's name has {_LONGEST_NAME} bytes at most and no null character, and those "
            "that begin with pg_ are Postgres's own"
        )
    return name


class PostgresDatabase:
    """A `Database` over a pool of connections."""

    wades = True
    looks_first = False
    kind = "postgres"

    def __init__(self, url: str, queries: Queries, pool: Pool, migrates: bool) -> None:
        self.url = url
        self._queries = queries
        self._pool = pool
        self._migrates = migrates
        self._opened_in = 0
        self._opening = threading.Lock()

    def open(self) -> None:
        if self._opened_in == os.getpid():
            return
        if self._opened_in:
            self._opening = threading.Lock()  # this is a forked child, and a thread of the parent may have held it
        with self._opening:
            if self._opened_in != os.getpid():
                if not self._fits():
                    self._renew()
                self._opened_in = os.getpid()

    def close(self) -> None:
        self._opened_in = 0
        self._pool.close()

    def twin(self) -> PostgresDatabase:
        twin = PostgresDatabase(self.url, self._queries, self._pool.twin(), self._migrates)
        twin._opened_in = self._opened_in  # the tables were looked at already
        return twin

    def migrate(self) -> list[str]:
        ran = [] if self._fits() else self._migrate()
        self._opened_in = os.getpid()
        return ran

    def pending(self) -> list[Migration]:
        with self._pool.session(self._queries, "kept") as session:
            [(there, _)] = session.run("tables", self._names())
            sizes = {str(table): int(rows) for table, rows in session.run("sizes", self._names())}
            return versions.pending(session.run if there else None, self.kind, sizes)

    def there(self) -> bool:
        with self._pool.session(self._queries, "kept") as session:
            [(there, _)] = session.run("tables", self._names())
            return bool(there)

    def schema(self) -> list[tuple[str, str]]:
        name, text = "0000_schema", f"create schema if not exists {self._queries.quoted};"
        return [(name, text), *((name, self._queries.qualify(text)) for name, text in versions.script(self.kind))]

    def read(self, query: str, params: Params) -> list[Row]:
        self.open()
        with self._pool.session(self._queries, "anew" if query in _WIDE else "kept") as session:
            return session.run(query, params)

    def send(self, calls: Sequence[Call], durable: bool = True) -> list[list[Row]]:
        return self._again(lambda session: session.send(calls, durable), plans="kept")

    def work(self, do: Callable[[Run], T]) -> T:
        def transaction(session: Session) -> T:
            exchange = Exchange(session, durable=True)
            answer = do(exchange.run)
            exchange.end()
            return answer

        return self._again(transaction)

    def decide(self, do: Callable[[Send, Send], T]) -> T:
        def transaction(session: Session) -> T:
            exchange = Exchange(session, durable=False)
            answer = do(exchange.send, exchange.last)
            exchange.end()
            return answer

        return self._again(transaction, plans="kept")

    def seal(self, seal: Seal) -> None:
        from rota.stores.postgres_sealing import Sealing  # few need it

        self._again(lambda session: Sealing(session, self._pool.place).seal(seal))

    def unseal(self, id: str) -> bool:
        from rota.stores.postgres_sealing import Sealing

        return self._again(lambda session: Sealing(session, self._pool.place).unseal(id))

    def sealed(self) -> Seal | None:
        found = self.read("sealed", {"schema": self._queries.schema})
        if not found:
            return None
        from rota.stores import sealing

        return sealing.read(found[0][0])

    def beneath(self, seal: str, do: Callable[[Run], T]) -> T:
        from rota.stores import postgres_sealing

        return self.work(lambda run: postgres_sealing.beneath(run, self._queries.schema, seal, do))

    def insert(self, jobs: Iterable[NewJob], now: Micros | None) -> list[Inserted]:
        if isinstance(jobs, list) and len(jobs) == 1:
            return self._insert_one(jobs[0], now)
        chunks = chunked(jobs, _FIRST)
        first = next(chunks, [])
        more = chain.from_iterable(chunks)
        following = next(more, None)
        if following is not None:
            if isinstance(jobs, Sequence):
                return self._insert_sequence(jobs, now)
            # What is left of an iterator cannot be read a second time.
            return self._again(lambda session: self._insert_many(session, chain(first, [following], more), now), tries=1)
        if len(first) >= _MANY:
            return self._again(lambda session: self._insert_many(session, first, now))
        if len(first) == 1:
            return self._insert_one(first[0], now)
        return self._insert_few(first, now) if first else []

    def rest(self, worker: str, asleep: bool) -> None:
        self.send([("rest", {"worker": worker, "asleep": asleep})], durable=False)

    def sleepers(self) -> frozenset[str]:
        return frozenset()

    def line(self) -> Link:
        self.open()
        return PostgresLine(self._pool, self._queries)

    def dialect(self) -> Dialect:
        from rota.stores.postgres_foreign import PostgresDialect  # few need it

        return PostgresDialect(self._queries, self._pool.place, self.read)

    def vitals(self) -> Vitals:
        self.open()
        names = {"jobs_table": self._queries.table("rota_jobs"), "history_table": self._queries.table("rota_history")}
        [row] = self.read("vitals", names | {"now": None})
        now, version, database, live, history, commit, fsync, autovacuum, standby, frozen, taken, most, tables, isolation = row
        warnings = []
        if commit == "off" or fsync == "off":
            warnings.append(
                f"synchronous_commit is {commit} and fsync {fsync}: a crash of the server loses jobs that were accepted"
            )
        if autovacuum == "off":
            warnings.append("autovacuum is off: the tables will grow and claims become slow; switch it on")
        if standby:
            warnings.append("this server is a standby and takes no writes: point the URL at the primary, or name all hosts")
        elif frozen:
            warnings.append(
                "default_transaction_read_only is on for this server or database, so no job comes in and none runs: switch it "
                "off, or point the URL at the server that takes writes"
            )
        if taken >= most * _CROWDED:
            warnings.append(
                f"{taken} of the server's {most} connections are taken, and beyond them programs and workers are refused: "
                "raise max_connections, run fewer processes, or put a pooler in front"
            )
        if isolation != "read committed":
            warnings.append(
                f"transactions are {isolation} here, and Postgres ends those that meet others; behind a pooler Rota chooses "
                "none: set default_transaction_isolation to 'read committed' for this user or database"
            )
        for pid, user, program, seconds in self.read("oldest_transaction", {"patience": _LONG}):
            warnings.append(
                f"a transaction of {user} ({program or 'unnamed'}, process {pid}) is open for {seconds // 60} minutes: "
                "vacuum cannot clear finished jobs meanwhile, and claims become slower"
            )
        facts: dict[str, str | int | float] = {
            "store": "postgres",
            "version": version,
            "database": database,
            "schema": self._queries.schema,
            "live_bytes": live,
            "history_bytes": history,
            "tables": tables,
        }
        return Vitals(now, warnings, facts)

    def _insert_one(self, job: NewJob, now: Micros | None) -> list[Inserted]:
        """One statement and one round trip; only when the job was not added is it looked up why."""
        [added] = self.send([("insert_one", rows.job_params(job, now))])
        return [Inserted(job.id)] if added else self.work(lambda run: settle(run, [job], 0, now))

    def _insert_few(self, jobs: list[NewJob], now: Micros | None) -> list[Inserted]:
        ordered = sorted(jobs, key=key_order)
        if any(job.key is not None for job in jobs):
            answers = self.work(lambda run: add(run, ordered, now))
        else:
            answers = add(lambda query, params: self.send([(query, params)])[0], ordered, now)
        return in_order(jobs, ordered, answers)

    def _insert_sequence(self, jobs: Sequence[NewJob], now: Micros | None) -> list[Inserted]:
        """Where there are keys, in their order over all chunks; what is read from an iterator has it within each."""
        if not any(job.key is not None for job in jobs):
            return self._again(lambda session: self._insert_many(session, jobs, now))
        ordered = sorted(jobs, key=key_order)
        return in_order(jobs, ordered, self._again(lambda session: self._insert_many(session, ordered, now)))

    def _insert_many(self, session: Session, jobs: Iterable[NewJob], now: Micros | None) -> list[Inserted]:
        with session.transaction():
            [[[present]]] = session.send([bound(durable=True), ("clock", {"now": now})])
            answers: list[Inserted] = []
            ahead = Ahead(jobs)
            while (head := ahead.head) is not None:
                if head.key is None:
                    answers += [Inserted(job.id) for job in copy(session, ahead, present)]
                else:
                    chunk = ahead.chunk()
                    ordered = sorted(chunk, key=key_order)
                    answers += in_order(chunk, ordered, add(session.run, ordered, present))
            session.run("ring", {})
            return answers

    def _again(self, do: Callable[[Session], T], tries: int = _TRIES, plans: Plans = "anew") -> T:
        """Run a transaction, anew where Postgres ended it to resolve a deadlock; it has changed nothing then."""
        self.open()
        for left in reversed(range(tries)):
            try:
                with self._pool.session(self._queries, plans) as session:
                    return do(session)
            except StoreUnavailable as error:
                if not left or not isinstance(
                    error.__cause__, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure
                ):
                    raise
        raise AssertionError("unreachable")

    def _fits(self) -> bool:
        with self._pool.session(self._queries, "kept") as session:  # the first look comes before a first insert most often
            [(there, _)] = session.run("tables", self._names())
            return there and versions.fits(session.run, self.kind)

    def _renew(self) -> None:
        """Bring the tables to this version, or say why this process does not."""
        if not self._migrates:
            raise self._refusal()
        try:
            self._migrate()
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                raise self._refusal() from error
            raise

    def _refusal(self) -> SchemaMismatch:
        with self._pool.session(self._queries, "kept") as session:
            [(there, _)] = session.run("tables", self._names())
            where = f"the schema {self._queries.schema!r} of {self.url}"
            return versions.refusal(session.run if there else None, self.kind, where)

    def _migrate(self) -> list[str]:
        with self._pool.session(self._queries) as session:
            return Migrating(session, self._pool.place).run()

    def _names(self) -> Params:
        return names(self._queries)
