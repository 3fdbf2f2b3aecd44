"""The words that every part of Rota shares: states, moves between them, and the records that cross the store's seam.

Records are plain values. Moments and spans are microseconds; ids are UUIDs in text; `None` stands for "not set".
It is long because it is a list: each entry stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from rota.clock import Micros, at


class State(StrEnum):
    """Where a job is in its life."""

    SCHEDULED = "scheduled"
    """Its time has not come."""
    QUEUED = "queued"
    """Due, and may be claimed."""
    HELD = "held"
    """Due, but its limit has no room."""
    RUNNING = "running"
    """Claimed by a worker, under its lease."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether a job in this state is done with; only a retry by hand moves it again."""
        return self in FINAL


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
UNFINISHED = tuple(state for state in State if state not in FINAL)
"""In the order in which people read them."""


class Move(StrEnum):
    """What can happen to a job."""

    PROMOTE = "promote"
    """Its time came."""
    HOLD = "hold"
    """The claim that met it found its limit full."""
    FREE = "free"
    """Its limit may have room for it."""
    CLAIM = "claim"
    """A worker took it."""
    SUCCEED = "succeed"
    FAIL = "fail"
    AGAIN = "again"
    """The attempt failed and another is due later."""
    RELEASE = "release"
    """The worker handed it back; the attempt does not count."""
    SNOOZE = "snooze"
    """The task asked for later; the attempt does not count."""
    LOSE = "lose"
    """The worker's lease ran out; the attempt counts."""
    CANCEL = "cancel"
    RETRY = "retry"
    """Someone asked for it to run (again) now, with all its attempts before it."""
    DELETE = "delete"
    EDIT = "edit"
    """Someone changed its priority, its queue or when it is due."""


_WAITING = (State.SCHEDULED, State.QUEUED, State.HELD)

MOVES: Mapping[Move, Mapping[State, frozenset[State]]] = {
    Move.PROMOTE: {State.SCHEDULED: frozenset({State.QUEUED})},
    Move.HOLD: {State.QUEUED: frozenset({State.HELD})},
    Move.FREE: {State.HELD: frozenset({State.QUEUED})},
    Move.CLAIM: {State.QUEUED: frozenset({State.RUNNING})},
    Move.SUCCEED: {State.RUNNING: frozenset({State.SUCCEEDED})},
    Move.FAIL: {State.RUNNING: frozenset({State.FAILED})},
    # A job that someone asked to cancel does not wait again.
    Move.AGAIN: {State.RUNNING: frozenset({State.SCHEDULED, State.QUEUED, State.CANCELLED})},
    Move.RELEASE: {State.RUNNING: frozenset({State.SCHEDULED, State.QUEUED, State.CANCELLED})},
    Move.SNOOZE: {State.RUNNING: frozenset({State.SCHEDULED, State.QUEUED, State.CANCELLED})},
    Move.LOSE: {State.RUNNING: frozenset({State.QUEUED, State.FAILED, State.CANCELLED})},
    # Cancelling a running job only asks its worker to stop; the worker then reports the cancellation.
    Move.CANCEL: {state: frozenset({State.CANCELLED}) for state in _WAITING}
    | {State.RUNNING: frozenset({State.RUNNING, State.CANCELLED})},
    Move.RETRY: {state: frozenset({State.QUEUED}) for state in State if state is not State.RUNNING},
    # Absent afterwards, so the set of states is empty.
    Move.DELETE: {state: frozenset() for state in State if state is not State.RUNNING},
    # A held job is queued again, so that its limits look at what it is now.
    Move.EDIT: {state: frozenset({State.SCHEDULED, State.QUEUED}) for state in _WAITING},
}
"""Every move that exists: what happens, from which state, to which states. The documentation's diagram is printed from it."""


class NewJob(Struct, frozen=True, gc=False):
    """A job on its way into the store. It becomes due at `run_at`, or `delay` after the store's now."""

    id: str
    task: str
    queue: str
    args: str
    """The arguments as JSON (`rota.codec`)."""
    priority: int = 0
    run_at: Micros | None = None
    delay: Micros = 0
    max_attempts: int = 5
    key: str | None = None
    key_waiting: bool = False
    """Whether the key counts only until the job is first claimed, rather than until it is finished."""
    context: str | None = None
    """The values of context variables to carry to the body, as JSON by name."""


Places = tuple[tuple[str, str], ...]
"""Rooms of limits, by name and key."""


class Ample(Struct, frozen=True):
    """What a claim may take under limits that are far from full, without looking at each job: see `Line.ample`."""

    rooms: tuple[tuple[str, str, int], ...]
    """The rooms of all jobs that may come, by name and key, and how many places may be taken in each before more are."""
    places: Mapping[str, Places]
    """The rooms that the jobs of each task need."""


class Tally(Struct, frozen=True):
    """How many places a worker has by claims that did not note them one by one (`Ask.ample`)."""

    rooms: Mapping[tuple[str, str], int]
    """How many more, or with a minus fewer, than it told last, by the name and key of the room."""
    whole: bool = False
    """Whether they are all that it has instead, whatever it told."""


class Round(Struct, frozen=True):
    """What a claim under limits did."""

    claimed: list[Claimed]
    places: Mapping[str, Places]
    """The places of limits that they took, by the ids of those that took any: to be given back when they end."""
    held: int
    """How many queued jobs it moved to the held ones."""
    reserved: bool
    """Whether it left jobs queued because they would only have waited, in places that others may need."""
    more: bool
    """Whether there was more to look at than one round does."""
    next_in: Micros | None
    """How long until time alone makes room for a held job (`None`: only the end of a running one does)."""


class LimitRow(Struct, frozen=True):
    """A limit's room as the store knows it; `key` is empty where the limit has none."""

    name: str
    key: str
    running: int
    held: int
    started_at: Micros | None = None
    """When the last job started under it, where it is a rate."""
    closed_until: Micros | None = None
    """Until when it is closed, as a job reported."""


class Inserted(Struct, frozen=True, gc=False):
    """What an insert did: the id of the new job, or of the unfinished one that already holds its key."""

    id: str
    existed: bool = False


class PauseRow(Struct, frozen=True):
    """The pause of a queue. One whose `until` is past is over, whether or not anybody took note of that."""

    queue: str
    at: Micros
    """Since when it is paused."""
    until: Micros | None = None
    """Until when, where it ends by itself."""
    by: str = ""
    """Who asked for it, in their own words; may be empty."""


class Paused(Struct, frozen=True):
    """The queues that are paused now, and how long until the next pause ends by itself (`None`: none does)."""

    queues: frozenset[str]
    next_in: Micros | None


class WorkerRow(Struct, frozen=True):
    """A worker as the store knows it. Its lease covers every job that it holds."""

    id: str
    name: str
    host: str
    pid: int
    queues: list[str] | None
    """The queues it serves; `None` for all."""
    tasks: list[str]
    concurrency: int
    lease: Micros
    version: str
    started_at: Micros = 0
    lease_until: Micros = 0
    asleep: bool = False
    trouble: str | None = None
    """What befell the one that it stands for or takes the place of, where that was no stop."""

    @property
    def fallen(self) -> bool:
        """Whether it stands for a worker that is down: it has no slots, and takes no jobs."""
        return self.concurrency == 0


class TaskRow(Struct, frozen=True):
    """A task's declared defaults, kept so that a process without its code can enqueue it as declared."""

    name: str
    queue: str
    priority: int
    max_attempts: int


class Ask(Struct, frozen=True):
    """What a worker wants of a claim: at most `limit` due jobs of these queues."""

    worker: str
    queues: tuple[str, ...]
    limit: int
    slots: int = 0
    """How many of them may be jobs under a limit, for `admit`: each has its places from the claim on, begun or not."""
    at_once: int | None = None
    """How many of them begin at once (`None`: all). The others leave half of a limit's places, or a hundred."""
    behind: Mapping[str, Claimed] = {}
    """The job that was last in the order of each queue in an earlier claim. A store in which claims walk over what is gone may
    begin behind it, so that of jobs with its priority one due before it waits for a claim without this."""
    ample: Ample | None = None
    """Claim under these limits, for a line that can; nothing is claimed where one may not be far from full."""


class Claimed(Struct, frozen=True, gc=False):
    """A job as the worker that claimed it gets it."""

    id: str
    task: str
    queue: str
    args: str
    claim: int
    """The number of this claim among all of the job's; with the worker's id it fences every later write."""
    excused: int
    """How many of the claims did not count as attempts (releases and snoozes)."""
    max_attempts: int
    priority: int = 0
    due: Micros = 0
    key: str | None = None
    looks: int = 0
    """How many times in a row it was handed back for want of its task."""
    context: str | None = None
    """The values of context variables that it was enqueued with, as JSON by name."""

    @property
    def attempt(self) -> int:
        return self.claim - self.excused


class Failure(Struct, frozen=True):
    """What went wrong in an attempt, made safe to store by `rota.codec.failure_of`."""

    type: str
    message: str
    trace: str = ""

    @property
    def reason(self) -> str:
        """The failure in one line: its message, with its type where the message alone says nothing."""
        if not self.message:
            return self.type
        return f"{self.type}: {self.message}" if self.type in ("KeyError", "SystemExit") else self.message


class Succeeded(Struct, frozen=True):
    """The body returned."""

    result: str | None = None
    """The task's return value as JSON, where its task keeps results."""


class Closing(Struct, frozen=True):
    """What a body reported that met the limit of somebody else: the rooms that its job is in let none in for `wait`."""

    limits: tuple[str, ...]
    """The names of the limits whose rooms they are."""
    wait: Micros


class Failed(Struct, frozen=True):
    """The last word: no attempt is left, or the failure is one that no retry can mend."""

    failure: Failure
    closing: Closing | None = None


class Again(Struct, frozen=True):
    """The attempt failed; the next one is due `wait` after the store's now."""

    failure: Failure
    wait: Micros
    closing: Closing | None = None


class Snoozed(Struct, frozen=True):
    """The task asked to be run later; the attempt does not count."""

    wait: Micros


class Released(Struct, frozen=True):
    """The worker handed the job back unfinished; the attempt does not count. `reason` says why."""

    reason: str
    wait: Micros = 0
    looks: int = 0
    """How many times in a row, this one included, it was handed back for want of its task."""


class Cancelled(Struct, frozen=True):
    """The body was stopped because someone asked for it."""

    reason: str = "cancelled while running"


Outcome = Succeeded | Failed | Again | Snoozed | Released | Cancelled
"""What an attempt did."""


class Ended(Struct, frozen=True, gc=False):
    """An attempt's outcome on its way into the store."""

    id: str
    claim: int
    outcome: Outcome
    took: Micros = 0
    """How long the body ran."""
    keep: bool = True
    """Whether a final job stays in the history; otherwise it is deleted at once."""
    places: Places = ()
    """The places of limits that it took."""
    closes: Places = ()
    """The limits' rooms that are to let none in for `closes_for` from the store's now."""
    closes_for: Micros = 0


class Turn(Struct, frozen=True):
    """What one round trip did: the ids of the outcomes that still counted, and the jobs claimed."""

    counted: frozenset[str]
    claimed: list[Claimed]


class Settled(Struct, frozen=True):
    """What became of attempts whose bodies finished them within transactions of their own, by the ids of the jobs."""

    done: frozenset[str]
    """The transaction was committed: the job has succeeded."""
    counted: frozenset[str]
    """It was undone, and the outcome has been written."""
    open: frozenset[str]
    """It has not ended, so nothing can be said or written yet."""


class Progress(Struct, frozen=True):
    """How far a body says it is: `done` of `total`, in whatever it counts."""

    done: float
    total: float | None = None
    note: str = ""

    @property
    def share(self) -> float | None:
        """What part is done, from 0 to 1, where that is known."""
        return min(1.0, max(0.0, self.done / self.total)) if self.total else None


class Report(Struct, frozen=True):
    """A running job as its worker reports it with a beat; `progress` as JSON where it changed."""

    id: str
    claim: int
    progress: str | None = None


class Pulse(Struct, frozen=True):
    """The answer to a beat. When `alive` is false the worker's lease was taken: nothing it holds is its own any more."""

    alive: bool
    lost: frozenset[str] = frozenset()
    """Reported jobs that are no longer this worker's."""
    cancelled: frozenset[str] = frozenset()
    """Reported jobs that someone asked to cancel."""


class Lost(Struct, frozen=True):
    """A job whose worker's lease ran out, and where it went (`queued`, `failed` or `cancelled`)."""

    id: str
    task: str
    queue: str
    attempt: int
    worker: str
    state: State
    name: str = ""
    """What people called the worker."""

    @property
    def who(self) -> str:
        """The worker, by its name and its id."""
        return f"{self.name} ({self.worker})" if self.name else self.worker


class Reaped(Struct, frozen=True):
    """What a reaping did, and how long until the next lease runs out (`None`: there is none)."""

    lost: list[Lost]
    next_in: Micros | None


class Promoted(Struct, frozen=True):
    """How many scheduled jobs became queued, and how long until the next is due (`None`: there is none)."""

    count: int
    next_in: Micros | None


class JobRow(Struct, frozen=True):
    """All that the store knows of a job."""

    id: str
    task: str
    queue: str
    state: State
    priority: int
    due: Micros
    created_at: Micros
    claim: int
    """How often it was claimed, attempts before a retry by hand included."""
    excused: int
    """How many of the claims count as no attempt: releases, snoozes, and all before a retry by hand."""
    max_attempts: int
    args: str
    """As JSON by name; what has no name there is a list under `*`."""
    key: str | None = None
    worker: str | None = None
    claimed_at: Micros | None = None
    finished_at: Micros | None = None
    took: Micros | None = None
    result: str | None = None
    reason: str | None = None
    """Why the last attempt failed, or why the job was cancelled or handed back."""
    progress: str | None = None
    cancelling: bool = False
    """Whether someone asked to cancel it while it runs."""
    held_by: tuple[str, str] | None = None
    """The name and key of the full limit that holds it."""
    key_waiting: bool = False
    """Whether its key counts only until it is first claimed: a job that has been claimed has lost such a key."""
    context: str | None = None
    """The values of context variables that it was enqueued with, as JSON by name."""

    @property
    def attempt(self) -> int:
        """How many attempts it has had, the running one included."""
        return self.claim - self.excused


class AttemptRow(Struct, frozen=True):
    """An attempt that did not succeed, as the store remembers it."""

    claim: int
    attempt: int
    worker: str | None
    ended_at: Micros
    outcome: str
    """`failed`, `again`, `snoozed`, `released`, `cancelled` or `lost`."""
    took: Micros
    failure: Failure | None


class Whole(Struct, frozen=True):
    """A job with all that belongs to it, as it goes from one store to another."""

    job: JobRow
    attempts: tuple[AttemptRow, ...] = ()
    """Those that did not succeed, oldest first."""
    looks: int = 0
    """How many times in a row it was handed back for want of its task."""
    places: Places = ()
    """The places of limits that it has while it runs, by name and key."""


class RoomRow(Struct, frozen=True):
    """What a limit's room has let through, as it goes from one store to another; `key` is empty where the limit has none."""

    name: str
    key: str
    started_at: Micros | None = None
    """When the last job started under it, where it is a rate."""
    keep_until: Micros | None = None
    """Until when that counts."""
    closed_until: Micros | None = None
    """Until when it is closed, as a job reported."""


class Seal(Struct, frozen=True):
    """Why nothing in a store may be changed: all that is in it goes to another store, or comes from one."""

    id: str
    """The same in both stores, and another for each time that jobs are moved."""
    source: str
    """Where the jobs come from, as people are told it."""
    target: str
    """Where they go."""
    at: Micros
    """Since when."""
    leaving: bool
    """Whether this is the store that they come from."""
    done: bool = False
    """Whether all have arrived."""

    @property
    def words(self) -> str:
        """What whoever would change something is told."""
        since = f"{at(self.at):%Y-%m-%d %H:%M:%S} UTC"
        if not self.leaving:
            said = f"the jobs of {self.source} are being moved into this store since {since}: go on when `rota move` is done"
        elif self.done:
            said = f"the jobs of this store were moved to {self.target} ({since}), and nothing changes here any more: use that"
        else:
            said = (
                f"the jobs of this store are being moved to {self.target} since {since}: go on there when `rota move` is done"
            )
        return " ".join(said.split())


class Filter(Struct, frozen=True):
    """Which jobs: each field that is set narrows the choice."""

    states: tuple[State, ...] = ()
    queue: str | None = None
    task: str | None = None
    key: str | None = None
    worker: str | None = None


class Edit(Struct, frozen=True):
    """What a waiting job is to be from now on; what is not set stays as it is. At most one of `run_at` and `delay` is set."""

    priority: int | None = None
    queue: str | None = None
    run_at: Micros | None = None
    delay: Micros | None = None
    """How long from the store's now until it is due."""


class Changed(Struct, frozen=True):
    """What became of one job in a `change` or an `edit`. `before` is `None` for an unknown id, `after` for a deleted job.

    Equal states mean that the move was refused, save for the cancel of a running job, which is asked for, and for an edit:
    that is refused in the states from which `MOVES` has none.
    """

    id: str
    before: State | None
    after: State | None


class Count(Struct, frozen=True):
    """How many jobs of a task on a queue are in a state, and when the oldest of them became due."""

    queue: str
    task: str
    state: State
    jobs: int
    oldest: Micros


class Unfinished(Struct, frozen=True):
    """How many unfinished jobs of a queue are in a state, and when the first of them became due.

    Of running ones, how many a worker has; else `worker` is `None`.
    """

    queue: str
    state: State
    worker: str | None
    jobs: int
    oldest: Micros


class Flow(Struct, frozen=True):
    """How many jobs of a queue came in lately, or ended in a state after a worker had them."""

    queue: str
    worker: str | None
    state: State | None
    """The final state; `None` for those that came in."""
    jobs: int


class Vitals(Struct, frozen=True):
    """What the store says of itself: its clock, its size, and warnings that its users should read."""

    now: Micros
    warnings: list[str]
    facts: dict[str, str | int | float]
    """For example `{"store": "sqlite", "path": …, "wal_bytes": …}`."""


class Migration(Struct, frozen=True):
    """A change of the store's tables that is still to be made."""

    name: str
    older: bool
    """Whether processes of an older Rota may go on once it is made; else they end by themselves."""
    remark: str
    """What is to be said of them; may be empty."""
    locks: list[str]
    """What others are kept from meanwhile, by table."""
