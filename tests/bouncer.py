"""PgBouncer for the tests: the one of Debian, kept in a folder of the project's own, so that nothing has to be installed.

A PgBouncer that cannot be had raises: no test is ever skipped for want of one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg

from debian import Program
from servers import SYSTEM_USER, let_in
from working import eventually

PORT = 6432

PACKAGES = (
    *("pgbouncer", "libc6", "libcares2", "libevent-2.1-7t64", "libssl3t64", "libsystemd0", "libpam0g", "libcap2", "libaudit1"),
    *("libcap-ng0", "libzstd1", "zlib1g"),
)
PROGRAM = Program(
    name="PgBouncer",
    folder=Path(__file__).parents[1] / ".pgbouncer",
    # The first of Debian whose PgBouncer knows prepared statements. Its libraries come along: other systems have older ones.
    release="trixie",
    wanted=("download", *PACKAGES),
    remedy="install pgbouncer 1.21 or newer",
)


class Bouncer:
    """A pooler in transaction mode before the server whose socket is in a directory; `url` leads through it.

    Settings are PgBouncer's defaults, save those that are given here.
    """

    def __init__(self, server: Path, **settings: str | int) -> None:
        self._user = SYSTEM_USER if os.geteuid() == 0 else None  # it refuses to run as root
        self._folder = Path(tempfile.mkdtemp(prefix="rota-pgb-"))
        self.hosts(server, **settings)
        (self._folder / "users").write_text('"postgres" ""\n')
        if self._user is not None:
            let_in(self._user, self._folder)
        self._guard: subprocess.Popen[bytes] | None = None

    def hosts(self, server: Path, **settings: str | int) -> None:
        """Write down which server is meant; a running pooler goes by it after `RELOAD`."""
        self._settings = {
            "unix_socket_dir": self._folder,
            "listen_port": PORT,
            "logfile": self._folder / "log",
            "pidfile": self._folder / "pid",
            "auth_type": "trust",
            "auth_file": self._folder / "users",
            "admin_users": "postgres",
            "pool_mode": "transaction",
            **settings,
        }
        lines = [f"[databases]\n* = host={server} port=5432\n[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in self._settings.items()]
        (self._folder / "ini").write_text("\n".join(lines) + "\n")

    def url(self, database: str = "postgres", **query: str) -> str:
        where = {"host": str(self._folder), "port": str(PORT)}
        return f"postgresql://postgres@/{database}?{urlencode(where | query, quote_via=quote)}"

    def start(self) -> None:
        # The shell outlives neither this process nor the pooler that it starts.
        script = '"$@" & child=$!; read -r end; kill -9 $child 2>/dev/null; wait'
        silent = subprocess.DEVNULL
        self._guard = subprocess.Popen(
            ["sh", "-c", script, "sh", *program(), "--quiet", str(self._folder / "ini")],
            user=self._user,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=silent,
            stderr=silent,
            start_new_session=True,
        )
        try:
            eventually(lambda: self.say("show version"))
        except Exception as error:
            raise RuntimeError(f"PgBouncer does not start: {self.log()}") from error

    def say(self, command: str) -> list[tuple[object, ...]]:
        """A command to its console, such as `RECONNECT`."""
        with psycopg.connect(self.url("pgbouncer"), autocommit=True) as console:
            cursor = psycopg.ClientCursor(console)
            cursor.execute(command.encode())
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """End it without a word to anyone."""
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((self._folder / "pid").read_text()), signal.SIGKILL)
        if self._guard is not None:
            self._guard.communicate()
        for left in (self._folder / "pid", self._folder / f".s.PGSQL.{PORT}"):
            left.unlink(missing_ok=True)

    def log(self) -> str:
        log = self._folder / "log"
        return log.read_text() if log.exists() else "it wrote no log"

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def bouncing(server: Path, **settings: str | int) -> Iterator[Bouncer]:
    bouncer = Bouncer(server, **settings)
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.close()


def program() -> Sequence[str]:
    """How to run PgBouncer here."""
    for path in (shutil.which("pgbouncer"), "/usr/sbin/pgbouncer"):
        if path and Path(path).exists():
            return [path]
    root = PROGRAM.root()
    [linker] = root.glob("usr/lib/*/ld-linux-*")
    return [str(linker), "--inhibit-cache", "--library-path", str(linker.parent), str(root / "usr/sbin/pgbouncer")]
