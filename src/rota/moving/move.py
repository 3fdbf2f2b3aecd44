"""`move`: seals both stores, brings everything over, has it compared, and opens the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from rota.errors import RotaError, StoreError, StoreUnavailable
from rota.ids import new_id
from rota.model import Filter, Seal, State, Whole
from rota.moving.comparing import Sum, differences
from rota.moving.sides import Side, at_hand, both
from rota.moving.terms import check, check_other, check_taken, sealed_away


class Stage(Struct, frozen=True):
    """How far a move is."""

    checking: bool
    """Whether all have arrived, and what the target has is being read again."""
    jobs: int
    """How many jobs were read."""
    total: int


class Moved(Struct, frozen=True):
    """What a move did, and what was found when both stores were held against each other."""

    source: str
    """Where the jobs come from, without a password."""
    target: str
    states: dict[State, int]
    """How many jobs the source has in each state; every state is there."""
    attempts: int
    """How many attempts that did not succeed these jobs had."""
    loaded: int
    """How many jobs were written this time; the others were there from before an interruption."""
    digest: str
    """Of every job's whole content and its attempts, in whatever order; empty where the move had been done before."""
    differences: list[str]
    """What is otherwise in the target; both stores stay sealed then."""

    @property
    def total(self) -> int:
        """How many jobs the source has."""
        return sum(self.states.values())


Tell = Callable[[Stage], object]


def untold(stage: Stage) -> None:
    """Hears how far a move is where nobody else wants to."""


def move(source: str, target: str, tell: Tell = untold) -> Moved:
    """Move all jobs of the store with one URL to the store with another, with all that belongs to them; say what was found.

    Also pauses, sizes that were set for limits, what limits remember, and the declared defaults of tasks. Goes on where a move
    between the two was interrupted, and ends with the same content. Both stores are compared at the end: where they differ,
    `differences` says how. Memory is bounded, whatever there is to move. `tell` hears of each page.

    Raises `StoreError` while workers run on either store, where the target has other jobs, and where either is part of another
    move, `ConfigError` where both are the same store, and `SchemaMismatch` where its tables are too new.

    >>> from rota import Rota
    >>> with Rota("sqlite:///old.db") as app:
    ...     job = app.send("shop.send_receipt", 42)
    >>> moved = move("sqlite:///old.db", "sqlite:///new.db")
    >>> moved.total, moved.differences
    (1, [])
    >>> with Rota("sqlite:///new.db") as app:
    ...     app.get(job.id).status
    <State.QUEUED: 'queued'>
    """
    with both(source, target) as (ours, theirs):
        seal = _begun(ours, theirs)
        if seal.done and theirs.store.sealed() is None:
            _bring_lost_workers(ours, theirs)
            return Moved(ours.place, theirs.place, ours.states(), 0, 0, "", [])
        sent, loaded = _copied(ours, theirs, seal, tell)
        found = differences(ours, theirs, seal, sent, lambda jobs: tell(Stage(checking=True, jobs=jobs, total=sent.jobs)))
        if not found:
            ours.store.seal(replace(seal, done=True))
            theirs.store.unseal(seal.id)
            _bring_lost_workers(ours, theirs)
        return Moved(ours.place, theirs.place, sent.states, sent.attempts, loaded, sent.digest, found)


def look(source: str, target: str) -> dict[State, int]:
    """How many jobs of each state `move` would move, once it has refused what it would refuse. Nothing is sealed or written.

    Tables that are missing in the target are made.
    """
    with both(source, target) as (ours, theirs):
        check(ours, theirs)
        return ours.states()


def left(source: str) -> Seal:
    """The seal of a store whose jobs were moved away, or are being moved. Raises `StoreError` where they were not."""
    with at_hand(source) as store:
        return sealed_away(store)


def reopen(source: str) -> Seal:
    """Have a store whose jobs were moved away, or are being moved, take and give jobs again; answers the seal that it had.

    So a move is given up. What the target has by then stays there: where all had arrived it may have run there already.
    Raises `StoreError` for a store whose jobs were not moved.
    """
    with at_hand(source) as store:
        seal = sealed_away(store)
        store.unseal(seal.id)
        return seal


# -- what it does, in its order -----------------------------------------------------------------


def _begun(ours: Side, theirs: Side) -> Seal:
    """The seal of the move, with both stores sealed: of one that goes on, or a new one."""
    seal = check(ours, theirs)
    if seal is not None and (seal.done or theirs.store.sealed() is not None):
        return seal
    wanted = seal or Seal(new_id(), ours.place, theirs.place, ours.store.vitals().now, leaving=True)
    try:
        if seal is None:
            ours.store.seal(wanted)
            ours.check_idle()  # a worker may have come before
            check_other(theirs, wanted)
        _prepare(ours, theirs, wanted)
    except RotaError:
        if seal is None:
            with suppress(StoreError):  # what is told is why it did not begin
                ours.store.unseal(wanted.id)
        raise
    return wanted


def _prepare(ours: Side, theirs: Side, seal: Seal) -> None:
    """Bring what is no job, and then seal the target, which says that this was done."""
    source, target = ours.store, theirs.store
    target.declare(source.declarations())
    for pause in source.pauses():
        target.resume(pause.queue)  # one of the target's own would keep its beginning
        target.pause(pause.queue, pause.until, None, pause.by, now=pause.at)
    for name, size in source.overrides().items():
        target.set_limit(name, size)
    target.seal(replace(seal, leaving=False))
    try:
        theirs.check_idle()
        check_taken(ours, theirs)
    except RotaError:
        target.unseal(seal.id)
        raise


def _copied(ours: Side, theirs: Side, seal: Seal, tell: Tell) -> tuple[Sum, int]:
    """Bring all jobs, save those that are there; answer what all are, and how many were brought.

    They go in the order of their ids, each page in one transaction, so what is missing is what comes after the last.
    """
    newest = theirs.store.find(Filter(), 1)
    there = newest[0].id if newest else ""
    total = sum(ours.states().values())
    sent, loaded = Sum(), 0
    for page in ours.pages():
        for whole in page:
            sent.add(whole)
        if rest := [whole for whole in page if whole.job.id > there]:
            loaded += _load(theirs, seal, rest)
        tell(Stage(checking=False, jobs=sent.jobs, total=total))
    for rooms in ours.rooms():
        theirs.store.load_rooms(seal.id, rooms)
    return sent, loaded


def _load(theirs: Side, seal: Seal, jobs: Sequence[Whole]) -> int:
    """Load a page; where it is refused, one job after the other, to find out which it is."""
    try:
        return theirs.store.load(seal.id, jobs)
    except StoreUnavailable:
        raise
    except StoreError as error:
        if len(jobs) == 1:
            raise StoreError(f"the job {jobs[0].job.id} cannot be written to {theirs.place}: {error}") from error
    return sum(_load(theirs, seal, [whole]) for whole in jobs)


def _bring_lost_workers(ours: Side, theirs: Side) -> None:
    """Make workers known whose lease ran out while they had jobs, so that these are taken back as they would have been."""
    needed = {each.worker for each in theirs.store.unfinished()} - {worker.id for worker in theirs.store.workers()}
    for worker in ours.store.workers():
        if worker.id in needed:
            theirs.store.join(worker, now=worker.lease_until - worker.lease)
