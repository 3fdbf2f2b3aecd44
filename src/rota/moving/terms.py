"""What a move refuses before it begins, each with what to do instead, and how one that was interrupted is known."""

from __future__ import annotations

from rota.errors import ConfigError, StoreError
from rota.model import Filter, Seal
from rota.moving.sides import Side
from rota.stores.base import Store

_NEWEST = 100


def check(ours: Side, theirs: Side) -> Seal | None:
    """Raise for what cannot be moved; else answer the source's seal where a move between the two has begun."""
    if ours.place == theirs.place or (ours.file is not None and theirs.file is not None and ours.file.samefile(theirs.file)):
        raise ConfigError(f"source and target are both {ours.place}: name another store to move to")
    leaving, arriving = ours.store.sealed(), theirs.store.sealed()
    if leaving is None:
        if arriving is not None:
            raise StoreError(f"nothing else can be moved to {theirs.place}: {arriving.words}")
        ours.check_idle()
        _check_free(theirs)
        return None
    if not leaving.leaving:
        raise StoreError(f"nothing can be moved from {ours.place} yet: {leaving.words}")
    if arriving is not None and arriving.id == leaving.id:
        check_other(theirs, leaving)
        return leaving
    if arriving is None and leaving.target == theirs.place:
        if not leaving.done:
            _check_free(theirs)
        return leaving
    hint = "" if leaving.done else f"; go on with that, or give it up with `rota move --from {ours.place} --reopen`"
    raise StoreError(f"nothing can be moved from {ours.place} to {theirs.place}: {leaving.words}{hint}")


def check_other(theirs: Side, seal: Seal) -> None:
    """Raise where what was sealed as the source turns out to be the target as well, under another name."""
    found = theirs.store.sealed()
    if found is not None and found.id == seal.id and found.leaving:
        raise ConfigError(f"source and target are the same store, {theirs.place}: name another one to move to")


def check_taken(ours: Side, theirs: Side) -> None:
    """Raise where the target got jobs of its own just before it was sealed; another process may have begun to move."""
    newest = [row.id for row in theirs.store.find(Filter(), _NEWEST)]
    if len(ours.store.get(newest)) < len(newest):
        _refuse(theirs)


def sealed_away(store: Store) -> Seal:
    """The seal of a store that jobs were moved from. Raises `StoreError` where there is none."""
    seal = store.sealed()
    if seal is None:
        raise StoreError(f"{store.url} takes jobs: they are not being moved away, and were not")
    if not seal.leaving:
        raise StoreError(
            f"{store.url} takes no jobs, because {seal.words}. Where that move was given up, what has arrived here is part of "
            "what is there: remove this file or schema"
        )
    return seal


def _check_free(side: Side) -> None:
    side.check_idle()
    if side.store.find(Filter(), 1):
        _refuse(side)


def _refuse(side: Side) -> None:
    raise StoreError(
        f"{side.place} has jobs of its own ({sum(side.states().values())}): move to a store that has none, such as another "
        "schema or file"
    )
