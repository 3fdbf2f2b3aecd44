"""Two stores held against each other: first by numbers that tell whether they differ, then job by job in what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import chain, zip_longest

import msgspec

from rota.errors import StoreError
from rota.model import Seal, State, Whole
from rota.moving.sides import Side

_NAMED = 10
"""Jobs that differ and are named."""
_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode


class Sum:
    """What jobs are, as numbers that do not depend on their order."""

    def __init__(self) -> None:
        self.states = dict.fromkeys(State, 0)
        self.jobs = 0
        self.attempts = 0
        self._digest = 0

    def add(self, whole: Whole) -> None:
        """Raises `StoreError` for a job whose text is damaged."""
        digest = blake2b(_encoded(whole), digest_size=_BYTES).digest()
        self._digest = (self._digest + int.from_bytes(digest, "big")) % 2 ** (8 * _BYTES)
        self.states[whole.job.state] += 1
        self.jobs += 1
        self.attempts += len(whole.attempts)

    @property
    def digest(self) -> str:
        """The digests of all, added up."""
        return f"{self._digest:0{2 * _BYTES}x}"


def differences(ours: Side, theirs: Side, seal: Seal, sent: Sum, tell: Callable[[int], object]) -> list[str]:
    """What the target has otherwise than the source, whose jobs have this sum, in words. `tell` hears of each page read."""
    arrived = Sum()
    for page in theirs.pages():
        for whole in page:
            arrived.add(whole)
        tell(arrived.jobs)
    told = [
        f"the source has {sent.states[state]} jobs that are {state}, and the target {arrived.states[state]}"
        for state in State
        if sent.states[state] != arrived.states[state]
    ]
    if (sent.digest, sent.attempts) != (arrived.digest, arrived.attempts):
        told += _jobs(ours, theirs)
    elif _counted(ours) != _counted(theirs):
        told.append("the jobs are the same, and the stores count them otherwise by queue, task and state")
    return told + _rest(ours, theirs, seal)


def _rest(ours: Side, theirs: Side, seal: Seal) -> list[str]:
    """What is no job. The target may have more of it."""
    here, there = ours.store, theirs.store
    told = [f"the target lacks the task {each.name}" for each in here.declarations() if each not in there.declarations()]
    told += [f"the target lacks the pause of {each.queue}" for each in here.pauses() if each not in there.pauses()]
    sizes = there.overrides()
    told += [f"the target lacks the size of {name}" for name, size in here.overrides().items() if sizes.get(name) != size]
    if lacking := sum(there.load_rooms(seal.id, rooms) for rooms in ours.rooms()):
        told.append(f"{lacking} rooms of limits remembered other moments in the target")
    return told


def _counted(side: Side) -> Counter[tuple[str, str, State]]:
    return Counter({(each.queue, each.task, each.state): each.jobs for each in side.store.counts()})


def _jobs(ours: Side, theirs: Side) -> list[str]:
    """The first jobs that differ, and in what."""
    told: list[str] = []
    for one, other in _side_by_side(ours, theirs):
        if one == other:
            continue
        if len(told) == _NAMED:
            return [*told, "and more"]
        told.append(_difference(one, other))
    return told or ["the digests differ, and the jobs do not: something changed while they were read"]


def _side_by_side(ours: Side, theirs: Side) -> Iterator[tuple[Whole | None, Whole | None]]:
    """The jobs of both by their ids; `None` where one has no such job."""
    mine, yours = (chain.from_iterable(side.pages()) for side in (ours, theirs))
    one, other = next(mine, None), next(yours, None)
    while one is not None or other is not None:
        if one is None or (other is not None and other.job.id < one.job.id):
            yield None, other
            other = next(yours, None)
        elif other is None or one.job.id < other.job.id:
            yield one, None
            one = next(mine, None)
        else:
            yield one, other
            one, other = next(mine, None), next(yours, None)


def _difference(one: Whole | None, other: Whole | None) -> str:
    if one is None or other is None:
        return (
            f"the target has a job {other.job.id} too many"
            if other
            else f"the target lacks the job {one.job.id if one else ''}"
        )
    names = [name for name in one.job.__struct_fields__ if getattr(one.job, name) != getattr(other.job, name)]
    pairs = enumerate(zip_longest(one.attempts, other.attempts), start=1)
    names += [f"attempt {number}" for number, (mine, yours) in pairs if mine != yours]
    names += [name for name in ("looks", "places") if getattr(one, name) != getattr(other, name)]
    return f"the job {one.job.id} differs in {', '.join(names)}"


def _encoded(whole: Whole) -> bytes:
    try:
        return _encode(whole)
    except UnicodeEncodeError as error:
        raise StoreError(
            f"the job {whole.job.id} has damaged text (bytes that are no UTF-8), which no other store takes: give the move up "
            "with `rota move --reopen`, delete this job, and move again"
        ) from error
