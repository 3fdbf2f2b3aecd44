"""What `--json` prints: documents whose fields are kept stable. Moments are ISO 8601 in UTC, spans are seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from rota.clock import SECOND, Micros, at
from rota.codec.text import json_visible
from rota.model import AttemptRow, Changed, JobRow, Migration, WorkerRow
from rota.operate import Stats

if TYPE_CHECKING:
    from rota.queues import Queue
    from rota.rules.explain import Explanation
    from rota.rules.health import Problem
    from rota.rules.rooms import Room

Record = dict[str, Any]


def write_json(record: Mapping[str, Any]) -> None:
    """Write a document to the standard output, in UTF-8 whatever the locale says."""
    click.echo(json_visible(json.dumps(record, indent=2, ensure_ascii=False)).encode())


def job_record(row: JobRow) -> Record:
    args, kwargs = arguments(row.args)
    return {
        "id": row.id,
        "task": row.task,
        "queue": row.queue,
        "status": row.state.value,
        "priority": row.priority,
        "key": row.key,
        "attempt": row.attempt,
        "max_attempts": row.max_attempts,
        "args": args,
        "kwargs": kwargs,
        "context": value(row.context),
        "created_at": moment(row.created_at),
        "run_at": moment(row.due),
        "started_at": moment(row.claimed_at),
        "finished_at": moment(row.finished_at),
        "took": span(row.took),
        "reason": row.reason,
        "result": value(row.result),
        "progress": value(row.progress),
        "worker": row.worker,
        "cancelling": row.cancelling,
        "held_by": None if row.held_by is None else {"limit": row.held_by[0], "key": _key(row.held_by[1])},
    }


def attempt_record(row: AttemptRow) -> Record:
    failure = row.failure
    return {
        "attempt": row.attempt,
        "outcome": row.outcome,
        "ended_at": moment(row.ended_at),
        "took": span(row.took),
        "worker": row.worker,
        "error": None if failure is None else {"type": failure.type, "message": failure.message, "trace": failure.trace},
    }


def room_record(room: Room) -> Record:
    """`key` is the key itself; null where the limit has none, or no job is under it."""
    return {
        "name": room.name,
        "key": _key(room.key),
        "tasks": room.tasks,
        "size": room.size,
        "declared": room.declared,
        "set": room.set,
        "running": room.running,
        "held": room.held,
        "full": room.full,
        "opens_at": moment(room.opens_at),
        "started_at": moment(room.started_at),
        "closed_until": moment(room.closed_until),
    }


def queue_record(queue: Queue) -> Record:
    """`paused_at` is null where the queue is not paused, `paused_until` where its pause does not end by itself."""
    pause = queue.pause
    return {
        "name": queue.name,
        "states": {state.value: number for state, number in queue.states.items()},
        "jobs": queue.jobs,
        "oldest_run_at": moment(queue.oldest),
        "paused": queue.paused,
        "paused_at": None if pause is None else moment(pause.at),
        "paused_until": None if pause is None else moment(pause.until),
        "paused_by": None if pause is None else pause.by or None,
    }


def explanation_record(found: Explanation) -> Record:
    return {
        "id": found.id,
        "task": found.task,
        "queue": found.queue,
        "status": found.status.value,
        "run_at": moment(found.due),
        "sentences": found.sentences,
        "limit": None if found.room is None else room_record(found.room),
        "holders": found.holders,
        "ahead": found.ahead,
        "paused": found.pause is not None,
        "paused_until": None if found.pause is None else moment(found.pause.until),
    }


def changed_record(changed: Changed) -> Record:
    """`before` is null for an unknown job, `after` for one that was deleted."""
    return {
        "id": changed.id,
        "before": None if changed.before is None else changed.before.value,
        "after": None if changed.after is None else changed.after.value,
    }


def worker_record(row: WorkerRow) -> Record:
    return {
        "id": row.id,
        "name": row.name,
        "host": row.host,
        "pid": row.pid,
        "queues": row.queues,
        "tasks": row.tasks,
        "concurrency": row.concurrency,
        "lease": span(row.lease),
        "version": row.version,
        "started_at": moment(row.started_at),
        "lease_until": moment(row.lease_until),
        "trouble": row.trouble,
    }


def stats_record(stats: Stats) -> Record:
    return {
        "states": {state.value: number for state, number in stats.states.items()},
        "counts": [
            {
                "queue": count.queue,
                "task": count.task,
                "status": count.state.value,
                "jobs": count.jobs,
                "oldest_run_at": moment(count.oldest),
            }
            for count in stats.counts
        ],
        "oldest_wait": span(stats.oldest_wait),
        "workers": [worker_record(row) for row in stats.workers],
        "store": stats.facts,
    }


def problems_record(problems: Sequence[Problem]) -> Record:
    return {
        "ok": not problems,
        "problems": [{"kind": each.trouble.value, "text": each.text, "jobs": each.jobs} for each in problems],
    }


def migrations_record(due: Sequence[Migration], new: bool) -> Record:
    return {
        "new": new,
        "older_may_stay": new or all(migration.older for migration in due),
        "migrations": [
            {"name": each.name, "older_may_stay": each.older, "remark": each.remark, "locks": each.locks} for each in due
        ],
    }


def _key(text: str) -> Any:
    return value(text) if text else None


# -- values -------------------------------------------------------------------------------------


def moment(micros: Micros | None) -> str | None:
    return None if micros is None else at(micros).isoformat()


def span(micros: Micros | None) -> float | None:
    return None if micros is None else micros / SECOND


def value(text: str | None) -> Any:
    """A stored payload; as its text where it is no JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def arguments(text: str) -> tuple[Any, Any]:
    """A job's arguments by position and by name."""
    payload = value(text)
    if not isinstance(payload, dict):
        return [payload], {}
    return payload.pop("*", []), payload
