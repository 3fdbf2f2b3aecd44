"""The one seam between Rota and where jobs are kept.

A store makes each operation one atomic step. It waits for other transactions and for nothing else: a store that is away
is the caller's to try again. It decides nothing that a rule can decide.
Operations that depend on the time take `now`: `None` means the store's own clock, a number replaces it.
Any thread may call any operation; a store that finds itself in a forked child opens anew.
An unreachable, full or locked store raises `StoreUnavailable`; nothing was changed then, except that the reply to a commit
may have been lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rota.bell import Bell
from rota.clock import Micros
from rota.model import (
    Ask,
    AttemptRow,
    Changed,
    Claimed,
    Count,
    Edit,
    Ended,
    Filter,
    Flow,
    Inserted,
    JobRow,
    LimitRow,
    Migration,
    Move,
    NewJob,
    Paused,
    PauseRow,
    Promoted,
    Pulse,
    Reaped,
    Report,
    RoomRow,
    Round,
    Seal,
    Settled,
    State,
    Tally,
    TaskRow,
    Turn,
    Unfinished,
    Vitals,
    Whole,
    WorkerRow,
)

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.rules.instances import Instance
    from rota.rules.sizes import Size
    from rota.stores.foreign import Dialect


class Limits(Protocol):
    """The limits that an app's code declares, as a claim asks for them."""

    def sizes(self, overrides: Mapping[str, Size]) -> Mapping[str, Size]:
        """The size in force of each limit, by its name, when these were set at run time."""
        ...

    def instances(self, job: str, task: str, args: str) -> tuple[Instance, ...]:
        """The rooms that a job falls under; none where its task is unknown here or has no limits."""
        ...


class Line(Protocol):
    """A worker's own way to the store, with a connection of its own: its turns go over it, and on it the worker sleeps.

    Owned by one thread. When the store is lost every operation raises `StoreUnavailable`, and a new line is needed: what
    was posted and not answered may have been done or not.
    """

    ahead: int
    """How many turns may be under way: more than one where the store can work on the next while an answer is looked at."""

    ample: bool
    """Whether a turn may claim under limits that are far from full (`Ask.ample`), with no step of its own for them."""

    def post(
        self,
        worker: str,
        ends: Sequence[Ended],
        ask: Ask | None = None,
        now: Micros | None = None,
        tally: Tally | None = None,
    ) -> None:
        """Send a turn: what `Store.finish` does, or without `ends` what `Store.claim` does.

        Where claims are ample, `tally` says how many places the worker has by them without `ends`; the store adds those that
        this turn takes, and forgets all of it with the worker. The first of a line is whole and covers the rooms of its ample
        claims; from then on nothing counts that was sent over a line given up before.
        """
        ...

    def answered(self) -> Turn | None:
        """The answer to the oldest turn that has not been answered, or `None` while there is none. Raises what the turn met."""
        ...

    def wait(self, timeout: float, bell: Bell, when_rung: Ask | None = None) -> bool:
        """Sleep until the bell rings, an answer may be there, or the store may have work: answers whether the latter rang.

        At most `timeout` seconds. May ring without need; what rang since the last wait counts. When it rang, the claim
        `when_rung` has been posted, by the store's clock: a job that wakes a worker waits for nothing else.
        """
        ...

    def close(self) -> None:
        """Give back its connection. Closing twice is fine."""
        ...


class Store(Protocol):
    """Where jobs are kept. See the module for what holds of every operation."""

    url: str
    """Where it is, without its password."""

    def open(self) -> None:
        """Connect and make sure of the tables: missing ones are made, old ones migrated, newer ones refused.

        Idempotent, and called by every other operation when it has not happened yet. Raises `SchemaMismatch`.
        """
        ...

    def close(self) -> None:
        """Give back every connection. The store may be opened again."""
        ...

    def twin(self) -> Store:
        """Another store on the same place with connections of its own, for a thread that must not wait for the others."""
        ...

    def migrate(self) -> list[str]:
        """Bring the tables to this version under a lock and return the names of the migrations that ran."""
        ...

    def pending(self) -> list[Migration]:
        """What `migrate` would run, in order. Changes nothing. Raises `SchemaMismatch` where this process is too old."""
        ...

    def there(self) -> bool:
        """Whether the tables are there. Makes nothing."""
        ...

    def schema(self) -> list[tuple[str, str]]:
        """The name and the text of each step that makes the tables from nothing, in order. The store is not touched."""
        ...

    # -- jobs come in ---------------------------------------------------------------------------

    def insert(self, jobs: Iterable[NewJob], now: Micros | None = None) -> list[Inserted]:
        """Add jobs, all or none, and ring sleeping workers; durable on return.

        A job whose task and key an unfinished job already has is not added; its answer names that job, `existed` set. So do
        later ones of the same batch. A job whose id is already known, finished or not, is left as it is and answered as new,
        so an insert whose reply was lost may be sent again. Answers come in the order of the jobs. Memory is bounded: a long
        iterable is read in chunks within one transaction.
        """
        ...

    def declare(self, tasks: Sequence[TaskRow]) -> None:
        """Remember the declared defaults of these tasks; the last declaration of a name counts."""
        ...

    def declared(self, name: str) -> TaskRow | None:
        """The defaults that a worker last declared for this task."""
        ...

    # -- workers --------------------------------------------------------------------------------

    def join(self, worker: WorkerRow, now: Micros | None = None) -> None:
        """Make the worker known, with a lease of `worker.lease` from now. Its id must be new.

        What limits hold is looked at again, as this worker may know other sizes.
        """
        ...

    def leave(self, worker: str, now: Micros | None = None) -> None:
        """Forget the worker. What it still holds goes back to the queue without using an attempt.

        A job that someone asked to cancel is cancelled instead. An unknown worker is no error, here and in `rest`.
        """
        ...

    def expire(self, worker: str, now: Micros | None = None) -> None:
        """End the lease of a worker that is known to be dead, so that the next `lost` takes back what it held.

        Its attempts count, as if the lease had run out. An unknown worker is no error.
        """
        ...

    def beat(self, worker: str, running: Sequence[Report], now: Micros | None = None) -> Pulse:
        """Renew the worker's lease, store progress, and say which of the reported jobs it should stop.

        A worker that is no longer known is not brought back: the answer's `alive` is false. Raises `SchemaMismatch` once the
        tables were changed beyond what this process knows.
        """
        ...

    def rest(self, worker: str, asleep: bool) -> None:
        """Say that the worker is about to sleep, so that inserts ring it, or that it is awake.

        It looks at the queue once more before it sleeps.
        """
        ...

    def workers(self) -> list[WorkerRow]:
        """Every worker that joined and neither left nor was reaped, oldest first. Its lease may have run out."""
        ...

    def lost(self, limit: int, now: Micros | None = None) -> Reaped:
        """Take back up to `limit` jobs of workers whose lease ran out, and forget workers that hold none any more.

        A lease runs out at the moment `lease_until`, not after it. While attempts remain a job is queued again at once, else
        it fails (its attempt's outcome `lost`, reason "worker lost: …"); one that someone asked to cancel is cancelled. The
        attempt counts. Fenced against a worker that returns: it finds itself forgotten. `next_in` is zero while more remain.
        """
        ...

    def reconcile(self, worker: str, in_hand: Sequence[str], now: Micros | None = None) -> int:
        """Queue again what the worker has claimed besides the jobs `in_hand`, without using an attempt, and answer how many.

        For a worker whose claim was answered by a broken connection: the store may have claimed what it never heard of.
        A job that someone asked to cancel is cancelled instead, and counts among them.
        """
        ...

    # -- the hot path ---------------------------------------------------------------------------

    def claim(self, ask: Ask, now: Micros | None = None) -> list[Claimed]:
        """Claim the first `limit` queued jobs: larger priority first, then earlier due, then id, over all queues asked for.

        Each has its claim counted and is `running` under the worker's lease. Rows that another claim holds are skipped, not
        waited for. An unknown worker (never joined, or reaped) gets nothing. Jobs not yet due are not looked at: see `promote`.
        A key that counts only while waiting is taken off the job for good.
        """
        ...

    def finish(self, worker: str, ends: Sequence[Ended], ask: Ask | None = None, now: Micros | None = None) -> Turn:
        """Write what became of these attempts and, in the same round trip, claim for `ask`.

        A job that took a place of a limit gives it back, and a job that the limit holds is queued in its place; rooms that an
        outcome `closes` let none in for so long. Both also happen where a job ends by `lost`, `leave` or `reconcile`.
        Fenced by worker, id and claim: an attempt that was taken over changes nothing and is not among the counted; one that
        comes after its lease counts while nobody took the job. Outcomes and claims are one transaction. Durable on return.
        A wait of zero queues the job at once, else it is scheduled; one that someone asked to cancel is cancelled instead and
        kept.
        """
        ...

    def finish_after(self, worker: str, ends: Sequence[Ended], now: Micros | None = None) -> Settled:
        """Write what became of attempts that their bodies finished within transactions of their own; durable on return.

        Waits for none of these transactions. Where it was undone the outcome is written, as `finish` does; where it was
        committed the job has succeeded and stays so, and the places of limits are given back; so it is where the job was
        retried by hand since. Fenced as `finish` is: an attempt that was taken over is in no part of the answer, nor is one
        whose job is gone.
        """
        ...

    def admit(self, ask: Ask, limits: Limits, now: Micros | None = None) -> Round:
        """`claim`, under limits: what may start by `rota.rules.admission` is claimed, what meets a full limit is held.

        Jobs whose limits have room by now, because of the time or of another size, are queued again before, those of every
        queue. All that is read and decided about a room happens under a lock of it, and its moment is read after that lock was
        got. Jobs stay queued that would take more than `ask.slots` places. Looks at a bounded number of jobs, in several steps
        of which each is atomic: after an error some may be claimed, for which there is `reconcile`. A room that holds jobs is
        looked at once a minute at least.
        """
        ...

    def set_limit(self, name: str, size: Size | None, now: Micros | None = None) -> None:
        """Have a size outweigh what code declares for the limit of this name, from now on; `None` ends that.

        Jobs that it holds are looked at again.
        """
        ...

    def overrides(self) -> dict[str, Size]:
        """The sizes that were set, by the names of their limits."""
        ...

    def rooms(self) -> list[LimitRow]:
        """Each limit's room under which a job runs, is held, or started lately, by name and key."""
        ...

    def pause(
        self, queue: str, until: Micros | None = None, span: Micros | None = None, by: str = "", now: Micros | None = None
    ) -> None:
        """Pause a queue, known or not, until a moment, for a span from now, or, with neither, until it is resumed.

        Nothing else changes: jobs of the queue come in, become due and are claimed by whoever asks for it. Workers do not ask,
        as soon as they know: they look at `paused` and are rung. A second pause takes the place of the first.
        """
        ...

    def resume(self, queue: str, now: Micros | None = None) -> bool:
        """End the pause of a queue, ring sleepers, and answer whether there was one."""
        ...

    def paused(self, now: Micros | None = None) -> Paused:
        """The queues that are paused now. Workers ask often, so this is one quick read."""
        ...

    def pauses(self) -> list[PauseRow]:
        """Every pause that was not ended by hand, by queue. Some may be over."""
        ...

    def promote(self, limit: int, now: Micros | None = None) -> Promoted:
        """Queue up to `limit` scheduled jobs whose time has come, the earliest first, and ring sleepers.

        When a job is due does not change. `next_in` is zero while more remain.
        """
        ...

    def queues(self) -> list[str]:
        """The names of the queues that have queued jobs, found without reading every job."""
        ...

    def line(self) -> Line:
        """A line for a worker."""
        ...

    def dialect(self) -> Dialect:
        """How its queries are put to a connection of the caller's own, whose transaction they are then part of.

        Raises `NotSupported` where no such connection leads to the store; it says what to do instead.
        """
        ...

    # -- looking and changing -------------------------------------------------------------------

    def get(self, ids: Sequence[str]) -> list[JobRow]:
        """The jobs with these ids, in no promised order; unknown ids are left out."""
        ...

    def attempts(self, id: str) -> list[AttemptRow]:
        """The attempts of a job that did not succeed, oldest first."""
        ...

    def find(self, which: Filter, limit: int, before: str | None = None) -> list[JobRow]:
        """Up to `limit` jobs, the newest first; with `before`, those whose id sorts before it (the next page)."""
        ...

    def counts(self) -> list[Count]:
        """How many jobs there are by queue, task and state."""
        ...

    def unfinished(self) -> list[Unfinished]:
        """How many unfinished jobs there are by queue, state and worker. Reads each of them, and no finished one."""
        ...

    def flow(self, span: Micros, now: Micros | None = None) -> list[Flow]:
        """How many jobs came in, and how many ended, within the last `span`, by queue, worker and state.

        Those that ended and are not kept are in neither number. Reads these jobs alone, however many there are besides: of
        those that came in, the ones whose ids were made up to five seconds before that, in case clocks differ.
        """
        ...

    def latest(self, state: State, limit: int) -> list[JobRow]:
        """Up to `limit` jobs in a final state, those first that ended last. Quick, however many there are."""
        ...

    def change(self, move: Move, ids: Sequence[str], now: Micros | None = None, only: Collection[State] = ()) -> list[Changed]:
        """Cancel, retry or delete these jobs and say what became of each, in the order asked.

        Where states are given as `only`, jobs that are in another one by then stay as they are.

        `MOVES` says from which states. A retry starts the attempts afresh and is due now; claims are numbered on, so that none
        from before counts. It takes the job's key again and is refused (state unchanged) when another unfinished job has it.
        The cancel of a running job asks its worker to stop it. What is remembered of a deleted job's attempts goes with it.
        """
        ...

    def edit(self, edit: Edit, ids: Sequence[str], now: Micros | None = None, only: Collection[State] = ()) -> list[Changed]:
        """Change the priority, the queue or the due time of those of these jobs that wait, and say what became of each.

        `only` is what it is to `change`.

        A job that is due later than now is scheduled, else queued; without a new time a scheduled one stays so. What a limit
        held is queued and looked at anew. Running and finished jobs stay as they are. Rings sleepers.
        """
        ...

    def prune(self, ages: Mapping[State, Micros], limit: int, now: Micros | None = None) -> dict[State, int]:
        """Delete up to `limit` finished jobs that ended longer ago than their state's age; states without an age stay.

        So go rooms of limits that nothing holds on to.
        """
        ...

    def prunable(self, ages: Mapping[State, Micros], now: Micros | None = None) -> dict[State, int]:
        """How many jobs `prune` would delete if it had no limit."""
        ...

    def vitals(self) -> Vitals:
        """The store's clock, size and warnings."""
        ...

    # -- moving to another store ----------------------------------------------------------------

    def seal(self, seal: Seal) -> None:
        """Let nothing be changed from now on: until `unseal`, whoever tries is told `seal.words` in a `StoreError`.

        Jobs, workers, tasks, limits and queues stay as they are, for older processes and connections of a caller's own as
        well; looking goes on. What was under way has ended when this returns, or `StoreUnavailable` says what has not. Another
        seal with the same id takes the place of the first; raises `StoreError` where there is one with another id.
        """
        ...

    def unseal(self, id: str) -> bool:
        """Lift the seal with this id, and answer whether there was one."""
        ...

    def sealed(self) -> Seal | None:
        """The seal that keeps everything as it is, if there is one. `vitals` warns of it."""
        ...

    def dump(self, after: str | None, limit: int) -> list[Whole]:
        """Up to `limit` jobs with all that belongs to each, in the order of their ids; with `after`, those that sort after it.

        Fewer where they weigh much, so that memory stays bounded, but none only where there are no more. What is told of a job
        is of one moment only while the store is sealed.
        """
        ...

    def load(self, seal: str, jobs: Sequence[Whole], now: Micros | None = None) -> int:
        """Take in jobs of another store exactly as they are, all or none, and answer how many were new; durable on return.

        Beneath the seal with this id: where there is none, `StoreError`. A job whose id is known stays as it is, so a load
        whose reply was lost may be sent again. Raises `StoreError` where another unfinished job has the key of one. Of a
        running job the worker need not be known: once it joins with a lease that is over, `lost` takes the job back. What a
        limit held it holds again, and the next claim looks at it. Nobody is rung.
        """
        ...

    def dump_rooms(self, after: RoomRow | None, limit: int) -> list[RoomRow]:
        """Up to `limit` rooms of limits that remember a start or are closed, in an order that goes on `after` one of them."""
        ...

    def load_rooms(self, seal: str, rooms: Sequence[RoomRow]) -> int:
        """Have these rooms remember what they did in another store, and answer how many did not yet; of two moments the later.

        Beneath the seal with this id, as `load`. Durable on return.
        """
        ...

    def declarations(self) -> list[TaskRow]:
        """The defaults of every task that a worker ever declared, by name."""
        ...
