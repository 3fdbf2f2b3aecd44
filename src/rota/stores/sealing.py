"""What a seal keeps as it is, and what is said where there is another one, or none."""

from __future__ import annotations

import msgspec

from rota.errors import StoreError
from rota.model import Seal
from rota.stores.rows import as_json

TABLES = (
    "rota_jobs",
    "rota_history",
    "rota_attempts",
    "rota_workers",
    "rota_tasks",
    "rota_rooms",
    "rota_places",
    "rota_limits",
    "rota_queues",
)
"""The tables beneath a seal: all but that of migrations, and what workers count, which nobody tells without claiming."""


def written(seal: Seal) -> str:
    return as_json(seal)


def read(text: str) -> Seal:
    return msgspec.json.decode(text, type=Seal)


def check_same(present: Seal | None, id: str) -> None:
    """Raise `StoreError` where there is another seal than the one with this id."""
    if present is not None and present.id != id:
        raise StoreError(f"this store is sealed already: {present.words}")


def check_there(present: Seal | None, id: str) -> None:
    """Raise `StoreError` where there is no seal with this id, beneath which something was to be written."""
    check_same(present, id)
    if present is None:
        raise StoreError("this store is not sealed for jobs to be moved into it: another `rota move` may have ended that move")


def literal(text: str) -> str:
    """A text as SQL has it."""
    return "'{}'".format(text.replace("'", "''"))
