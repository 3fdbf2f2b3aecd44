"""The limits of an app's tasks, as the claims of a store ask for them. An app has one once a task of its has a limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any

from rota.clock import SECOND
from rota.errors import NotSupported
from rota.model import Again, Ample, Claimed, Closing, Failed, Outcome
from rota.rules.instances import BadKey, Instance, by_name, instances_of
from rota.rules.limits import ConcurrencyOption, Declared, RateOption, agree, in_force, limits_of
from rota.rules.sizes import Concurrency, Size
from rota.stores.base import Store
from rota.task import Task

_ROOMY = 4
"""A limit of at least so many places leaves some to jobs that are claimed ahead."""
_REMEMBERED = 10_000
"""So many jobs without a usable key are remembered at the most: ten times what one claim looks at."""
_LONGEST = 86_400 * SECOND
"""For so long does a job that reports somebody else's limit close a room at the most."""


@dataclass(frozen=True, slots=True)
class _Limited:
    """A task that has limits."""

    task: Task[..., Any, Any]
    signature: Signature | None
    """What its key functions' arguments are named by; `None` where it has none."""
    rooms: tuple[Instance, ...]
    """The rooms of each of its jobs, where no key tells them apart."""


class Limiting:
    """What an app's code says of limits: `rota.stores.base.Limits`. Any thread may ask."""

    def __init__(self) -> None:
        self.bad: dict[str, BadKey] = {}
        """The jobs, by id, for which a key function gave no usable key when a claim looked at them.

        They are claimed as if they had no limits: whoever gets one takes it out of here and fails its attempt with the error.
        """
        self._tasks: dict[str, _Limited] = {}
        self._declared: dict[str, Declared] = {}
        """The first declaration of each limit."""
        self._sizes: tuple[dict[str, Size], Mapping[str, Size]] | None = None
        """The answer to the last question for sizes, which seldom changes."""

    def add(self, task: Task[..., Any, Any]) -> None:
        """Take in the limits of one more task. Raises `ConfigError` where they contradict those of another."""
        agree([*(self._declared[limit.name] for limit in task.limits if limit.name in self._declared), *task.limits])
        for limit in task.limits:
            self._declared.setdefault(limit.name, limit)
        keyed = any(limit.key is not None for limit in task.limits)
        rooms = () if keyed else instances_of(task.limits, {})
        self._tasks[task.name] = _Limited(task, signature(task.function) if keyed else None, rooms)
        self._sizes = None

    # -- for claims -----------------------------------------------------------------------------

    def sizes(self, overrides: Mapping[str, Size]) -> Mapping[str, Size]:
        known = self._sizes
        if known is None or known[0] != overrides:
            self._sizes = known = (dict(overrides), in_force(self._declared.values(), overrides))
        return known[1]

    def instances(self, job: str, task: str, args: str) -> tuple[Instance, ...]:
        """The rooms of a job. None where its arguments do not fit, for which its body will fail, or where it has no key."""
        try:
            return self.rooms(task, args)
        except BadKey as error:
            while len(self.bad) >= _REMEMBERED:
                self.bad.pop(next(iter(self.bad), job), None)
            self.bad[job] = error
            return ()

    @property
    def roomy(self) -> bool:
        """Whether each limit leaves places to jobs that are claimed ahead; a rate's are to start as they are claimed."""
        return all(isinstance(limit.size, Concurrency) and limit.size.most >= _ROOMY for limit in self._declared.values())

    def ample(self, many: int) -> Ample | None:
        """What a claim of so many may take in one step under limits far from full; `None` where it must look at each job."""
        from rota.rules.admission import spare_for

        if any(limit.key is not None for limit in self._declared.values()):
            return None
        sizes = self.sizes({})
        rooms = {(room.limit, room.key) for limited in self._tasks.values() for room in limited.rooms}
        enough = [(name, key, spare_for(many, sizes.get(name))) for name, key in sorted(rooms)]
        if any(spare < 0 for _, _, spare in enough):
            return None
        places = {task: tuple((room.limit, room.key) for room in limited.rooms) for task, limited in self._tasks.items()}
        return Ample(tuple(enough), places)

    @property
    def most_ahead(self) -> int:
        """How many places claims ahead may take under each limit, if that is one of concurrency alone."""
        from rota.rules.admission import most_ahead

        return min(most_ahead(limit.size.most) for limit in self._declared.values() if isinstance(limit.size, Concurrency))

    def poll_within(self, seconds: float) -> float:
        """How long a worker may sleep that would look for work each so many seconds: see `rules.admission.poll_within`."""
        from rota.rules.admission import poll_within

        return poll_within(int(seconds * SECOND), [limit.size for limit in self._declared.values()]) / SECOND

    def check_store(self, store: Store) -> None:
        """Refuse a store that knows no limits. Raises `NotSupported`."""
        if not callable(getattr(store, "admit", None)):
            raise NotSupported(
                f"the store {store.url} cannot hold jobs back, and tasks have limits ({', '.join(self._tasks)}): "
                "use SQLite, Postgres, Valkey or Redis, or take concurrency= and rate= off these tasks"
            )

    # -- for others -----------------------------------------------------------------------------

    def rooms(self, task: str, args: str) -> tuple[Instance, ...]:
        """`instances`, which raises `BadKey`."""
        limited = self._tasks.get(task)
        if limited is None:
            return ()
        if limited.signature is None:
            return limited.rooms
        try:
            by_position, named = limited.task.signature.decode(args)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  # whatever it is, it is told when the body is to begin
            return ()
        return instances_of(limited.task.limits, by_name(limited.signature, by_position, named))

    def closes(self, job: Claimed, outcome: Outcome) -> tuple[tuple[tuple[str, str], ...], int]:
        """The rooms that an attempt's outcome closes, by name and key, and for how long: `Ended.closes` and `closes_for`.

        That is a day at the most: nobody but time opens a room again, and after that one job asks anew.
        """
        match outcome:
            case Again(closing=Closing(limits, wait)) | Failed(closing=Closing(limits, wait)):
                rooms = self.instances(job.id, job.task, job.args)
                self.bad.pop(job.id, None)
                return tuple((room.limit, room.key) for room in rooms if room.limit in limits), min(wait, _LONGEST)
            case _:
                return (), 0

    def declared(self) -> Mapping[str, Declared]:
        """Each limit by its name, as the first task declares it that has it."""
        return self._declared

    def tasks_of(self, name: str) -> list[str]:
        """The names of the tasks that are under this limit."""
        return [task for task, limited in self._tasks.items() if any(limit.name == name for limit in limited.task.limits)]


def declared_limits(
    task: str, function: Callable[..., Any], concurrency: ConcurrencyOption | None, rate: RateOption | None
) -> tuple[Declared, ...]:
    """The limits that a task is declared with. Raises `ConfigError` for those that cannot be right or do not suit it."""
    try:
        return limits_of(task, concurrency, rate, signature(function))
    except (TypeError, NameError):  # what it takes cannot be told, so its first enqueue says that
        return limits_of(task, concurrency, rate)
