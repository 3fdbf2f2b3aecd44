"""What limits let through, as a table: the rule is held to it, and so is every store.

Each vector is one moment of one deployment. All moments in it are microseconds from that one, so what is past is negative.
It is long because it is a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.rules.instances import Instance, instances_of
from rota.rules.limits import Declared, Limit, in_force, limits_of
from rota.rules.sizes import Concurrency, Rate, Size, read_size

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND

MANY = 1_000
"""More slots than any vector has jobs."""


class Waiting(Struct, frozen=True):
    """A job that is due."""

    id: str
    task: str = "mail"
    arguments: Mapping[str, object] = {}
    """By name, each that a key needs."""
    priority: int = 0
    due: Micros = 0
    held: bool = False
    """Whether an earlier claim held it, rather than that it is queued; it makes no difference to what becomes of it now."""


class Earlier(Struct, frozen=True):
    """A job that started before: the later of two in a vector started later."""

    task: str = "mail"
    arguments: Mapping[str, object] = {}
    at: Micros = -HOUR
    running: bool = True
    """Whether it still runs, rather than that it has ended, however it did."""


class Vector(Struct, frozen=True, kw_only=True):
    """What is declared and has happened, and what a claim of the waiting jobs must answer and leave behind.

    Instances are named by their text, for example `concurrency of build by tenant [1]`.
    """

    name: str
    tasks: Mapping[str, Mapping[str, Any]]
    """What each task is declared with: `concurrency`, `rate`, both or nothing."""
    earlier: Sequence[Earlier] = ()
    overrides: Mapping[str, str] = {}
    """Sizes set at run time, by the name of the limit."""
    closed: Mapping[str, Micros] = {}
    """Until when instances are closed."""
    waiting: Sequence[Waiting] = ()
    """In no order; the claim has one."""
    slots: int = MANY
    """How many jobs the claim may take."""
    at_once: int | None = None
    """How many of them begin at once; `None` for all."""

    admitted: Sequence[str] = ()
    """In the order in which they are claimed. A job that is neither admitted nor held was not looked at."""
    held: Mapping[str, tuple[str, Micros | None]] = {}
    """Which instance holds each, and until when; `None` where it holds until a running job ends."""
    running: Mapping[str, int] = {}
    """How many jobs run afterwards under each instance of a concurrency limit; one that is not named has none."""
    next_at: Mapping[str, Micros] = {}
    """From when each instance of a rate that has no room afterwards has some again; one that is not named has room."""
    again_at: Micros | None = None
    """When to look again."""

    @property
    def limits(self) -> dict[str, tuple[Declared, ...]]:
        """The limits of each task."""
        return {task: limits_of(task, **options) for task, options in self.tasks.items()}

    @property
    def sizes(self) -> dict[str, Size]:
        """The size in force of each limit."""
        declared = [limit for limits in self.limits.values() for limit in limits]
        return in_force(declared, {name: read_size(text) for name, text in self.overrides.items()})

    def instances(self, job: Waiting | Earlier) -> tuple[Instance, ...]:
        return instances_of(self.limits[job.task], job.arguments)

    @property
    def promised(self) -> list[Waiting]:
        """The waiting jobs in the order promised."""
        return sorted(self.waiting, key=lambda job: (-job.priority, job.due, job.id))

    @property
    def rates(self) -> dict[Instance, Rate]:
        """The instances of rates that the vector's jobs fall under."""
        sizes = self.sizes
        jobs: list[Waiting | Earlier] = [*self.earlier, *self.waiting]
        among = {instance: sizes[instance.limit] for job in jobs for instance in self.instances(job)}
        return {instance: size for instance, size in among.items() if isinstance(size, Rate)}


class Declares:
    """The limits that some code declares: the options of each task, by its name."""

    def __init__(self, tasks: Mapping[str, Mapping[str, Any]], huge: bool = False) -> None:
        self._limits = {task: limits_of(task, **options) for task, options in tasks.items()}
        self._huge = huge

    def sizes(self, overrides: Mapping[str, Size]) -> dict[str, Size]:
        sizes = in_force([limit for limits in self._limits.values() for limit in limits], overrides)
        return {name: _huge(size) for name, size in sizes.items()} if self._huge else sizes

    def instances(self, job: str, task: str, args: str) -> tuple[Instance, ...]:
        return instances_of(self._limits.get(task, ()), json.loads(args)[1])


def _huge(size: Size) -> Size:
    return Rate(1_000_000, SECOND) if isinstance(size, Rate) else Concurrency(1_000_000)


def _tenant(tenant: object) -> object:
    return tenant


def _waiting(ids: str, **fields: Any) -> list[Waiting]:
    """Jobs that are alike, of these one-letter ids."""
    return [Waiting(id, **fields) for id in ids]


MAIL, RATE = "concurrency of mail", "rate of mail"
BY_TENANT, RATE_BY_TENANT = "concurrency of mail by tenant", "rate of mail by tenant"

PLAIN: dict[str, dict[str, Any]] = {"mail": {}}
TWO = {"mail": {"concurrency": 2}}
TEN_A_MINUTE = {"mail": {"rate": "10/m"}}
EACH_TENANT = {"mail": {"concurrency": Limit(1, key=_tenant)}}
TENANT_AND_ALL = {"mail": {"concurrency": [Limit(2, key=_tenant), 3]}}
TWO_RATES = {"mail": {"rate": ["10/s", "1000/day"]}}
BOTH = {"mail": {"concurrency": 2, "rate": "10/m"}}
SHARED = {
    "mail": {"concurrency": Limit(2, name="partner")},
    "post": {"concurrency": Limit(2, name="partner")},
}
SHARED_RATE = {"mail": {"rate": Limit("1/s", name="partner")}, "post": {"rate": Limit("1/s", name="partner")}}
SHARED_BY_KEY = {
    "mail": {"concurrency": Limit(1, name="tenant", key=_tenant)},
    "post": {"concurrency": Limit(1, name="tenant", key=lambda customer: customer)},
}

_CONCURRENCY = (
    Vector(
        name="jobs of a task without limits all start",
        tasks=PLAIN,
        earlier=[Earlier(), Earlier()],
        waiting=_waiting("abc"),
        admitted="abc",
    ),
    Vector(
        name="at most two of a task run at once",
        tasks=TWO,
        waiting=_waiting("abcd"),
        admitted="ab",
        held={"c": (MAIL, None), "d": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="what runs already counts, whichever worker runs it",
        tasks=TWO,
        earlier=[Earlier()],
        waiting=_waiting("ab"),
        admitted="a",
        held={"b": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="a full limit holds all",
        tasks=TWO,
        earlier=[Earlier(), Earlier()],
        waiting=_waiting("ab"),
        held={"a": (MAIL, None), "b": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="a job that ended gives its place back",
        tasks=TWO,
        earlier=[Earlier(), Earlier(running=False)],
        waiting=_waiting("ab", held=True),
        admitted="a",
        held={"b": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="when all ended, the held jobs take every place",
        tasks=TWO,
        earlier=[Earlier(running=False), Earlier(running=False)],
        waiting=_waiting("abc", held=True),
        admitted="ab",
        held={"c": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="nothing waits, so nothing changes",
        tasks=TWO,
        earlier=[Earlier()],
        running={MAIL: 1},
    ),
    Vector(
        name="exactly as many as there is room for leave no one held",
        tasks=TWO,
        waiting=_waiting("ab"),
        admitted="ab",
        running={MAIL: 2},
    ),
    Vector(
        name="a worker fills its other slots with other work",
        tasks={"mail": {"concurrency": 2}, "other": {}},
        waiting=[*_waiting("abcd"), *_waiting("efghij", task="other")],
        slots=8,
        admitted="abefghij",
        held={"c": (MAIL, None), "d": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="a claim takes no more jobs than it has slots, whatever room there is",
        tasks=TWO,
        waiting=_waiting("abc"),
        slots=1,
        admitted="a",
        running={MAIL: 1},
    ),
    Vector(
        name="a claim without slots moves nothing",
        tasks=TWO,
        earlier=[Earlier(), Earlier()],
        waiting=_waiting("a"),
        slots=0,
        running={MAIL: 2},
    ),
    Vector(
        name="what does not begin at once leaves half of a limit to others",
        tasks={"mail": {"concurrency": 5}},
        waiting=_waiting("abcd"),
        at_once=0,
        admitted="ab",
        running={MAIL: 2},
    ),
    Vector(
        name="a wide limit keeps a hundred places for what begins at once",
        tasks={"mail": {"concurrency": 206}},
        earlier=[Earlier() for _ in range(105)],
        waiting=_waiting("abcd"),
        at_once=1,
        admitted="a",
        running={MAIL: 106},
    ),
    Vector(
        name="what begins at once takes the other half, and is followed by nobody",
        tasks={"mail": {"concurrency": 4}, "other": {}},
        earlier=[Earlier(), Earlier()],
        waiting=[*_waiting("abc"), *_waiting("d", task="other")],
        at_once=1,
        admitted="a",
        running={MAIL: 3},
    ),
    Vector(
        name="a job ahead of its slot leaves half of each of its limits",
        tasks={"mail": {"concurrency": [Limit(2, key=_tenant), 20]}},
        waiting=[
            Waiting("a", arguments={"tenant": 1}),
            Waiting("b", arguments={"tenant": 2}),
            Waiting("c", arguments={"tenant": 1}),
        ],
        at_once=0,
        admitted="ab",
        running={f"{BY_TENANT} [1]": 1, f"{BY_TENANT} [2]": 1, MAIL: 2},
    ),
    Vector(
        name="a limit of one and a rate let nobody in ahead of a slot",
        tasks={"mail": {"concurrency": 1}, "post": {"rate": "10/m"}, "other": {}},
        waiting=[
            Waiting("a", task="other", priority=1),
            *_waiting("b"),
            *_waiting("c", task="post"),
            *_waiting("d", task="other"),
        ],
        at_once=0,
        admitted="a",
    ),
    Vector(
        name="a full limit holds jobs also where nobody begins at once",
        tasks={"mail": {"concurrency": 2}, "other": {}},
        earlier=[Earlier(), Earlier()],
        waiting=[*_waiting("a"), *_waiting("b", task="other")],
        at_once=0,
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="a limit belongs to its task alone",
        tasks={"mail": {"concurrency": 1}, "post": {"concurrency": 1}},
        earlier=[Earlier()],
        waiting=[*_waiting("a"), *_waiting("b", task="post")],
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 1, "concurrency of post": 1},
    ),
)

_ORDER = (
    Vector(
        name="the larger priority takes the place",
        tasks={"mail": {"concurrency": 1}},
        waiting=[Waiting("a", due=-HOUR), Waiting("b", priority=5), Waiting("c", priority=-5, due=-DAY)],
        admitted="b",
        held={"a": (MAIL, None), "c": (MAIL, None)},
        running={MAIL: 1},
    ),
    Vector(
        name="of one priority, what was due first takes the place",
        tasks={"mail": {"concurrency": 1}},
        waiting=[Waiting("a", due=-1), Waiting("b", due=-2)],
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 1},
    ),
    Vector(
        name="of one priority and moment, the smaller id takes the place",
        tasks={"mail": {"concurrency": 1}},
        waiting=[Waiting("b"), Waiting("a")],
        admitted="a",
        held={"b": (MAIL, None)},
        running={MAIL: 1},
    ),
    Vector(
        name="a held job comes before a queued one that was due later",
        tasks={"mail": {"concurrency": 1}},
        waiting=[Waiting("a", due=-MINUTE), Waiting("b", due=-HOUR, held=True)],
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 1},
    ),
    Vector(
        name="a queued job of larger priority comes before a held one",
        tasks={"mail": {"concurrency": 1}},
        waiting=[Waiting("a", priority=1), Waiting("b", due=-HOUR, held=True)],
        admitted="a",
        held={"b": (MAIL, None)},
        running={MAIL: 1},
    ),
    Vector(
        name="held and queued jobs are claimed in one order",
        tasks={"mail": {"concurrency": 3}},
        waiting=[Waiting("a", due=-1), Waiting("b", due=-4, held=True), Waiting("c", due=-3), Waiting("d", due=-2, held=True)],
        admitted="bcd",
        held={"a": (MAIL, None)},
        running={MAIL: 3},
    ),
    Vector(
        name="a held job of large priority delays no job of another task",
        tasks={"mail": {"concurrency": 1}, "other": {}},
        earlier=[Earlier()],
        waiting=[Waiting("a", priority=9), Waiting("b", task="other", priority=-9)],
        slots=1,
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 1},
    ),
)

_KEYS = (
    Vector(
        name="each key has a room of its own",
        tasks=EACH_TENANT,
        waiting=[
            *_waiting("ab", arguments={"tenant": 1}),
            *_waiting("cd", arguments={"tenant": 2}),
        ],
        admitted="ac",
        held={"b": (f"{BY_TENANT} [1]", None), "d": (f"{BY_TENANT} [2]", None)},
        running={f"{BY_TENANT} [1]": 1, f"{BY_TENANT} [2]": 1},
    ),
    Vector(
        name="many jobs of one key do not delay another key's job",
        tasks=EACH_TENANT,
        earlier=[Earlier(arguments={"tenant": 1})],
        waiting=[
            *_waiting("abcdefghijklm", arguments={"tenant": 1}, due=-HOUR),
            *_waiting("z", arguments={"tenant": 2}),
        ],
        slots=1,
        admitted="z",
        held=dict.fromkeys("abcdefghijklm", (f"{BY_TENANT} [1]", None)),
        running={f"{BY_TENANT} [1]": 1, f"{BY_TENANT} [2]": 1},
    ),
    Vector(
        name="a number and its text are two keys",
        tasks=EACH_TENANT,
        earlier=[Earlier(arguments={"tenant": 1})],
        waiting=[*_waiting("a", arguments={"tenant": 1}), *_waiting("b", arguments={"tenant": "1"})],
        admitted="b",
        held={"a": (f"{BY_TENANT} [1]", None)},
        running={f"{BY_TENANT} [1]": 1, f'{BY_TENANT} ["1"]': 1},
    ),
    Vector(
        name="None is a key like any other",
        tasks=EACH_TENANT,
        waiting=[*_waiting("ab", arguments={"tenant": None}), *_waiting("c", arguments={"tenant": ""})],
        admitted="ac",
        held={"b": (f"{BY_TENANT} [null]", None)},
        running={f"{BY_TENANT} [null]": 1, f'{BY_TENANT} [""]': 1},
    ),
    Vector(
        name="a key may be made of several arguments",
        tasks={"mail": {"concurrency": Limit(1, key=lambda tenant, host: (tenant, host))}},
        earlier=[Earlier(arguments={"tenant": 1, "host": "x"})],
        waiting=[
            *_waiting("a", arguments={"tenant": 1, "host": "x"}),
            *_waiting("b", arguments={"tenant": 1, "host": "y"}),
            *_waiting("c", arguments={"tenant": 2, "host": "x"}),
        ],
        admitted="bc",
        held={"a": ('concurrency of mail by tenant, host [[1,"x"]]', None)},
        running={
            'concurrency of mail by tenant, host [[1,"x"]]': 1,
            'concurrency of mail by tenant, host [[1,"y"]]': 1,
            'concurrency of mail by tenant, host [[2,"x"]]': 1,
        },
    ),
    Vector(
        name="a rate may be per key",
        tasks={"mail": {"rate": Limit("1/s", key=_tenant)}},
        earlier=[Earlier(arguments={"tenant": 1}, at=-SECOND // 4, running=False)],
        waiting=[
            *_waiting("a", arguments={"tenant": 1}),
            *_waiting("bc", arguments={"tenant": 2}),
        ],
        admitted="b",
        held={"a": (f"{RATE_BY_TENANT} [1]", SECOND * 3 // 4), "c": (f"{RATE_BY_TENANT} [2]", SECOND)},
        next_at={f"{RATE_BY_TENANT} [1]": SECOND * 3 // 4, f"{RATE_BY_TENANT} [2]": SECOND},
        again_at=SECOND * 3 // 4,
    ),
)

_NAMES = (
    Vector(
        name="tasks that give a limit one name share its room",
        tasks=SHARED,
        earlier=[Earlier(task="post")],
        waiting=[*_waiting("a"), *_waiting("b", task="post")],
        admitted="a",
        held={"b": ("partner", None)},
        running={"partner": 2},
    ),
    Vector(
        name="jobs of tasks that share a limit start in one order",
        tasks=SHARED,
        waiting=[Waiting("a", due=-1), Waiting("b", task="post", due=-3), Waiting("c", due=-2)],
        admitted="bc",
        held={"a": ("partner", None)},
        running={"partner": 2},
    ),
    Vector(
        name="tasks that share a rate start in turn",
        tasks=SHARED_RATE,
        waiting=[*_waiting("a"), *_waiting("b", task="post")],
        admitted="a",
        held={"b": ("partner", SECOND)},
        next_at={"partner": SECOND},
        again_at=SECOND,
    ),
    Vector(
        name="a start of one task spaces those of another that shares the rate",
        tasks=SHARED_RATE,
        earlier=[Earlier(task="post", at=-SECOND // 2, running=False)],
        waiting=_waiting("a"),
        held={"a": ("partner", SECOND // 2)},
        next_at={"partner": SECOND // 2},
        again_at=SECOND // 2,
    ),
    Vector(
        name="a shared limit may have keys that each task reads from its own arguments",
        tasks=SHARED_BY_KEY,
        earlier=[Earlier(task="post", arguments={"customer": 7})],
        waiting=[*_waiting("a", arguments={"tenant": 7}), *_waiting("b", arguments={"tenant": 8})],
        admitted="b",
        held={"a": ("tenant [7]", None)},
        running={"tenant [7]": 1, "tenant [8]": 1},
    ),
)

_SEVERAL = (
    Vector(
        name="per tenant and in all: the tenant's limit holds first",
        tasks=TENANT_AND_ALL,
        earlier=[Earlier(arguments={"tenant": 1}), Earlier(arguments={"tenant": 1})],
        waiting=[*_waiting("a", arguments={"tenant": 1}), *_waiting("b", arguments={"tenant": 2})],
        admitted="b",
        held={"a": (f"{BY_TENANT} [1]", None)},
        running={f"{BY_TENANT} [1]": 2, f"{BY_TENANT} [2]": 1, MAIL: 3},
    ),
    Vector(
        name="per tenant and in all: the one for all holds a tenant that has room",
        tasks=TENANT_AND_ALL,
        earlier=[Earlier(arguments={"tenant": tenant}) for tenant in (1, 2, 3)],
        waiting=_waiting("a", arguments={"tenant": 4}),
        held={"a": (MAIL, None)},
        running={f"{BY_TENANT} [1]": 1, f"{BY_TENANT} [2]": 1, f"{BY_TENANT} [3]": 1, MAIL: 3},
    ),
    Vector(
        name="of several full limits the first declared is named",
        tasks=TENANT_AND_ALL,
        earlier=[Earlier(arguments={"tenant": tenant}) for tenant in (1, 1, 2)],
        waiting=_waiting("a", arguments={"tenant": 1}),
        held={"a": (f"{BY_TENANT} [1]", None)},
        running={f"{BY_TENANT} [1]": 2, f"{BY_TENANT} [2]": 1, MAIL: 3},
    ),
    Vector(
        name="one claim fills the limit for all from several tenants",
        tasks=TENANT_AND_ALL,
        waiting=[
            *_waiting("abc", arguments={"tenant": 1}, due=-3),
            *_waiting("def", arguments={"tenant": 2}, due=-2),
            *_waiting("g", arguments={"tenant": 3}, due=-1),
        ],
        admitted="abd",
        held={
            "c": (f"{BY_TENANT} [1]", None),
            "e": (MAIL, None),
            "f": (MAIL, None),
            "g": (MAIL, None),
        },
        running={f"{BY_TENANT} [1]": 2, f"{BY_TENANT} [2]": 1, MAIL: 3},
    ),
    Vector(
        name="a job that is held takes no place of its other limits",
        tasks={
            "mail": {"concurrency": [Limit(1, name="partner"), 1]},
            "post": {"concurrency": Limit(1, name="partner")},
        },
        closed={MAIL: MINUTE},
        waiting=[*_waiting("a", due=-1), *_waiting("b", task="post")],
        admitted="b",
        held={"a": (MAIL, MINUTE)},
        running={"partner": 1},
        again_at=MINUTE,
    ),
    Vector(
        name="a job with more limits may be overtaken by one with fewer",
        tasks={
            "mail": {"concurrency": [1, Limit(2, name="partner")]},
            "post": {"concurrency": Limit(2, name="partner")},
        },
        earlier=[Earlier()],
        waiting=[Waiting("a", priority=9), Waiting("b", task="post")],
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 1, "partner": 2},
    ),
    Vector(
        name="two rates hold together: the shorter first",
        tasks=TWO_RATES,
        earlier=[Earlier(at=-SECOND // 20, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, SECOND // 20)},
        next_at={RATE: SECOND // 20, f"{RATE} (2)": 86_400_000 - SECOND // 20},
        again_at=SECOND // 20,
    ),
    Vector(
        name="two rates hold together: the longer when the shorter has passed",
        tasks=TWO_RATES,
        earlier=[Earlier(at=-SECOND, running=False)],
        waiting=_waiting("a"),
        held={"a": (f"{RATE} (2)", 85_400_000)},
        next_at={f"{RATE} (2)": 85_400_000},
        again_at=85_400_000,
    ),
    Vector(
        name="a start counts against all rates of its task",
        tasks=TWO_RATES,
        waiting=_waiting("a"),
        admitted="a",
        next_at={RATE: SECOND // 10, f"{RATE} (2)": 86_400_000},
        again_at=SECOND // 10,
    ),
    Vector(
        name="a task carries both: what runs at once holds first",
        tasks=BOTH,
        earlier=[Earlier(at=-9 * SECOND), Earlier(at=-3 * SECOND)],
        waiting=_waiting("a"),
        held={"a": (MAIL, None)},
        running={MAIL: 2},
        next_at={RATE: 3 * SECOND},
    ),
    Vector(
        name="a task carries both: the rate holds where a place is free, and the place stays free",
        tasks=BOTH,
        earlier=[Earlier(at=-SECOND)],
        waiting=_waiting("a"),
        held={"a": (RATE, 5 * SECOND)},
        running={MAIL: 1},
        next_at={RATE: 5 * SECOND},
        again_at=5 * SECOND,
    ),
    Vector(
        name="a task carries both: a start takes a place and spaces the next",
        tasks=BOTH,
        waiting=_waiting("ab"),
        admitted="a",
        held={"b": (RATE, 6 * SECOND)},
        running={MAIL: 1},
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="a job that a full limit keeps out does not space the rate",
        tasks={
            "mail": {"concurrency": 1, "rate": Limit("1/s", name="partner")},
            "post": {"rate": Limit("1/s", name="partner")},
        },
        earlier=[Earlier(at=-MINUTE)],
        waiting=[Waiting("a", priority=1), Waiting("b", task="post")],
        admitted="b",
        held={"a": (MAIL, None)},
        running={MAIL: 1},
        next_at={"partner": SECOND},
        again_at=SECOND,
    ),
)

_RATES = (
    Vector(
        name="of ten jobs sent at once one starts now, the next six seconds later",
        tasks=TEN_A_MINUTE,
        waiting=_waiting("abcdefghij"),
        admitted="a",
        held=dict.fromkeys("bcdefghij", (RATE, 6 * SECOND)),
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="a task idle for an hour starts one job, the next an interval later",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-HOUR, running=False)],
        waiting=_waiting("ab"),
        admitted="a",
        held={"b": (RATE, 6 * SECOND)},
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="an interval after the last start there is room",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-6 * SECOND, running=False)],
        waiting=_waiting("a", held=True),
        admitted="a",
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="a microsecond before the interval ends there is none",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=1 - 6 * SECOND, running=False)],
        waiting=_waiting("a", held=True),
        held={"a": (RATE, 1)},
        next_at={RATE: 1},
        again_at=1,
    ),
    Vector(
        name="a late start moves all that follow",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-20 * SECOND, running=False), Earlier(at=-5 * SECOND, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, SECOND)},
        next_at={RATE: SECOND},
        again_at=SECOND,
    ),
    Vector(
        name="a period may be longer than a unit",
        tasks={"mail": {"rate": "1/30s"}},
        earlier=[Earlier(at=-10 * SECOND, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, 20 * SECOND)},
        next_at={RATE: 20 * SECOND},
        again_at=20 * SECOND,
    ),
    Vector(
        name="an interval that is no whole number of microseconds is rounded up",
        tasks={"mail": {"rate": "3/s"}},
        earlier=[Earlier(at=-333_333, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, 1)},
        next_at={RATE: 1},
        again_at=1,
    ),
    Vector(
        name="a rate says nothing of how many run at once",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-18 * SECOND), Earlier(at=-12 * SECOND), Earlier(at=-6 * SECOND)],
        waiting=_waiting("a"),
        admitted="a",
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="a start counts however soon the job ended",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-1, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, 6 * SECOND - 1)},
        next_at={RATE: 6 * SECOND - 1},
        again_at=6 * SECOND - 1,
    ),
    Vector(
        name="of jobs that a rate holds, the first in order starts",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-7 * SECOND, running=False)],
        waiting=[Waiting("a", due=-1, held=True), Waiting("b", due=-2, held=True), Waiting("c", priority=1)],
        admitted="c",
        held={"a": (RATE, 6 * SECOND), "b": (RATE, 6 * SECOND)},
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="the last start of a rate is looked after although nobody is held",
        tasks=TEN_A_MINUTE,
        waiting=_waiting("abc"),
        slots=1,
        admitted="a",
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="of several rates the earliest moment is when to look again",
        tasks={"mail": {"rate": "1/m"}, "post": {"rate": "1/h"}},
        earlier=[Earlier(at=-SECOND, running=False), Earlier(task="post", at=-SECOND, running=False)],
        waiting=[*_waiting("a", task="post"), *_waiting("b")],
        held={"a": ("rate of post", HOUR - SECOND), "b": (RATE, MINUTE - SECOND)},
        next_at={"rate of post": HOUR - SECOND, RATE: MINUTE - SECOND},
        again_at=MINUTE - SECOND,
    ),
    Vector(
        name="a start that lies a little ahead, by a clock that was set back, is waited for",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=SECOND, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, 7 * SECOND)},
        next_at={RATE: 7 * SECOND},
        again_at=7 * SECOND,
    ),
    Vector(
        name="it is waited for where it lies further ahead than the interval of a quick rate, too",
        tasks={"mail": {"rate": "10/s"}},
        earlier=[Earlier(at=MINUTE, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, MINUTE + SECOND // 10)},
        next_at={RATE: MINUTE + SECOND // 10},
        again_at=MINUTE + SECOND // 10,
    ),
    Vector(
        name="a start that lies far ahead, by a clock that was wrong, is not waited for",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=365 * DAY, running=False)],
        waiting=_waiting("ab"),
        admitted="a",
        held={"b": (RATE, 6 * SECOND)},
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="of a rate slower than a minute, a start is waited for that lies no further ahead than its interval",
        tasks={"mail": {"rate": "1/h"}},
        earlier=[Earlier(at=HOUR, running=False)],
        waiting=_waiting("a"),
        held={"a": (RATE, 2 * HOUR)},
        next_at={RATE: 2 * HOUR},
        again_at=2 * HOUR,
    ),
)

_CHANGED = (
    Vector(
        name="a limit raised at run time lets more in",
        tasks=TWO,
        earlier=[Earlier(), Earlier()],
        overrides={MAIL: "4"},
        waiting=_waiting("abc", held=True),
        admitted="ab",
        held={"c": (MAIL, None)},
        running={MAIL: 4},
    ),
    Vector(
        name="a limit lowered below what runs lets nobody in and stops nobody",
        tasks={"mail": {"concurrency": 20}},
        earlier=[Earlier()] * 5,
        overrides={MAIL: "2"},
        waiting=_waiting("a"),
        held={"a": (MAIL, None)},
        running={MAIL: 5},
    ),
    Vector(
        name="a limit lowered to what runs is full",
        tasks={"mail": {"concurrency": 20}},
        earlier=[Earlier()] * 3,
        overrides={MAIL: "3"},
        waiting=_waiting("a"),
        held={"a": (MAIL, None)},
        running={MAIL: 3},
    ),
    Vector(
        name="once enough ended, the lowered limit has room again",
        tasks={"mail": {"concurrency": 20}},
        earlier=[Earlier(), *[Earlier(running=False)] * 4],
        overrides={MAIL: "2"},
        waiting=_waiting("ab", held=True),
        admitted="a",
        held={"b": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="a limit lowered in the code holds in the same way",
        tasks={"mail": {"concurrency": 1}},
        earlier=[Earlier(), Earlier()],
        waiting=_waiting("a"),
        held={"a": (MAIL, None)},
        running={MAIL: 2},
    ),
    Vector(
        name="jobs that a limit held start when the code has it no more",
        tasks=PLAIN,
        earlier=[Earlier(), Earlier()],
        waiting=_waiting("abc", held=True),
        admitted="abc",
    ),
    Vector(
        name="a size set for a name holds for every task that shares it",
        tasks=SHARED,
        overrides={"partner": "1"},
        waiting=[*_waiting("a"), *_waiting("b", task="post")],
        admitted="a",
        held={"b": ("partner", None)},
        running={"partner": 1},
    ),
    Vector(
        name="a size set for a limit with keys holds for each key",
        tasks=EACH_TENANT,
        overrides={BY_TENANT: "2"},
        waiting=[*_waiting("abc", arguments={"tenant": 1}), *_waiting("d", arguments={"tenant": 2})],
        admitted="abd",
        held={"c": (f"{BY_TENANT} [1]", None)},
        running={f"{BY_TENANT} [1]": 2, f"{BY_TENANT} [2]": 1},
    ),
    Vector(
        name="a faster rate holds at once: the old interval need not pass",
        tasks={"mail": {"rate": "1/10m"}},
        earlier=[Earlier(at=-2 * SECOND, running=False)],
        overrides={RATE: "1/s"},
        waiting=_waiting("ab", held=True),
        admitted="a",
        held={"b": (RATE, SECOND)},
        next_at={RATE: SECOND},
        again_at=SECOND,
    ),
    Vector(
        name="a slower rate holds at once, from the last start",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-10 * SECOND, running=False)],
        overrides={RATE: "1/m"},
        waiting=_waiting("a"),
        held={"a": (RATE, 50 * SECOND)},
        next_at={RATE: 50 * SECOND},
        again_at=50 * SECOND,
    ),
    Vector(
        name="a size set when the limit was of the other kind does not count",
        tasks={"mail": {"concurrency": Limit(2, name="partner")}},
        overrides={"partner": "1/h"},
        waiting=_waiting("abc"),
        admitted="ab",
        held={"c": ("partner", None)},
        running={"partner": 2},
    ),
    Vector(
        name="a size set for a limit that nobody declares holds nobody",
        tasks=PLAIN,
        overrides={MAIL: "1"},
        waiting=_waiting("ab"),
        admitted="ab",
    ),
)

_CLOSED = (
    Vector(
        name="a rate that a partner closed holds all until then",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-MINUTE, running=False)],
        closed={RATE: 30 * SECOND},
        waiting=_waiting("ab"),
        held={"a": (RATE, 30 * SECOND), "b": (RATE, 30 * SECOND)},
        next_at={RATE: 30 * SECOND},
        again_at=30 * SECOND,
    ),
    Vector(
        name="at the moment at which it opens one starts, spaced as ever",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-MINUTE, running=False)],
        closed={RATE: 0},
        waiting=_waiting("ab", held=True),
        admitted="a",
        held={"b": (RATE, 6 * SECOND)},
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="a start that lies far ahead is waited for where the closure lasts until then",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=HOUR, running=False)],
        closed={RATE: HOUR},
        waiting=_waiting("a"),
        held={"a": (RATE, HOUR + 6 * SECOND)},
        next_at={RATE: HOUR + 6 * SECOND},
        again_at=HOUR + 6 * SECOND,
    ),
    Vector(
        name="what was closed in the past is open",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-10 * SECOND, running=False)],
        closed={RATE: -HOUR},
        waiting=_waiting("a"),
        admitted="a",
        next_at={RATE: 6 * SECOND},
        again_at=6 * SECOND,
    ),
    Vector(
        name="where the interval ends later than the closure, the interval holds",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-SECOND, running=False)],
        closed={RATE: 2 * SECOND},
        waiting=_waiting("a"),
        held={"a": (RATE, 5 * SECOND)},
        next_at={RATE: 5 * SECOND},
        again_at=5 * SECOND,
    ),
    Vector(
        name="where the closure ends later than the interval, the closure holds",
        tasks=TEN_A_MINUTE,
        earlier=[Earlier(at=-SECOND, running=False)],
        closed={RATE: 8 * SECOND},
        waiting=_waiting("a"),
        held={"a": (RATE, 8 * SECOND)},
        next_at={RATE: 8 * SECOND},
        again_at=8 * SECOND,
    ),
    Vector(
        name="one key is closed and the others are open",
        tasks={"mail": {"rate": Limit("1/s", key=_tenant)}},
        closed={f"{RATE_BY_TENANT} [1]": MINUTE},
        waiting=[*_waiting("a", arguments={"tenant": 1}), *_waiting("b", arguments={"tenant": 2})],
        admitted="b",
        held={"a": (f"{RATE_BY_TENANT} [1]", MINUTE)},
        next_at={f"{RATE_BY_TENANT} [1]": MINUTE, f"{RATE_BY_TENANT} [2]": SECOND},
        again_at=SECOND,
    ),
    Vector(
        name="a shared limit that is closed holds the jobs of every task",
        tasks=SHARED_RATE,
        closed={"partner": MINUTE},
        waiting=[*_waiting("a"), *_waiting("b", task="post")],
        held={"a": ("partner", MINUTE), "b": ("partner", MINUTE)},
        next_at={"partner": MINUTE},
        again_at=MINUTE,
    ),
    Vector(
        name="a limit of how many run at once may be closed as well",
        tasks=TWO,
        earlier=[Earlier()],
        closed={MAIL: MINUTE},
        waiting=_waiting("a"),
        held={"a": (MAIL, MINUTE)},
        running={MAIL: 1},
        again_at=MINUTE,
    ),
    Vector(
        name="one that is full as well waits for the end of a job",
        tasks=TWO,
        earlier=[Earlier(), Earlier()],
        closed={MAIL: MINUTE},
        waiting=_waiting("a"),
        held={"a": (MAIL, None)},
        running={MAIL: 2},
    ),
)

VECTORS: tuple[Vector, ...] = _CONCURRENCY + _ORDER + _KEYS + _NAMES + _SEVERAL + _RATES + _CHANGED + _CLOSED
"""Each thing that decides who starts and who waits, alone and with others."""
