"""Background jobs in a store you already have.

>>> from rota import Rota
>>> app = Rota("memory://")
>>> @app.task
... def send_receipt(order_id: int) -> None:
...     print("receipt for order", order_id)
>>> job = send_receipt.enqueue(42)
>>> _ = app.drain()
receipt for order 42
>>> app.close()

PYTEST_DONT_REWRITE: a word for pytest, which would warn where a program imported Rota, whose plugin it finds, before it.
"""

from typing import TYPE_CHECKING

from rota.app import Rota
from rota.context import CurrentJob, current_job
from rota.errors import (
    ArgumentsError,
    ConfigError,
    DriverMissing,
    JobFailed,
    JobNotFound,
    LeaseLost,
    MoveRefused,
    NotSupported,
    PayloadTooLarge,
    ResultError,
    ResultNotKept,
    RotaError,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    WaitTimeout,
)
from rota.events import Event, Kind
from rota.handle import Job
from rota.hooks import FailedAttempt
from rota.model import Move, State
from rota.signals import Abandon, Retry, Snooze
from rota.task import BoundTask, NamedTask, Task

if TYPE_CHECKING:
    from rota.rules.limits import Limit

__version__ = "0.1.0"

__all__ = [
    "Abandon",
    "ArgumentsError",
    "BoundTask",
    "ConfigError",
    "CurrentJob",
    "DriverMissing",
    "Event",
    "FailedAttempt",
    "Job",
    "JobFailed",
    "JobNotFound",
    "Kind",
    "LeaseLost",
    "Limit",
    "Move",
    "MoveRefused",
    "NamedTask",
    "NotSupported",
    "PayloadTooLarge",
    "ResultError",
    "ResultNotKept",
    "Retry",
    "Rota",
    "RotaError",
    "SchemaMismatch",
    "Snooze",
    "State",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "WaitTimeout",
    "__version__",
    "current_job",
]


def __getattr__(name: str) -> object:
    """`Limit`, loaded by those who name it: a process without limits has nothing of them in its memory."""
    if name == "Limit":
        from rota.rules.limits import Limit

        return Limit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
