"""Rota with limits: the same body under a limit that is never full, beside a full one, and under a narrow one.

Apps of their own: one task with a limit makes all claims of its app decide on limits.
"""

from __future__ import annotations

import script
import tally
from peer_rota import WORKER, join

from rota import Rota
from rota.model import Ask

WIDE, NARROW = 1_000, 8

wide = Rota(script.url())
narrow = Rota(script.url())


@wide.task
def noop() -> None:
    tally.body()


@wide.task(concurrency=WIDE)
def far_from_full() -> None:
    tally.body()


@narrow.task(concurrency=NARROW)
def one_of_few() -> None:
    tally.body()


def setup() -> None:
    wide.store.open()


def bulk(n: int) -> None:
    script.all_at_once(lambda jobs: noop.enqueue_many(() for _ in range(jobs)), n)


def bulk_far_from_full(n: int) -> None:
    script.all_at_once(lambda jobs: far_from_full.enqueue_many(() for _ in range(jobs)), n)


def held_by_full(n: int) -> None:
    """Jobs that a limit holds, for a worker that never ends has all of its places."""
    far_from_full.enqueue_many(() for _ in range(WIDE + n))
    hold(wide, WIDE)


def held_by_narrow(n: int) -> None:
    """Jobs that a limit holds which has all of its places free."""
    script.all_at_once(lambda jobs: one_of_few.enqueue_many(() for _ in range(jobs)), n)
    hold(narrow, NARROW)
    narrow.store.leave(WORKER)


def hold(app: Rota, places: int) -> None:
    """Claim until the limit's places are taken and it holds all other jobs."""
    assert app.limiting is not None
    join(app.store)
    ask = Ask(WORKER, ("default",), places, slots=places)
    while (found := app.store.admit(ask, app.limiting)).claimed or found.more:
        pass
