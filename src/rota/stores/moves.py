"""What moves jobs outside the hot path, inside a transaction: reaping, leaving, and changes asked for by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rota.clock import SECOND, Micros
from rota.model import FINAL, MOVES, Changed, Edit, Ended, JobRow, Lost, Move, Settled, State
from rota.stores import rows
from rota.stores.database import Params, Row, Run, through
from rota.stores.finishing import at_sight, moved_on, standing
from rota.stores.rows import as_json

_ALL = 2**31 - 1


def reap(run: Run, limit: int, now: Micros | None) -> list[Lost]:
    """Take back up to `limit` jobs of dead workers.

    The workers' rows are locked before their jobs are looked for, so no claim of theirs can come in between.
    """
    names: dict[str, str] = {worker: name for worker, name in run("dead", {"now": now})}  # noqa: C416  # rows are no pairs to mypy
    if not names:
        return []
    claimed = run("claimed_by", {"workers": list(names), "limit": limit})
    lost = [_lost(names, *row) for row in claimed]
    for state in (State.QUEUED, State.FAILED, State.CANCELLED):
        for worker in names:
            jobs = [job for job in lost if job.state is state and job.worker == worker]
            if jobs:
                _lose(run, state, [job.id for job in jobs], f"worker lost: the lease of {jobs[0].who} ran out", now)
    ids = [job.id for job in lost]
    if len(claimed) < limit:
        _forget(run, list(names), ids, now)
    else:
        _give_back(run, ids, now)
    if any(job.state is State.QUEUED for job in lost):
        run("ring", {})
    return lost


def leave(run: Run, worker: str, now: Micros | None) -> None:
    """Lock a worker first, so that it can claim no more, then hand back what it holds, and forget it."""
    run("lock_worker", {"worker": worker})
    claimed = run("claimed_by", {"workers": [worker], "limit": _ALL})
    _forget(run, [worker], _hand_back(run, claimed, "its worker left before it was done", now), now)


def reconcile(run: Run, worker: str, in_hand: Sequence[str], now: Micros | None) -> int:
    """Hand back what the worker holds besides these jobs."""
    strays = run("strays", {"worker": worker, "ids": list(in_hand)})
    _give_back(run, _hand_back(run, strays, "its worker never heard that it had claimed it", now), now)
    return len(strays)


def finish_after(run: Run, worker: str, ends: Sequence[Ended], now: Micros | None) -> Settled:
    """Write the outcomes of those whose body's transaction was undone, and give back what all took that have ended.

    The rows that no transaction is about to finish are locked first; where the others are is looked up after that.
    """
    free = {(id, claim) for id, claim in run("mine", {"ids": [end.id for end in ends], "worker": worker})}
    undone = [end for end in ends if (end.id, end.claim) in free]
    rest = [end for end in ends if (end.id, end.claim) not in free]
    found = {row[0]: rows.job(row) for row in run("get", {"ids": [end.id for end in rest]})} if rest else {}
    stands = {end.id: _stand(run, end, worker, found.get(end.id)) for end in rest}
    calls = rows.end_calls(worker, undone, now)
    calls += rows.giving_back_calls([end for end in ends if stands.get(end.id) is not State.RUNNING], now)
    for query, params in calls:
        run(query, params)
    if any(query == "put_back" for query, _ in calls):
        run("ring", {})
    return Settled(
        done=frozenset(id for id, state in stands.items() if state is State.SUCCEEDED),
        counted=frozenset(end.id for end in undone),
        open=frozenset(id for id, state in stands.items() if state is State.RUNNING),
    )


def _stand(run: Run, end: Ended, worker: str, row: JobRow | None) -> State | None:
    if moved_on(end.claim, row):
        return through(run, standing(worker, end.id, end.claim))
    return at_sight(worker, end.claim, row)


def change(run: Run, move: Move, ids: Sequence[str], now: Micros | None, only: Collection[State] = ()) -> dict[str, Changed]:
    """Move the jobs that may be moved, of those in `only` these states if any are given, and say what became of each."""
    before = _look(run, list(dict.fromkeys(ids)))
    after: dict[str, State | None] = dict(before)
    able = [job for job, state in before.items() if state in MOVES[move] and (not only or state in only)]
    waiting = [job for job in able if not before[job].final and before[job] is not State.RUNNING]
    running = [job for job in able if before[job] is State.RUNNING]
    finished = [job for job in able if before[job].final]
    match move:
        case Move.CANCEL:
            if waiting:
                _look_again(run, waiting, now)
                run("conclude", {"ids": waiting, "state": "cancelled", "reason": "cancelled", "now": now})
                after |= dict.fromkeys(waiting, State.CANCELLED)
            if running:
                run("ask_cancel", {"ids": running})
        case Move.RETRY:
            moved = waiting.copy()
            if waiting:
                run("retry_waiting", {"ids": waiting, "now": now})
            if finished:
                moved += [row[0] for row in run("retry_finished", {"ids": finished, "now": now})]
            if moved:
                run("ring", {})
            after |= dict.fromkeys(moved, State.QUEUED)
        case Move.DELETE:
            if waiting:
                _look_again(run, waiting, now)
                run("delete_waiting", {"ids": waiting})
            if finished:
                run("delete_finished", {"ids": finished})
            if able:
                run("delete_attempts", {"ids": able})
            after |= dict.fromkeys(able, None)
        case _:
            raise ValueError(f"{move} is not a change that anyone may ask for: it is cancel, retry or delete")
    return {job: Changed(job, before.get(job), after.get(job)) for job in ids}


def edit(run: Run, wanted: Edit, ids: Sequence[str], now: Micros | None, only: Collection[State] = ()) -> dict[str, Changed]:
    """Change those of these jobs that wait, in `only` these states if any are given, and say what became of each."""
    before = _look(run, list(dict.fromkeys(ids)))
    after: dict[str, State | None] = dict(before)
    waiting = [job for job, state in before.items() if state in MOVES[Move.EDIT] and (not only or state in only)]
    if waiting:
        _look_again(run, waiting, now)  # a room that had them queued may wait for them where they are no more
        fields = {"priority": wanted.priority, "queue": wanted.queue, "run_at": wanted.run_at, "delay": wanted.delay}
        run("edit", fields | {"ids": waiting, "now": now})
        run("ring", {})
        after |= _look(run, waiting)
    return {job: Changed(job, before.get(job), after.get(job)) for job in ids}


def look_at_limit(run: Run, name: str, now: Micros | None) -> None:
    """Have claims look at all rooms of a limit that hold jobs."""
    _look_at_rooms(run, run("rooms_named", {"name": name}), now)


def _forget(run: Run, workers: list[str], ids: list[str], now: Micros | None) -> None:
    """Forget workers, and give back what these jobs of theirs took of limits.

    They may have been the last to know another size of some limit, so claims look at all rooms that hold jobs. Rooms are locked
    here and nowhere else in the transaction, in one order: several workers end at once where one is deployed or a machine dies.
    One of which a transaction is open in which a job is to be finished stays among the dead until then.
    """
    _look_at_rooms(run, [*run("holding_rooms", {"now": now}), *run("rooms_taken", {"ids": ids})], now)
    gone = {row[0] for row in run("forget_all", {"workers": workers})}
    if kept := [worker for worker in workers if worker not in gone]:
        run("postpone", {"workers": kept, "wait": SECOND, "now": now})


def _hand_back(run: Run, claimed: Sequence[Row], reason: str, now: Micros | None) -> list[str]:
    """Queue these jobs again without using an attempt, save those that someone asked to cancel; answers the ids of all."""
    cancelled = [row[0] for row in claimed if row[-1]]
    back = [row[0] for row in claimed if not row[-1]]
    if cancelled:
        _end(run, cancelled, State.CANCELLED, "cancelled", "cancelled while running", now)
    if back:
        run("note", {"ids": back, "outcome": "released", "type": None, "message": reason, "now": now})
        run("requeue", {"ids": back, "excuse": 1, "reason": reason})
        run("ring", {})
    return [row[0] for row in claimed]


def _give_back(run: Run, ids: list[str], now: Micros | None) -> None:
    """Have claims look at the rooms in which these jobs had places, since they do not run any more."""
    if ids:
        _look_at_rooms(run, run("rooms_taken", {"ids": ids}), now)


def _look_again(run: Run, ids: list[str], now: Micros | None) -> None:
    """Have claims look at the rooms that count on these queued jobs, which they held before."""
    _look_at_rooms(run, run("marks", {"ids": ids}), now)


def _look_at_rooms(run: Run, found: Sequence[Row], now: Micros | None) -> None:
    rooms = sorted({(name, key) for name, key in found})
    if rooms:
        run("look_at_rooms", {"rooms": as_json(rooms), "now": now})


def prune(run: Run, params: Params) -> int:
    """Delete the first jobs of one final state that ended before a moment, and say how many."""
    ids = [row[0] for row in run("old", params)]
    if ids:
        run("delete_finished", {"ids": ids})
        run("delete_attempts", {"ids": ids})
    return len(ids)


def _lost(
    names: Mapping[str, str], job: str, task: str, queue: str, attempt: int, worker: str, max_attempts: int, cancelling: bool
) -> Lost:
    state = State.CANCELLED if cancelling else State.QUEUED if attempt < max_attempts else State.FAILED
    return Lost(job, task, queue, attempt, worker, state, names[worker])


def _lose(run: Run, state: State, ids: list[str], reason: str, now: Micros | None) -> None:
    if state in FINAL:
        _end(run, ids, state, "lost", reason, now)
    else:
        run("note", {"ids": ids, "outcome": "lost", "type": "WorkerLost", "message": reason, "now": now})
        run("requeue", {"ids": ids, "excuse": 0, "reason": reason})


def _end(run: Run, ids: list[str], state: State, outcome: str, reason: str, now: Micros | None) -> None:
    kind = "WorkerLost" if outcome == "lost" else None
    run("note", {"ids": ids, "outcome": outcome, "type": kind, "message": reason, "now": now})
    run("conclude", {"ids": ids, "state": state.value, "reason": reason, "now": now})


def _look(run: Run, ids: list[str]) -> dict[str, State]:
    """The states of these jobs, locked.

    A job may pass between the tables while they are read one after the other; a second look at the first finds it.
    """
    found: list[Row] = run("look_live", {"ids": ids})
    seen = {job for job, _ in found}
    if rest := [job for job in ids if job not in seen]:
        found = [*found, *run("look_finished", {"ids": rest})]
        seen = {job for job, _ in found}
    if rest := [job for job in ids if job not in seen]:
        found = [*found, *run("look_live", {"ids": rest})]
    return {job: State(state) for job, state in found}
