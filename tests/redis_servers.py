"""Real Valkey and Redis servers for the tests, so that a fresh machine needs no package but Python's.

A server that cannot be started raises: no test is ever skipped for want of one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, Literal
from urllib.parse import quote, urlencode

import redis
import trustme
from redis.backoff import NoBackoff
from redis.retry import Retry

from redis_versions import ENCRYPTING, NEWEST, program
from servers import quick_folder
from working import eventually

Listen = Literal["socket", "tcp", "tls"]

ADMIN = "tests"
"""The user that the tests themselves are, on every server, whatever passwords others need."""

SETTINGS = {
    "appendonly": "yes",
    "appendfsync": "always",
    "save": "",
    "bind": "127.0.0.1",
    "protected-mode": "no",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",  # a replica need not wait for others
}

HOST = "127.0.0.1"
PORTS = range(10_000, 20_000)
"""Where servers listen. The bus of a cluster is 10000 above, and both are below what systems give to outgoing connections."""

SLOTS = range(16_384)
PATIENCE = 30.0
"""How many seconds a server may take to start or to stop."""

GUARD = """
pid=none
while read -r word && [ "$word" != end ]; do pid=$word; done
[ "$pid" = none ] || kill -s KILL -- "-$pid"
for try in 1 2 3 4 5 6 7 8; do rm -rf "$0" && exit; sleep 0.1; done
"""
"""Waits for the end of this process, however it comes, and leaves nothing of the server behind: it may take a moment to die."""


class RedisServer:
    """A Valkey or Redis of one's own: made on construction, listening on a socket in its directory once started.

    It listens on a port of this machine too, plain or with TLS, where `listen` says so; `url` leads to that. The default user
    needs the `password`, if there is one; `users` are others, each with the rules that `ACL SETUSER` knows. Settings are the
    server's, with `_` for `-`. One that is made from another server, which listens on a port, is its replica, and lets in whom
    that does. One with
    `cluster_enabled="yes"` is a cluster by itself and has all the slots. Its directory is removed by `close`.
    """

    def __init__(
        self,
        version: str | None = None,
        listen: Listen = "socket",
        password: str = "",
        users: Mapping[str, str] | None = None,
        primary: RedisServer | None = None,
        **settings: str | int,
    ) -> None:
        if primary is not None:
            if primary.port is None:
                raise ValueError("a replica reaches its primary on a port only: make that with listen='tcp' or 'tls'")
            listen, password, users = primary.listen, primary.password, primary.users
        self.listen: Listen = listen
        self.version = version or (ENCRYPTING if self.listen == "tls" else NEWEST)
        self._program = program(self.version)
        self.password = password
        self.users = dict(users or {})
        self.port = None if self.listen == "socket" else free_port()
        self._daemon = Daemon("rota-redis-")
        self.directory = self._daemon.directory
        self.socket = self.directory / "socket"
        self.authority = self.directory / "authority.pem"
        """The certificate that vouches for the server's, where there is TLS."""
        self._trust = None if listen != "tls" else primary._trust if primary is not None else trustme.CA()
        wanted = SETTINGS | self._addresses() | {name.replace("_", "-"): str(value) for name, value in settings.items()}
        self._clustered = wanted.get("cluster-enabled") == "yes"
        self._settings = self.directory / "conf"
        lines = [" ".join((name, value or '""')) for name, value in wanted.items()]
        lines += [f"user {name} {rules}" for name, rules in ({ADMIN: "on nopass ~* &* +@all"} | self.users).items()]
        if password:
            lines.append(f'requirepass "{password}"')
        if primary is not None:
            lines.append(f"replicaof {HOST} {primary.port}")
        self._settings.write_text("\n".join(lines) + "\n")
        self._admin = self.client(client_name=ADMIN)

    # -- its life -------------------------------------------------------------------------------

    def start(self) -> None:
        self._daemon.start([*self._program, str(self._settings)], self._admin.ping)
        if self._clustered:
            self._take_slots()

    def stop(self) -> None:
        self._daemon.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server at once, as a crash of the machine would."""
        self._daemon.kill()

    def pause(self) -> None:
        """Have the server stand still: its connections stay, and nobody is answered."""
        self._daemon.pause()

    def resume(self) -> None:
        self._daemon.resume()

    def set(self, **settings: str | int) -> None:
        """Change settings while it runs; they last over a restart."""
        for name, value in settings.items():
            self._admin.config_set(name.replace("_", "-"), value)
        self._admin.config_rewrite()

    def promote(self) -> None:
        """Have a replica take writes."""
        self._admin.replicaof("NO", "ONE")
        self._admin.config_rewrite()

    def follow(self, primary: RedisServer) -> None:
        """Become the replica of another server, and lose what that does not have."""
        self._admin.replicaof(HOST, str(primary.port))
        self._admin.config_rewrite()

    @property
    def running(self) -> bool:
        return self._daemon.running

    @property
    def log(self) -> str:
        return self._daemon.log

    def close(self) -> None:
        """Kill the server and remove its directory."""
        self._admin.close()
        self._daemon.close()

    # -- what is in it --------------------------------------------------------------------------

    def url(self, database: int = 0, user: str = "", password: str | None = None, **query: str) -> str:
        """Where it listens, for the default user with the password that it needs, or for another."""
        secret = self.password if password is None else password
        who = f"{quote(user, safe='')}:{quote(secret, safe='')}@" if user or secret else ""
        match self.listen:
            case "socket":
                return f"unix://{who}{self.socket}?{urlencode({'db': str(database)} | query)}"
            case "tcp":
                return f"redis://{who}{HOST}:{self.port}/{database}" + (f"?{urlencode(query)}" if query else "")
            case "tls":
                trusted = {"ssl_ca_certs": str(self.authority)}
                return f"rediss://{who}{HOST}:{self.port}/{database}?{urlencode(trusted | query)}"

    def client(self, **options: Any) -> redis.Redis:
        """The tests' own user, on the socket: with text for bytes, and tried again at once where a connection was lost."""
        usual = {"decode_responses": True, "retry": Retry(NoBackoff(), 1), "socket_timeout": PATIENCE}
        return redis.Redis(unix_socket_path=str(self.socket), username=ADMIN, password="any", **(usual | options))

    def info(self, section: str | None = None) -> dict[str, Any]:
        return self._admin.info(section) if section else self._admin.info()

    def clients(self) -> dict[int, str]:
        """The clients that are connected now, by id, each with what it is called and what it did last.

        Other servers are none of them, nor is the connection over which this is asked.
        """
        return {
            int(each["id"]): f"{each['user']} {each['name']}: {each['cmd']}"
            for each in self._admin.client_list()
            if each["name"] != ADMIN and not set(each["flags"]) & {"M", "S"}
        }

    def kill_clients(self) -> int:
        """Cut every client off, those that listen to channels too, and say how many there were."""
        kinds = ("normal", "pubsub")
        return sum(int(self._admin.client_kill_filter(_type=kind, skipme=True)) for kind in kinds)

    def _addresses(self) -> Mapping[str, str]:
        """The settings that say where the server listens, and where its files are."""
        here = {"dir": str(self.directory), "unixsocket": str(self.socket), "masteruser": ADMIN, "masterauth": "any"}
        if self._trust is None:
            return here | {"port": str(self.port or 0)}
        certificate = self._trust.issue_cert(HOST, "localhost")
        self._trust.cert_pem.write_to_path(self.authority)
        certificate.private_key_pem.write_to_path(self.directory / "key.pem")
        certificate.cert_chain_pems[0].write_to_path(self.directory / "certificate.pem")
        return here | {
            "port": "0",
            "tls-port": str(self.port),
            "tls-ca-cert-file": str(self.authority),
            "tls-key-file": str(self.directory / "key.pem"),
            "tls-cert-file": str(self.directory / "certificate.pem"),
            "tls-auth-clients": "no",
            "tls-replication": "yes",
        }

    def _take_slots(self) -> None:
        if not self._admin.execute_command("CLUSTER SLOTS"):
            self._admin.execute_command("CLUSTER ADDSLOTS", *SLOTS)
        # A node that has just begun refuses to work for two seconds, in case that others know better.
        eventually(lambda: self._admin.execute_command("CLUSTER INFO")["cluster_state"] == "ok")


class Sentinel:
    """A Sentinel that watches a server, which listens on a port, and its replicas: alone, it decides alone.

    Clients ask it at `address` where the primary called `name` is.
    """

    def __init__(self, watched: RedisServer, name: str = "rota", patience: int = 1000) -> None:
        """A server is taken for dead after so many milliseconds without an answer."""
        if watched.listen != "tcp":
            raise ValueError("a Sentinel of these reaches servers on a plain port only: make them with listen='tcp'")
        self.name = name
        self.address = (HOST, free_port())
        self._program = program(watched.version)
        self._daemon = Daemon("rota-sentinel-")
        self._settings = self._daemon.directory / "conf"
        lines = [
            *(f"port {self.address[1]}", f"bind {HOST}", "protected-mode no", f"dir {self._daemon.directory}"),
            f"sentinel monitor {name} {HOST} {watched.port} 1",
            f"sentinel auth-user {name} {ADMIN}",
            f"sentinel auth-pass {name} any",
            f"sentinel down-after-milliseconds {name} {patience}",
            f"sentinel failover-timeout {name} 3000",
        ]
        self._settings.write_text("\n".join(lines) + "\n")
        self._admin = self.client()

    def start(self) -> None:
        self._daemon.start([*self._program, str(self._settings), "--sentinel"], self._admin.ping)
        with suppress(redis.ResponseError):  # Redis 6.2 does not know it, and sees a new replica after ten seconds
            self._admin.execute_command("SENTINEL DEBUG", "info-period", "100", "publish-period", "100")

    def kill(self) -> None:
        self._daemon.kill()

    def client(self, **options: Any) -> redis.Redis:
        """A connection to the Sentinel itself."""
        host, port = self.address
        usual = {"decode_responses": True, "retry": Retry(NoBackoff(), 1), "socket_timeout": PATIENCE}
        return redis.Redis(host=host, port=port, **(usual | options))

    def primary(self) -> tuple[str, int]:
        """Host and port of the server that it takes for the primary now."""
        return self._admin.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", self.name)

    def replicas(self) -> int:
        """How many replicas it knows that could take over."""
        known = self._admin.sentinel_slaves(self.name)
        return sum(not each["is_sdown"] and each["master-link-status"] == "ok" for each in known)

    @property
    def log(self) -> str:
        return self._daemon.log

    def close(self) -> None:
        self._admin.close()
        self._daemon.close()


class Daemon:
    """A program with a directory of its own: both are gone after `close`, and after this process, however that ends."""

    def __init__(self, prefix: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=prefix, dir=quick_folder()))
        silent = subprocess.DEVNULL
        self._guard = subprocess.Popen(
            ["sh", "-c", GUARD, str(self.directory)],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=silent,
            stderr=silent,
            text=True,
            start_new_session=True,
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], answers: Callable[[], object]) -> None:
        """Return when the program answers; raise with what it logged when it does not."""
        if self.running:
            raise RuntimeError("the server runs already")
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._tell(str(self._process.pid))
        try:
            eventually(lambda: not self.running or answers(), within=PATIENCE)
        except Exception as error:
            self.kill()
            raise self._failed(f"did not answer within {PATIENCE:g} s") from error
        if not self.running:
            raise self._failed("does not start")

    def stop(self) -> None:
        """Let the program end in its own time."""
        process = self._there()
        os.killpg(process.pid, signal.SIGCONT)
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failed(f"did not stop within {PATIENCE:g} s") from None
        self._tell("none")

    def kill(self) -> None:
        process = self._there()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._tell("none")

    def pause(self) -> None:
        process = self._there()
        os.killpg(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # it goes on for a moment

    def resume(self) -> None:
        os.killpg(self._there().pid, signal.SIGCONT)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        log = self.directory / "log"
        return log.read_text(errors="replace") if log.exists() else ""

    def close(self) -> None:
        if self.running:
            self.kill()
        if self._guard.poll() is None:
            self._guard.communicate("end\n")

    def _there(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self.running:
            raise RuntimeError(f"the server is not running; its log says:\n{self.log}")
        return self._process

    def _tell(self, word: str) -> None:
        """Have the guard know which processes to end."""
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{word}\n")
        self._guard.stdin.flush()

    def _failed(self, what: str) -> RuntimeError:
        return RuntimeError(f"the server {what}; its log says:\n{self.log}")


@contextmanager
def serving(version: str | None = None, **options: Any) -> Iterator[RedisServer]:
    """A server that runs until the end of the block."""
    server = RedisServer(version, **options)
    try:
        server.start()
        yield server
    finally:
        server.close()


def free_port() -> int:
    """A port on which nobody listens, with one for the bus of a cluster above it."""
    for port in SystemRandom().sample(PORTS, 100):  # other test processes look for one too
        if _free(port) and _free(port + 10_000):
            return port
    raise RuntimeError(f"of the ports {PORTS.start} to {PORTS.stop} hardly any is free")


def _free(port: int) -> bool:
    with closing(socket.socket()) as trial:
        try:
            trial.bind((HOST, port))
        except OSError:
            return False
        return True
