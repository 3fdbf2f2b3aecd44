"""Ids are made by whoever enqueues: UUIDv7, so they sort by the time they were made and never clash."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils import uuid7


def new_id() -> str:
    """A new id, in the usual form with dashes; later ones sort after earlier ones of the same process."""
    return str(uuid7())
