"""Who blocks an event loop, as far as its thread's stack can tell."""

from __future__ import annotations

import sys
import threading
import traceback
from asyncio import Handle
from collections.abc import Sequence
from types import CodeType, FrameType

from rota.attempt import Run, aperform
from rota.context import entered

_MOST_LINES = 12
"""How many calls of a stack are told, the innermost ones."""


def find_culprit(thread: threading.Thread, runs: Sequence[Run]) -> tuple[Run | None, str]:
    """Which of these coroutine bodies a loop's thread is in, where that can be told, and in what, as the lines of a trace."""
    by_id = {run.job.id: run for run in runs}
    inner: list[FrameType] = []
    frame = sys._current_frames().get(thread.ident or 0)
    culprit = None
    while frame is not None and (culprit := by_id.get(_job_of(frame))) is None:
        inner.append(frame)
        frame = frame.f_back
    calls = [(each, each.f_lineno or 0) for each in inner[:_MOST_LINES]]
    summary = traceback.StackSummary.extract(iter(calls))
    summary.reverse()
    return culprit, "".join(summary.format()).rstrip()


def _job_of(frame: FrameType) -> str:
    """The id of the job that this call is made for, if it is one of those that know."""
    if frame.f_code is aperform.__code__:
        run: Run = frame.f_locals["run"]
        return run.job.id
    if frame.f_code is _CALLBACK:
        # A task or a callback that a body began: it has a copy of the body's context.
        context = getattr(frame.f_locals.get("self"), "_context", None)
        job = None if context is None else entered(context)
        return "" if job is None else job.id
    return ""


_CALLBACK: CodeType = Handle._run.__code__
