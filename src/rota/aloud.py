"""What became of jobs, on the standard error stream of a program that has not said where its log goes.

A program that has set up logging, for Rota or for all, hears of it there and nowhere else.
"""

from __future__ import annotations

import logging
import sys

from rota.codec.text import one_line, visible
from rota.events import Event

log = logging.getLogger("rota")


class Aloud(logging.Handler):
    """Writes outcomes and warnings, as `rota: ran deliver`, while no other handler would get them. Raises nothing.

    Of several that are at work at once, the first writes. Between `begin` and `end` successes are logged too, unless the
    program has set a level.
    """

    def __init__(self) -> None:
        super().__init__()
        self._raised = False
        """Whether this one has raised the logger's level."""

    def begin(self) -> None:
        if self in log.handlers:
            return
        log.addHandler(self)
        if log.level == logging.NOTSET and not _others():
            self._raise_level()

    def end(self) -> None:
        log.removeHandler(self)
        if not self._raised:
            return
        self._raised = False
        log.removeFilter(self._as_configured)
        if (heir := _first()) is not None:
            heir._raise_level()
        elif log.level == logging.INFO:
            log.setLevel(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        told = isinstance(getattr(record, "rota", None), Event) or record.levelno >= logging.WARNING
        if not told or _first() is not self or _others() or sys.stderr is None:
            return
        try:
            text = record.getMessage()
            if record.exc_info:
                text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
            text = visible(text) if record.exc_info else one_line(text)
            sys.stderr.write(f"rota: {text}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001  # a stream that is gone, or arguments that do not fit: the work goes on
            return

    def _raise_level(self) -> None:
        self._raised = True
        log.setLevel(logging.INFO)
        log.addFilter(self._as_configured)

    def _as_configured(self, record: logging.LogRecord) -> bool:
        """Keep from a program that has set up logging what its own level would have kept from it."""
        return log.parent is None or record.levelno >= log.parent.getEffectiveLevel() or not _others()


def _first() -> Aloud | None:
    return next((handler for handler in log.handlers if isinstance(handler, Aloud)), None)


def _others() -> bool:
    """Whether another handler gets what Rota logs."""
    logger: logging.Logger | None = log
    while logger is not None:
        if any(not isinstance(handler, Aloud) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False
