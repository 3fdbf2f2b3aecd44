"""What is logged in a process for isolated bodies, on its way to the worker, which logs it as if the body ran there."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextvars import copy_context

from rota.context import CurrentJob, enter

Told = dict[str, str | int | float | bool | None]
"""A record as plain values: its text, its trace as `exc_text`, and of its `extra` what is plain."""

_PLAIN = (str, int, float, bool, type(None))


class Forwarder(logging.Handler):
    """Tells of each record, with the job that has the process. Raises nothing."""

    def __init__(self, tell: Callable[[str, Told], object]) -> None:
        super().__init__()
        self._tell = tell
        self._job = ""
        self._process = os.getpid()

    def serve(self, job: str, level: int) -> None:
        """From here on the process is this job's, and records of `level` are wanted.

        Where the app's code has said where records go, as it was imported, that holds.
        """
        self._job = job
        root = logging.getLogger()
        if not root.handlers:
            root.addHandler(self)
        if self in root.handlers:
            root.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        if os.getpid() == self._process:
            try:
                self._tell(self._job, _told(record))
            except Exception:  # noqa: BLE001  # arguments that do not fit the text, or a worker that is gone
                self.handleError(record)
        elif logging.lastResort is not None and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)  # a fork of the body's must not write into the pipe


def wanted() -> int:
    """The least level at which any logger of this process records; each decides itself what it lets through."""
    root = logging.getLogger()
    others = [logger.level for logger in list(root.manager.loggerDict.values()) if isinstance(logger, logging.Logger)]
    return min([root.level, *filter(None, others)])


def log_here(told: Told, job: CurrentJob | None) -> None:
    """Log what such a process told, by the loggers and levels of this one, as a record of `job`."""
    record = logging.makeLogRecord(told)
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        copy_context().run(_handle, logger, record, job)


def _handle(logger: logging.Logger, record: logging.LogRecord, job: CurrentJob | None) -> None:
    if job is not None:
        enter(job)
    logger.handle(record)


def _told(record: logging.LogRecord) -> Told:
    told = {name: value for name, value in vars(record).items() if type(value) in _PLAIN}
    trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else record.exc_text
    return told | {"msg": record.getMessage(), "exc_text": trace}
