"""What a program's own log records say of the job in whose body they are made."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from rota.context import CurrentJob, running_job
from rota.events import Event

FIELDS = ("job_id", "task", "queue", "attempt", "worker")


class JobFields(logging.Filter):
    """Gives records the fields of the job in whose body they are made, whatever logger they come from; it keeps every record.

    Attach it to a handler. Outside of jobs the fields are `None`, so a format that names them is always right; what a record
    has of its own, by `extra`, stays. A line that tells of an attempt's end has that attempt's fields.

    >>> import logging, sys
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> handler.addFilter(JobFields())
    >>> handler.setFormatter(logging.Formatter("%(message)s (%(task)s, attempt %(attempt)s)"))
    >>> log = logging.getLogger("shop")
    >>> log.addHandler(handler)
    >>> log.warning("hello")
    hello (None, attempt None)
    >>> log.removeHandler(handler)
    """

    def filter(self, record: logging.LogRecord) -> bool:
        known = record.__dict__
        for name, value in _fields_of(record).items():
            known.setdefault(name, value)
        return True


def add_job_fields(_logger: object, _method: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The same as a processor of structlog: adds the fields to an event that is logged in a body, and nothing elsewhere.

    >>> add_job_fields(None, "info", {"event": "hello"})
    {'event': 'hello'}
    """
    if (job := running_job()) is not None:
        for name, value in fields(job).items():
            event_dict.setdefault(name, value)
    return event_dict


def fields(job: CurrentJob) -> dict[str, Any]:
    """The fields of a job that runs."""
    return {"job_id": job.id, "task": job.task, "queue": job.queue, "attempt": job.attempt, "worker": job.worker or None}


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    event = record.__dict__.get("rota")
    if isinstance(event, Event):
        return {"job_id": event.id, "task": event.task, "queue": event.queue, "attempt": event.attempt, "worker": None}
    job = running_job()
    return dict.fromkeys(FIELDS) if job is None else fields(job)
