"""How many jobs came in lately, and how many ended: those of the last moments are read, in steps, and no others."""

from __future__ import annotations

from collections import Counter

from msgspec import msgpack

from rota.clock import Micros
from rota.model import FINAL, Flow, State
from rota.stores.redis.client import MANY, Client

_came = msgpack.Decoder(tuple[str | None, list[tuple[str, int]]]).decode
_ended = msgpack.Decoder(tuple[Micros | None, int | None, list[tuple[str, str | None, int]]]).decode


def flow(client: Client, span: Micros, now: Micros | None) -> list[Flow]:
    """`Store.flow`."""
    ended: Counter[tuple[str, str | None, State]] = Counter()
    for state in sorted(FINAL):
        at: Micros | None = None
        passed: int | None = 0
        while passed is not None:
            at, passed, found = _ended(client.run("ended", state.value, span, at, passed, MANY, now=now))
            for queue, worker, jobs in found:
                ended[queue, worker, state] += jobs
    came: Counter[str] = Counter()
    after: str | None = ""
    while after is not None:
        after, entered = _came(client.run("came", span, after, MANY, now=now))
        for queue, jobs in entered:
            came[queue] += jobs
    told = [Flow(queue, worker, state, jobs) for (queue, worker, state), jobs in ended.items()]
    return told + [Flow(queue, None, None, jobs) for queue, jobs in came.items()]
