"""Short words for what many tests of the app need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota import Rota
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, Claimed, WorkerRow

WORDS = (
    "Mail Out",
    "ÄÖÜ-queue",
    "a'b\"c",
    "%s",
    "q" * 200,
    "*",
    "a:b",
    "{x}",
    "'; drop table rota_jobs; --",
    "日本 🎉",
    "a\\b",
    " ",
)
"""Names that some database, shell or format would trip over, and that are allowed."""

NO_NAMES = ("", "q" * 201, "a\0b", "\ud800", "a\nb", "\x7f", "\x85", 7, b"mail")
"""What can be no name."""


NOT_AWAITED = (
    "{task} is run as a plain function, but returned something to be awaited (coroutine), and nobody does: "
    "declare it with `async def`; if it is, a decorator hides that and must use functools.wraps"
)
"""Why a job fails whose coroutine function was taken for a plain one."""


async def nothing() -> None: ...


def careless(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator without functools.wraps."""

    def around(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return around


def joined(app: Rota, seconds: float = 60, queues: list[str] | None = None, tasks: list[str] | None = None) -> str:
    """The id of a worker that joins now, with a lease of so many seconds, and does nothing."""
    known = sorted(app.tasks) if tasks is None else tasks
    row = WorkerRow(new_id(), "w", "here", 1, queues, known, 1, int(seconds * SECOND), "1")
    app.store.join(row, app.now())
    return row.id


def claimed(app: Rota, seconds: float = 60, queue: str = "default") -> tuple[str, Claimed]:
    """The id of a worker that has just claimed the first job of the queue, and the claim."""
    worker = joined(app, seconds)
    [claim] = app.store.claim(Ask(worker, (queue,), 1), app.now())
    return worker, claim
