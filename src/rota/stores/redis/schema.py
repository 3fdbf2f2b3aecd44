"""The layout of keys, which has a version as tables have: made on first use, and refused where it is newer."""

from __future__ import annotations

from msgspec import msgpack

from rota.errors import SchemaMismatch
from rota.model import Migration
from rota.stores.redis.client import Client

VERSION = 1
"""The version of the layout that this Rota uses."""
NEEDS = 1
"""Which version a process must know to use it."""
_NAME = "0001_layout"

_found = msgpack.Decoder(tuple[int | None, int | None]).decode


def make(client: Client) -> list[str]:
    """Note this version where none is noted, and name what was done. Raises `SchemaMismatch` where this Rota is too old."""
    return [] if _look(client, makes=True) else [_NAME]


def there(client: Client) -> bool:
    """Whether a version is noted that this Rota can use. Raises `SchemaMismatch` where it is too old."""
    return _look(client, makes=False)


def noted(client: Client) -> bool:
    """Whether any version is noted."""
    version, _ = _found(client.run("open", VERSION, NEEDS, False))
    return version is not None


def pending(client: Client) -> list[Migration]:
    return [] if there(client) else [Migration(_NAME, older=False, remark="", locks=[])]


def steps(prefix: str) -> list[tuple[str, str]]:
    """What makes the layout from nothing, as a command of Redis's: all other keys come with the jobs."""
    return [(_NAME, f'HSET "{{{prefix}}}:version" version {VERSION} needs {NEEDS}')]


def refusal(where: str) -> SchemaMismatch:
    """What to say where nothing is noted, and this process is not to note it."""
    return SchemaMismatch(f"in {where} there is no store of Rota's yet: run `rota migrate` as a user who may make one")


def check(needed: int | None) -> None:
    """Raise `SchemaMismatch` where a process must know this version of the layout and this Rota does not."""
    if needed is not None and needed > VERSION:
        raise SchemaMismatch(
            f"the store was changed for a newer Rota: a process must know version {needed} of its layout, and this one knows "
            f"{VERSION} at most; install a newer Rota here"
        )


def _look(client: Client, makes: bool) -> bool:
    version, needed = _found(client.run("open", VERSION, NEEDS, makes))
    check(needed)
    return version is not None
