"""Who a worker is to its store: an id of its own for each start, and a new one when its lease was taken."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from uuid import uuid4

import msgspec

from rota.clock import SECOND, Micros
from rota.model import WorkerRow


class Identity:
    """The worker's row. Read by many threads, replaced by the pulse alone."""

    def __init__(
        self,
        name: str | None,
        queues: Sequence[str] | None,
        tasks: Sequence[str],
        concurrency: int,
        lease: Micros,
        version: str,
    ) -> None:
        host = socket.gethostname()
        self.row = WorkerRow(
            id=_new_id(),
            name=name or f"{host}:{os.getpid()}",
            host=host,
            pid=os.getpid(),
            queues=None if queues is None else list(queues),
            tasks=sorted(tasks),
            concurrency=concurrency,
            lease=lease,
            version=version,
        )
        self.forgotten = False
        """Whether the store said that it does not know this worker: the pulse joins anew."""
        self.told_at = 0.0
        """When it last told the store that it lives, by `time.monotonic`."""

    @property
    def id(self) -> str:
        return self.row.id

    def renew(self) -> WorkerRow:
        """A row with a new id, not yet in force: it is joined first and then taken on."""
        return msgspec.structs.replace(self.row, id=_new_id())

    def take_on(self, row: WorkerRow) -> None:
        self.row = row
        self.forgotten = False
        self.told_at = time.monotonic()

    @property
    def held_up(self) -> bool:
        """Whether it was not heard of for longer than its lease, so that what is its own may be another's by now."""
        return time.monotonic() - self.told_at > self.row.lease / SECOND


def _new_id() -> str:
    # Unlike those of jobs, the ids of workers need not sort by time, so the library that makes such ids is not loaded for them.
    return str(uuid4())
