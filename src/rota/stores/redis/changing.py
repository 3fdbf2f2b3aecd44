"""Jobs changed and deleted by hand, and finished ones forgotten, in steps that are each one script."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import msgpack

from rota.clock import Micros
from rota.model import FINAL, Changed, Edit, Move, State
from rota.stores.redis.client import Client, pieces
from rota.stores.redis.records import bare, exact

_STEP = 250
"""Jobs that one script changes, which takes longer than to look at them."""

_became = msgpack.Decoder(list[tuple[State | None, State | None]]).decode
_pruned = msgpack.Decoder(tuple[int, bool]).decode
_numbers = msgpack.Decoder(list[int]).decode


def change(client: Client, move: Move, ids: Sequence[str], now: Micros | None, only: Collection[State]) -> list[Changed]:
    """`Store.change`. Each step is atomic: where the store is lost between two of them, the change may be asked for again."""
    if move not in (Move.CANCEL, Move.RETRY, Move.DELETE):
        raise ValueError(f"{move} is not a change that anyone may ask for: it is cancel, retry or delete")
    became: dict[str, Changed] = {}
    for piece in pieces(dict.fromkeys(ids), _STEP):
        answer = client.run("change", move.value, [bare(id) for id in piece], _states(only), now=now)
        became |= _told(piece, answer)
    return [became[id] for id in ids]


def edit(client: Client, wanted: Edit, ids: Sequence[str], now: Micros | None, only: Collection[State]) -> list[Changed]:
    """`Store.edit`, in the same way."""
    fields = (wanted.priority, wanted.queue, wanted.run_at, wanted.delay, exact(wanted.run_at))
    became: dict[str, Changed] = {}
    for piece in pieces(dict.fromkeys(ids), _STEP):
        answer = client.run("edit", [bare(id) for id in piece], _states(only), *fields, now=now)
        became |= _told(piece, answer)
    return [became[id] for id in ids]


def prune(client: Client, ages: Mapping[State, Micros], limit: int, now: Micros | None) -> dict[State, int]:
    """`Store.prune`, as far as it is about jobs."""
    deleted, left = dict.fromkeys(ages, 0), limit
    for state, age in ages.items():
        while state in FINAL and left > 0:
            many, more = _pruned(client.run("prune", state.value, age, min(left, _STEP), now=now))
            deleted[state] += many
            left -= many
            if not more:
                break
    return deleted


def prunable(client: Client, ages: Mapping[State, Micros], now: Micros | None) -> dict[State, int]:
    """`Store.prunable`."""
    wanted = [(state, age) for state, age in ages.items() if state in FINAL]
    numbers = _numbers(client.run("prunable", [(state.value, age) for state, age in wanted], now=now))
    return dict(zip([state for state, _ in wanted], numbers, strict=True))


def _states(only: Collection[State]) -> list[str] | None:
    return [state.value for state in only] or None


def _told(ids: Sequence[str], answer: bytes) -> dict[str, Changed]:
    return {id: Changed(id, before, after) for id, (before, after) in zip(ids, _became(answer), strict=True)}
