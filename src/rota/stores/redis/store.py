"""The store in a Redis or Valkey server."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import msgpack
from msgspec.structs import astuple

from rota.clock import Micros
from rota.errors import ConfigError, NotSupported, StoreError
from rota.model import (
    Ask,
    AttemptRow,
    Changed,
    Claimed,
    Count,
    Edit,
    Ended,
    Filter,
    Flow,
    Inserted,
    JobRow,
    LimitRow,
    Migration,
    Move,
    NewJob,
    Paused,
    PauseRow,
    Promoted,
    Pulse,
    Reaped,
    Report,
    RoomRow,
    Round,
    Seal,
    Settled,
    State,
    TaskRow,
    Turn,
    Unfinished,
    Vitals,
    Whole,
    WorkerRow,
)
from rota.stores.finishing import has_succeeded
from rota.stores.given import flag, number, text, whole
from rota.stores.redis import changing, checks, counting, flowing, looking, moving, records, rooms, schema
from rota.stores.redis.adding import insert
from rota.stores.redis.client import MANY, Client, pieces
from rota.stores.redis.connections import Connections, Waits
from rota.stores.redis.line import RedisLine, turn, turn_values
from rota.stores.redis.rooms import load_rooms
from rota.stores.redis.url import read_url

if TYPE_CHECKING:
    from rota.rules.sizes import Size
    from rota.stores.base import Limits
    from rota.stores.foreign import Dialect
    from rota.stores.redis.limiting import Admitting

_PREFIX = "rota"


def open_redis(
    url: str,
    *,
    prefix: str = "",
    migrate: bool = True,
    max_size: int = 4,
    connect_timeout: float = 5.0,
    timeout: float = 30.0,
) -> RedisStore:
    """The store under a prefix in the Redis or Valkey of `redis://user:password@host:6379/0`; nothing is opened yet.

    `rediss://` encrypts, `unix:///path/to/socket?db=0` goes through a socket, and
    `redis+sentinel://host:26379,host:26379/service/0` (or `rediss+sentinel://`) asks Sentinels for the server. `prefix` may
    stand in the URL and is "rota" by default; all keys begin with it, in braces. With `migrate=False` a place without a store
    is refused. At most `max_size` connections are open at once, besides those of twins and lines. The timeouts are in seconds:
    for a connection to be made, and for an answer.
    """
    flag("migrate", migrate)
    whole("max_size", max_size, least=1)
    address = read_url(url)
    name = text("prefix", prefix or address.prefix or _PREFIX)
    if "{" in name or "}" in name:
        raise ConfigError(
            f"prefix={name!r} cannot be: braces in a key tell a cluster where it belongs, and Rota sets them itself"
        )
    waits = Waits(number("connect_timeout", connect_timeout, least=0.001), number("timeout", timeout, least=0.001))
    return RedisStore(address.shown, Client(Connections(address, waits, max_size), name), migrate)


class RedisStore:
    """A `Store` that keeps its jobs in Redis. `rota.stores.base` says what each operation promises."""

    def __init__(self, url: str, client: Client, migrates: bool) -> None:
        self.url = url
        self._client = client
        self._admitting: Admitting | None = None
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
                if self._migrates:
                    schema.make(self._client)
                elif not schema.there(self._client):
                    raise schema.refusal(self.url)
                self._opened_in = os.getpid()

    def close(self) -> None:
        self._opened_in = 0
        self._client.connections.close()

    def twin(self) -> RedisStore:
        twin = RedisStore(self.url, self._client.twin(), self._migrates)
        twin._opened_in = self._opened_in  # the layout was looked at already
        return twin

    def migrate(self) -> list[str]:
        ran = schema.make(self._client)
        self._opened_in = os.getpid()
        return ran

    def pending(self) -> list[Migration]:
        return schema.pending(self._client)

    def there(self) -> bool:
        return schema.noted(self._client)

    def schema(self) -> list[tuple[str, str]]:
        return schema.steps(self._client.prefix)

    # -- jobs come in ---------------------------------------------------------------------------

    def insert(self, jobs: Iterable[NewJob], now: Micros | None = None) -> list[Inserted]:
        return insert(self._ready(), jobs, now)

    def declare(self, tasks: Sequence[TaskRow]) -> None:
        if tasks:
            self._ready().run("declare", [astuple(task) for task in tasks])

    def declared(self, name: str) -> TaskRow | None:
        client = self._ready()
        found = client.send(b"HGET", client.key("tasks"), name.encode())
        return records.task(name, found) if isinstance(found, bytes) else None

    # -- workers --------------------------------------------------------------------------------

    def join(self, worker: WorkerRow, now: Micros | None = None) -> None:
        added = self._ready().run("join", worker.id, worker.lease, records.worker_row(worker), now=now)
        if not msgpack.decode(added, type=bool):
            raise StoreError(
                f"a worker with the id {worker.id!r} is known already: each start of a worker needs an id of its own"
            )

    def leave(self, worker: str, now: Micros | None = None) -> None:
        self._ready().run("leave", worker, now=now)

    def expire(self, worker: str, now: Micros | None = None) -> None:
        self._ready().run("expire", worker, now=now)

    def beat(self, worker: str, running: Sequence[Report], now: Micros | None = None) -> Pulse:
        lost: frozenset[str] = frozenset()
        cancelled: frozenset[str] = frozenset()
        for piece in list(pieces(running)) or [[]]:
            reports = [(records.bare(report.id), report.claim, report.progress) for report in piece]
            alive, gone, asked, needs = records.beat(self._ready().run("beat", worker, reports, now=now))
            schema.check(needs)
            if not alive:
                return Pulse(alive=False, lost=frozenset(report.id for report in running))
            lost, cancelled = lost | gone, cancelled | asked
        return Pulse(alive=True, lost=lost, cancelled=cancelled)

    def rest(self, worker: str, asleep: bool) -> None:
        self._ready().run("rest", worker, asleep)

    def workers(self) -> list[WorkerRow]:
        return records.workers(self._ready().run("workers"))

    def lost(self, limit: int, now: Micros | None = None) -> Reaped:
        return records.reaped(self._ready().run("lost", min(limit, MANY), now=now))

    def reconcile(self, worker: str, in_hand: Sequence[str], now: Micros | None = None) -> int:
        answer = self._ready().run("reconcile", worker, [records.bare(id) for id in in_hand], now=now)
        return msgpack.decode(answer, type=int)

    # -- the hot path ---------------------------------------------------------------------------

    def claim(self, ask: Ask, now: Micros | None = None) -> list[Claimed]:
        return self.finish(ask.worker, [], ask, now).claimed

    def finish(self, worker: str, ends: Sequence[Ended], ask: Ask | None = None, now: Micros | None = None) -> Turn:
        return Turn(*turn(ends, self._ready().run("turn", *turn_values(worker, ends, ask), now=now)))

    def finish_after(self, worker: str, ends: Sequence[Ended], now: Micros | None = None) -> Settled:
        """No transaction of a body's leads to this store, so none is open; what is done already was finished before."""
        counted = self.finish(worker, ends, None, now).counted
        rest = [end for end in ends if end.id not in counted]
        done = frozenset(end.id for end in rest if has_succeeded(self, worker, end.id, end.claim))
        return Settled(done=done, counted=counted, open=frozenset())

    def admit(self, ask: Ask, limits: Limits, now: Micros | None = None) -> Round:
        from rota.stores.redis.limiting import Admitting  # without limits nothing of them is loaded

        client = self._ready()
        self._admitting = self._admitting or Admitting(client)
        return self._admitting.admit(ask, limits, now)

    def set_limit(self, name: str, size: Size | None, now: Micros | None = None) -> None:
        rooms.set_limit(self._ready(), name, size, now)

    def overrides(self) -> dict[str, Size]:
        return rooms.overrides(self._ready())

    def rooms(self) -> list[LimitRow]:
        return rooms.rooms(self._ready())

    def pause(
        self, queue: str, until: Micros | None = None, span: Micros | None = None, by: str = "", now: Micros | None = None
    ) -> None:
        self._ready().run("pause", queue, until, span, by, now=now)

    def resume(self, queue: str, now: Micros | None = None) -> bool:
        return msgpack.decode(self._ready().run("resume", queue, now=now), type=bool)

    def paused(self, now: Micros | None = None) -> Paused:
        present, found = records.pauses(self._ready().run("pauses", now=now))
        there = [pause for pause in found if pause.until is None or pause.until > present]
        ends = [pause.until - present for pause in there if pause.until is not None]
        return Paused(frozenset(pause.queue for pause in there), min(ends, default=None))

    def pauses(self) -> list[PauseRow]:
        return records.pauses(self._ready().run("pauses"))[1]

    def promote(self, limit: int, now: Micros | None = None) -> Promoted:
        return records.promoted(self._ready().run("promote", min(limit, MANY), now=now))

    def queues(self) -> list[str]:
        client = self._ready()
        found = client.send(b"SMEMBERS", client.key("queued"))
        assert isinstance(found, list | set)
        return sorted(name.decode() for name in found)

    def line(self) -> RedisLine:
        return RedisLine(self._ready())

    def dialect(self) -> Dialect:
        raise NotSupported(
            f"jobs in {self.url} cannot be part of a transaction of yours, which is in another database: enqueue after its "
            "commit, note in a table of that database what is to be enqueued (an outbox), or use the store in that database"
        )

    # -- looking and changing -------------------------------------------------------------------

    def get(self, ids: Sequence[str]) -> list[JobRow]:
        client = self._ready()
        return [row for piece in pieces(ids) for row in records.jobs(client.run("get", [records.bare(id) for id in piece]))]

    def attempts(self, id: str) -> list[AttemptRow]:
        client = self._ready()
        found = client.send(b"LRANGE", client.key(f"attempts:{records.bare(id)}"), b"0", b"-1")
        assert isinstance(found, list)
        return [records.attempt(packed) for packed in found]

    def find(self, which: Filter, limit: int, before: str | None = None) -> list[JobRow]:
        return looking.find(self._ready(), which, limit, before)

    def counts(self) -> list[Count]:
        return counting.counts(self._ready())

    def unfinished(self) -> list[Unfinished]:
        return counting.unfinished(self._ready())

    def flow(self, span: Micros, now: Micros | None = None) -> list[Flow]:
        return flowing.flow(self._ready(), span, now)

    def latest(self, state: State, limit: int) -> list[JobRow]:
        return looking.latest(self._ready(), state, limit)

    def change(self, move: Move, ids: Sequence[str], now: Micros | None = None, only: Collection[State] = ()) -> list[Changed]:
        return changing.change(self._ready(), move, ids, now, only)

    def edit(self, edit: Edit, ids: Sequence[str], now: Micros | None = None, only: Collection[State] = ()) -> list[Changed]:
        return changing.edit(self._ready(), edit, ids, now, only)

    def prune(self, ages: Mapping[State, Micros], limit: int, now: Micros | None = None) -> dict[State, int]:
        deleted = changing.prune(self._ready(), ages, limit, now)
        rooms.prune_rooms(self._client, now)
        return deleted

    def prunable(self, ages: Mapping[State, Micros], now: Micros | None = None) -> dict[State, int]:
        return changing.prunable(self._ready(), ages, now)

    def vitals(self) -> Vitals:
        return checks.vitals(self._ready())

    # -- moving to another store ----------------------------------------------------------------

    def seal(self, seal: Seal) -> None:
        moving.seal(self._ready(), seal)

    def unseal(self, id: str) -> bool:
        return moving.unseal(self._ready(), id)

    def sealed(self) -> Seal | None:
        return moving.sealed(self._ready())

    def dump(self, after: str | None, limit: int) -> list[Whole]:
        return moving.dump(self._ready(), after, limit)

    def load(self, seal: str, jobs: Sequence[Whole], now: Micros | None = None) -> int:
        return moving.load(self._ready(), seal, jobs, now)

    def dump_rooms(self, after: RoomRow | None, limit: int) -> list[RoomRow]:
        return rooms.dump_rooms(self._ready(), after, limit)

    def load_rooms(self, seal: str, rooms: Sequence[RoomRow]) -> int:
        return load_rooms(self._ready(), seal, rooms)

    def declarations(self) -> list[TaskRow]:
        return moving.declarations(self._ready())

    # -------------------------------------------------------------------------------------------

    def _ready(self) -> Client:
        """What runs scripts, once the store is open."""
        self.open()
        return self._client
