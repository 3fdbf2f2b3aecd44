"""Ids are made by whoever enqueues: UUIDv7, so they sort by the time they were made and never clash."""

from __future__ import annotations

import re
import sys

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils import uuid7


def new_id() -> str:
    """A new id, in the usual form with dashes; later ones sort after earlier ones of the same process."""
    return str(uuid7())


def is_id(text: object) -> bool:
    """Whether it can be the id of a job. What cannot is never looked up: a database would call it a syntax error."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
