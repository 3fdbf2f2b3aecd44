"""Ids are made by whoever enqueues: UUIDv7, so they sort by the time they were made and never clash."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache


def new_id() -> str:
    """A new id, in the usual form with dashes; later ones sort after earlier ones of the same process."""
    return str(_maker()())


def is_id(text: object) -> bool:
    """Whether it can be the id of a job. What cannot is never looked up: a database would call it a syntax error."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


@cache
def _maker() -> Callable[[], object]:
    # Imported for the first job only: a worker whose jobs enqueue none does without its memory.
    if sys.version_info >= (3, 14):
        from uuid import uuid7
    else:
        from uuid_utils import uuid7
    return uuid7


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
