"""What others need to test with Rota: a clock, an empty store for each test, and assertions about what was enqueued.

For those who write a store there are the contract that every store keeps, and a model to compare stores with.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.testing.asserting import (
        aassert_enqueued,
        aassert_not_enqueued,
        aassert_nothing_enqueued,
        aenqueued,
        assert_enqueued,
        assert_not_enqueued,
        assert_nothing_enqueued,
        enqueued,
    )
    from rota.testing.clock import Clock
    from rota.testing.draining import adrain_through, drain_through
    from rota.testing.fresh import emptied, fresh_store

__all__ = [
    "Clock",
    "aassert_enqueued",
    "aassert_not_enqueued",
    "aassert_nothing_enqueued",
    "adrain_through",
    "aenqueued",
    "assert_enqueued",
    "assert_not_enqueued",
    "assert_nothing_enqueued",
    "drain_through",
    "emptied",
    "enqueued",
    "fresh_store",
]

_MODULES = {
    "Clock": "clock",
    "drain_through": "draining",
    "adrain_through": "draining",
    "fresh_store": "fresh",
    "emptied": "fresh",
}
"""Where the names are that are no assertions."""

if "pytest" in sys.modules:  # so that a broken promise shows the values that broke it
    sys.modules["pytest"].register_assert_rewrite("rota.testing.contract", "rota.testing.machine")


def __getattr__(name: str) -> object:
    """Each name, loaded by those who use it: pytest loads this package for everybody."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'asserting')}"), name)
