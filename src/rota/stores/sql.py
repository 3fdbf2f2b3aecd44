"""The store over a SQL database: each operation as named queries in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rota.clock import Micros
from rota.errors import StoreError
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
    Lost,
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
from rota.stores import moves, rows, versions
from rota.stores.base import Limits
from rota.stores.database import Call, Database
from rota.stores.sql_line import SqlLine, turn, turn_calls

if TYPE_CHECKING:
    from rota.rules.sizes import Size
    from rota.stores.foreign import Dialect

_ROOMS = 20
"""So many rooms of limits are deleted for each job that a pruning may delete: they are small, and each new key makes one."""
_STEPS = 50
"""So many times over, each in a transaction of its own: a worker may meet more new keys between two prunings than one takes."""


class SqlStore:
    """A `Store` that keeps its jobs in a SQL database. `rota.stores.base` says what each operation promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect: Dialect | None = None
        self.url = database.url

    def open(self) -> None:
        self._database.open()

    def close(self) -> None:
        self._database.close()

    def twin(self) -> SqlStore:
        return SqlStore(self._database.twin())

    def migrate(self) -> list[str]:
        return self._database.migrate()

    def pending(self) -> list[Migration]:
        return self._database.pending()

    def there(self) -> bool:
        return self._database.there()

    def schema(self) -> list[tuple[str, str]]:
        return self._database.schema()

    # -- jobs come in ---------------------------------------------------------------------------

    def insert(self, jobs: Iterable[NewJob], now: Micros | None = None) -> list[Inserted]:
        return self._database.insert(jobs, now)

    def declare(self, tasks: Sequence[TaskRow]) -> None:
        calls: list[Call] = [
            ("declare", {"name": task.name, "queue": task.queue, "priority": task.priority, "max_attempts": task.max_attempts})
            for task in sorted(tasks, key=lambda task: task.name)  # one order for all, so that two declarers cannot deadlock
        ]
        if calls:
            self._database.send(calls)

    def declared(self, name: str) -> TaskRow | None:
        found = self._database.read("declared", {"name": name})
        return TaskRow(*found[0]) if found else None

    # -- workers --------------------------------------------------------------------------------

    def join(self, worker: WorkerRow, now: Micros | None = None) -> None:
        # The worker may know other sizes of limits than those who held jobs by them.
        added, _ = self._database.send([("join", rows.worker_params(worker, now)), ("look_again", {"now": now})], durable=False)
        if not added:
            raise StoreError(
                f"a worker with the id {worker.id!r} is known already: each start of a worker needs an id of its own"
            )

    def leave(self, worker: str, now: Micros | None = None) -> None:
        self._database.rest(worker, False)
        self._database.work(lambda run: moves.leave(run, worker, now))

    def expire(self, worker: str, now: Micros | None = None) -> None:
        self._database.send([("expire", {"worker": worker, "now": now})], durable=False)

    def beat(self, worker: str, running: Sequence[Report], now: Micros | None = None) -> Pulse:
        calls: list[Call] = [("beat", {"worker": worker, "now": now}), ("needs", {})]
        progress = rows.report_params(worker, running)
        if progress["ids"]:
            calls.append(("progress", progress))
        if running:
            calls.append(("reported", {"worker": worker, "ids": [report.id for report in running]}))
        answers = self._database.send(calls, durable=False)
        versions.check(answers[1][0][0], self._database.kind)
        if not answers[0]:
            return Pulse(alive=False, lost=frozenset(report.id for report in running))
        found = {job: (claim, cancelling) for job, claim, cancelling in answers[-1]} if running else {}
        ours = [report for report in running if report.id in found and found[report.id][0] == report.claim]
        return Pulse(
            alive=True,
            lost=frozenset(report.id for report in running) - {report.id for report in ours},
            cancelled=frozenset(report.id for report in ours if found[report.id][1]),
        )

    def rest(self, worker: str, asleep: bool) -> None:
        self._database.rest(worker, asleep)

    def workers(self) -> list[WorkerRow]:
        asleep = self._database.sleepers()
        known = [rows.worker(row) for row in self._database.read("workers", {})]
        return [replace(worker, asleep=True) if worker.id in asleep else worker for worker in known]

    def lost(self, limit: int, now: Micros | None = None) -> Reaped:
        taken: list[Lost] = []
        lease_until, present = self._database.read("next_lease", {"now": now})[0]
        if lease_until is not None and lease_until <= present:
            taken = self._database.work(lambda run: moves.reap(run, limit, now))
            lease_until, present = self._database.read("next_lease", {"now": now})[0]
        return Reaped(taken, None if lease_until is None else max(0, lease_until - present))

    def reconcile(self, worker: str, in_hand: Sequence[str], now: Micros | None = None) -> int:
        return self._database.work(lambda run: moves.reconcile(run, worker, in_hand, now))

    # -- the hot path ---------------------------------------------------------------------------

    def claim(self, ask: Ask, now: Micros | None = None) -> list[Claimed]:
        return self.finish(ask.worker, [], ask, now).claimed

    def finish(self, worker: str, ends: Sequence[Ended], ask: Ask | None = None, now: Micros | None = None) -> Turn:
        calls = turn_calls(self._database, worker, ends, ask, now)
        return turn(calls, self._database.send(calls, durable=bool(ends)) if calls else [])

    def finish_after(self, worker: str, ends: Sequence[Ended], now: Micros | None = None) -> Settled:
        return self._database.work(lambda run: moves.finish_after(run, worker, ends, now))

    def admit(self, ask: Ask, limits: Limits, now: Micros | None = None) -> Round:
        from rota.stores.limiting import admit_jobs  # without limits nothing of them is loaded

        return admit_jobs(self._database, ask, limits, now)

    def set_limit(self, name: str, size: Size | None, now: Micros | None = None) -> None:
        change: Call = ("end_override", {"name": name}) if size is None else ("override", {"name": name, "size": f"{size}"})
        self._database.send([change])
        # What a claim held meanwhile, it held under a room's lock; who locks it later goes by the new size.
        self._database.work(lambda run: moves.look_at_limit(run, name, now))

    def overrides(self) -> dict[str, Size]:
        from rota.rules.sizes import read_size

        return {name: read_size(size) for name, size in self._database.read("overrides", {})}

    def rooms(self) -> list[LimitRow]:
        return [LimitRow(*row) for row in self._database.read("rooms", {})]

    def pause(
        self, queue: str, until: Micros | None = None, span: Micros | None = None, by: str = "", now: Micros | None = None
    ) -> None:
        params = {"queue": queue, "until": until, "span": span, "by": by, "now": now}
        self._database.send([("pause", params), ("ring", {})])

    def resume(self, queue: str, now: Micros | None = None) -> bool:
        ended, _ = self._database.send([("resume", {"queue": queue, "now": now}), ("ring", {})])
        return any(row[0] for row in ended)

    def paused(self, now: Micros | None = None) -> Paused:
        found = self._database.read("paused", {"now": now})
        ends = [until - present for _, until, present in found if until is not None]
        return Paused(frozenset(row[0] for row in found), min(ends, default=None))

    def pauses(self) -> list[PauseRow]:
        return [PauseRow(*row) for row in self._database.read("pauses", {})]

    def promote(self, limit: int, now: Micros | None = None) -> Promoted:
        count = 0
        due, present = self._database.read("next_due", {"now": now})[0]
        if due is not None and due <= present:
            [[[count, *_]]] = self._database.send([("promote", {"limit": limit, "now": now})])
            due, present = self._database.read("next_due", {"now": now})[0]
        return Promoted(count, None if due is None else max(0, due - present))

    def queues(self) -> list[str]:
        return [name for (name,) in self._database.read("queues", {})]

    def line(self) -> SqlLine:
        return SqlLine(self._database)

    def dialect(self) -> Dialect:
        if self._dialect is None:
            self._dialect = self._database.dialect()
        return self._dialect

    # -- looking and changing -------------------------------------------------------------------

    def get(self, ids: Sequence[str]) -> list[JobRow]:
        return [rows.job(row) for row in self._database.read("get", {"ids": list(ids)})]

    def attempts(self, id: str) -> list[AttemptRow]:
        return [rows.attempt(row) for row in self._database.read("attempts", {"ids": [id]})]

    def find(self, which: Filter, limit: int, before: str | None = None) -> list[JobRow]:
        query = "find_key" if which.key is not None else "find_failed" if which.states == (State.FAILED,) else "find"
        return [rows.job(row) for row in self._database.read(query, rows.find_params(which, limit, before))]

    def counts(self) -> list[Count]:
        return [rows.count(row) for row in self._database.read("counts", {})]

    def unfinished(self) -> list[Unfinished]:
        return [
            Unfinished(queue, State(state), worker, jobs, oldest)
            for queue, state, worker, jobs, oldest in self._database.read("unfinished", {})
        ]

    def flow(self, span: Micros, now: Micros | None = None) -> list[Flow]:
        return [
            Flow(queue, worker, None if state is None else State(state), jobs)
            for queue, worker, state, jobs in self._database.read("flow", {"span": span, "now": now})
        ]

    def latest(self, state: State, limit: int) -> list[JobRow]:
        return [rows.job(row) for row in self._database.read("latest", {"state": state.value, "limit": limit})]

    def change(self, move: Move, ids: Sequence[str], now: Micros | None = None, only: Collection[State] = ()) -> list[Changed]:
        if not ids:
            return []
        became = self._database.work(lambda run: moves.change(run, move, ids, now, only))
        return [became[job] for job in ids]

    def edit(self, edit: Edit, ids: Sequence[str], now: Micros | None = None, only: Collection[State] = ()) -> list[Changed]:
        if not ids:
            return []
        became = self._database.work(lambda run: moves.edit(run, edit, ids, now, only))
        return [became[job] for job in ids]

    def prune(self, ages: Mapping[State, Micros], limit: int, now: Micros | None = None) -> dict[State, int]:
        deleted, left = dict.fromkeys(ages, 0), limit
        for state, age in ages.items():
            params = {"state": state.value, "age": age, "now": now}
            if left > 0 and not (self._database.looks_first and not self._database.read("old", params | {"limit": 1})):
                deleted[state] = self._database.work(partial(moves.prune, params=params | {"limit": left}))
                left -= deleted[state]
        for _ in range(_STEPS):
            if not self._database.read("idle_rooms", {"limit": 1, "now": now}):
                break
            self._database.send([("prune_rooms", {"limit": _ROOMS * limit, "now": now})], durable=False)
        return deleted

    def prunable(self, ages: Mapping[State, Micros], now: Micros | None = None) -> dict[State, int]:
        return {
            state: self._database.read("prunable", {"state": state.value, "age": age, "now": now})[0][0]
            for state, age in ages.items()
        }

    def vitals(self) -> Vitals:
        vitals, seal = self._database.vitals(), self._database.sealed()
        return vitals if seal is None else replace(vitals, warnings=[seal.words, *vitals.warnings])

    # -- moving to another store ----------------------------------------------------------------

    def seal(self, seal: Seal) -> None:
        self._database.seal(seal)

    def unseal(self, id: str) -> bool:
        return self._database.unseal(id)

    def sealed(self) -> Seal | None:
        return self._database.sealed()

    def dump(self, after: str | None, limit: int) -> list[Whole]:
        from rota.stores import dumping  # few need it

        return dumping.dump(self._database.read, after, limit)

    def load(self, seal: str, jobs: Sequence[Whole], now: Micros | None = None) -> int:
        from rota.stores import dumping

        return self._database.beneath(seal, lambda run: dumping.load(run, jobs, now))

    def dump_rooms(self, after: RoomRow | None, limit: int) -> list[RoomRow]:
        from rota.stores import dumping  # few need it

        return dumping.dump_rooms(self._database.read, after, limit)

    def load_rooms(self, seal: str, rooms: Sequence[RoomRow]) -> int:
        from rota.stores import dumping

        return self._database.beneath(seal, lambda run: dumping.load_rooms(run, rooms))

    def declarations(self) -> list[TaskRow]:
        return [TaskRow(*row) for row in self._database.read("declarations", {})]
