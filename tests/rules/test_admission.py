"""Who may start: the table of vectors, and what holds of every sequence of starts, ends, changes and moves of the clock."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.clock import SECOND, Micros
from rota.rules.admission import FLOOR, Admission, Admitted, Candidate, Held, Usage, admit, opens_at, poll_within
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency, Rate, Size
from rota.testing.limits import MANY, VECTORS, Vector

NOW: Micros = 1_750_000_000 * SECOND
MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND


# -- the table ----------------------------------------------------------------------------------


def usage_before(vector: Vector) -> dict[Instance, Usage]:
    """What the earlier jobs of a vector left of each instance."""
    found: dict[Instance, Usage] = {}
    for job in vector.earlier:
        for instance in vector.instances(job):
            before = found.get(instance, Usage())
            found[instance] = Usage(before.running + job.running, NOW + job.at)
    instances = {f"{instance}": instance for job in vector.waiting for instance in vector.instances(job)}
    for text, until in vector.closed.items():
        before = found.get(instances[text], Usage())
        found[instances[text]] = Usage(before.running, before.started_at, NOW + until)
    return found


def answer(vector: Vector) -> tuple[Admission, dict[Instance, Usage]]:
    """What the rule decides, and each instance as it is afterwards."""
    before = usage_before(vector)
    candidates = [Candidate(job.id, vector.instances(job)) for job in vector.promised]
    admission = admit(candidates, vector.sizes, before, NOW, vector.slots, vector.at_once)
    return admission, before | dict(admission.usage)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_rule_decides_as_the_table_says(vector: Vector) -> None:
    admission, _ = answer(vector)
    assert admission.admitted == list(vector.admitted)
    assert {held.id: (f"{held.by}", _offset(held.until)) for held in admission.held} == vector.held
    assert _offset(admission.again_at) == vector.again_at


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_rule_leaves_the_instances_as_the_table_says(vector: Vector) -> None:
    sizes, (_, after) = vector.sizes, answer(vector)
    running = {
        f"{instance}": used.running
        for instance, used in after.items()
        if isinstance(sizes[instance.limit], Concurrency) and used.running
    }
    opening = {f"{instance}": opens_at(size, after.get(instance, Usage()), NOW) for instance, size in vector.rates.items()}
    assert running == vector.running
    assert {text: at - NOW for text, at in opening.items() if at is not None and at > NOW} == vector.next_at


def _offset(moment: Micros | None) -> Micros | None:
    return None if moment is None else moment - NOW


def test_every_vector_has_a_name_of_its_own() -> None:
    assert len({vector.name for vector in VECTORS}) == len(VECTORS) >= 40


# -- whatever happens ---------------------------------------------------------------------------

LIMITS = ("a", "b", "r", "s")
KEYS = ("", "1", "2")

instances = st.builds(Instance, st.sampled_from(LIMITS), st.sampled_from(KEYS))
needs = st.lists(instances, max_size=3, unique_by=lambda instance: instance.limit).map(tuple)
concurrencies = st.builds(Concurrency, st.integers(1, 3))
rates = st.sampled_from([Rate(1_000_000, SECOND), Rate(3, SECOND), Rate(10, MINUTE), Rate(1, HOUR)])
sizes = st.fixed_dictionaries({"a": concurrencies, "b": concurrencies}, optional={"r": rates, "s": rates | concurrencies})
moments = st.sampled_from((-HOUR, -MINUTE, -SECOND, -1, 0, 1, SECOND, MINUTE, HOUR)).map(lambda offset: NOW + offset)
usages = st.builds(Usage, st.integers(0, 4), st.none() | moments, st.none() | moments)
slots = st.integers(0, 5) | st.just(MANY)
situations = st.fixed_dictionaries(
    {
        "candidates": st.lists(needs, max_size=12).map(
            lambda jobs: [Candidate(f"{number}", needed) for number, needed in enumerate(jobs)]
        ),
        "sizes": sizes,
        "usage": st.dictionaries(instances, usages, max_size=12),
        "now": st.just(NOW),
        "slots": slots,
    }
)


def applying(candidate: Candidate, sizes: Mapping[str, Size]) -> list[Instance]:
    return [instance for instance in candidate.instances if instance.limit in sizes]


def has_room(size: Size, used: Usage, now: Micros) -> bool:
    return opens_at(size, used, now) == now


@given(situations)
def test_a_held_job_is_explained_by_its_first_full_limit(situation: dict[str, Any]) -> None:
    """As it is at that moment: what was let in before counts, and nothing after, which is the same where it is full."""
    sizes, now = situation["sizes"], situation["now"]
    admission = admit(**situation)
    used = dict(situation["usage"])
    for candidate, decision in zip(situation["candidates"], admission.decisions, strict=False):
        needed = applying(candidate, sizes)
        full = [instance for instance in needed if not has_room(sizes[instance.limit], used.get(instance, Usage()), now)]
        match decision:
            case Admitted():
                assert not full
                for instance in needed:
                    before = used.get(instance, Usage())
                    used[instance] = Usage(before.running + 1, now, before.closed_until)
            case Held():
                assert decision.by == full[0]
                at_end = used | dict(admission.usage)
                assert not has_room(sizes[decision.by.limit], at_end.get(decision.by, Usage()), now)
    assert used == situation["usage"] | dict(admission.usage)


@given(situations)
def test_every_job_is_decided_until_the_slots_are_taken(situation: dict[str, Any]) -> None:
    admission = admit(**situation)
    decided = len(admission.decisions)
    assert [decision.id for decision in admission.decisions] == [each.id for each in situation["candidates"][:decided]]
    if decided < len(situation["candidates"]):
        assert len(admission.admitted) == situation["slots"]
    assert len(admission.admitted) <= situation["slots"]


@given(situations)
def test_no_job_overtakes_one_that_needs_the_same_or_less(situation: dict[str, Any]) -> None:
    sizes = situation["sizes"]
    admission = admit(**situation)
    needs = {candidate.id: set(applying(candidate, sizes)) for candidate in situation["candidates"]}
    for place, held in enumerate(admission.decisions):
        if isinstance(held, Held):
            for later in admission.decisions[place:]:
                assert isinstance(later, Held) or held.by not in needs[later.id]


@given(situations)
def test_at_the_moment_told_there_is_room_and_not_before(situation: dict[str, Any]) -> None:
    sizes = situation["sizes"]
    admission = admit(**situation)
    after = situation["usage"] | dict(admission.usage)
    for held in admission.held:
        size, used = sizes[held.by.limit], after.get(held.by, Usage())
        if held.until is None:
            assert isinstance(size, Concurrency)
            assert used.running >= size.most
        else:
            assert held.until > situation["now"]
            assert has_room(size, used, held.until)
            assert not has_room(size, used, held.until - 1)
            assert admission.again_at is not None
            assert admission.again_at <= held.until


@given(situations)
def test_what_let_a_job_in_says_when_it_has_room_for_the_next(situation: dict[str, Any]) -> None:
    admission = admit(**situation)
    for instance in admission.usage:
        size = situation["sizes"][instance.limit]
        if isinstance(size, Rate):
            assert admission.again_at is not None
            assert admission.again_at <= situation["now"] + size.interval


class Deployment:
    """Jobs that wait, run and end under limits, by the rule alone."""

    def __init__(self, sizes: dict[str, Size]) -> None:
        self.sizes = sizes
        self.now = NOW
        self.usage: dict[Instance, Usage] = {}
        self.waiting: list[Candidate] = []
        self.running: list[Candidate] = []
        self.starts: dict[Instance, list[Micros]] = {}
        self.sent = 0

    def send(self, needed: tuple[Instance, ...]) -> None:
        self.waiting.append(Candidate(f"{self.sent}", needed))
        self.sent += 1

    def claim(self, slots: int) -> Admission:
        admission = admit(self.waiting, self.sizes, self.usage, self.now, slots)
        admitted = set(admission.admitted)
        self.running += (started := [each for each in self.waiting if each.id in admitted])
        self.waiting = [each for each in self.waiting if each.id not in admitted]
        self.usage |= admission.usage
        for candidate in started:
            for instance in applying(candidate, self.sizes):
                self.starts.setdefault(instance, []).append(self.now)
        return admission

    def end(self, which: int) -> None:
        """A job's end, by whatever cause; its limits may have changed meanwhile, so what runs is counted anew."""
        self.running.pop(which % len(self.running))
        for instance, used in self.usage.items():
            count = sum(instance in each.instances for each in self.running)
            self.usage[instance] = Usage(count, used.started_at, used.closed_until)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), needs),
        st.tuples(st.just("claim"), slots),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from((1, 333_333, 333_334, SECOND, 6 * SECOND, MINUTE, HOUR))),
        st.tuples(st.just("close"), st.tuples(instances, st.sampled_from((-SECOND, SECOND, HOUR)))),
    ),
    max_size=40,
)


def after_steps(sizes: dict[str, Size], steps: list[tuple[str, Any]]) -> Deployment:
    """A deployment after these steps, with the bounds checked at each claim."""
    world = Deployment(sizes)
    for step, value in steps:
        match step:
            case "send":
                world.send(value)
            case "claim":
                check_bounds(world, world.claim(value))
            case "end" if world.running:
                world.end(value)
            case "wait":
                world.now += value
            case "close":
                instance, span = value
                used = world.usage.get(instance, Usage())
                world.usage[instance] = Usage(used.running, used.started_at, world.now + span)
    return world


def check_bounds(world: Deployment, admission: Admission) -> None:
    for instance, used in admission.usage.items():
        size = world.sizes[instance.limit]
        assert used.closed_until is None or used.closed_until <= world.now
        match size:
            case Concurrency(most):
                assert sum(instance in each.instances for each in world.running) == used.running <= most
            case Rate():
                *_, last = world.starts[instance]
                assert last == world.now
                earlier = world.starts[instance][:-1]
                assert all(last - start >= size.interval for start in earlier)


@given(sizes, steps)
def test_no_sequence_of_starts_and_ends_breaks_a_bound(sizes: dict[str, Size], steps: list[tuple[str, Any]]) -> None:
    after_steps(sizes, steps)


@given(sizes, sizes, steps, steps)
def test_nobody_is_let_in_beyond_a_limit_that_was_changed(
    sizes: dict[str, Size], others: dict[str, Size], steps: list[tuple[str, Any]], more: list[tuple[str, Any]]
) -> None:
    world = after_steps(sizes, steps)
    world.sizes = others
    for _ in more:
        before = dict(world.usage)
        admission = world.claim(MANY)
        for instance, used in admission.usage.items():
            match others[instance.limit]:
                case Concurrency(most):
                    assert used.running <= most
                case Rate(_, _) as rate:
                    last = before.get(instance, Usage()).started_at
                    assert last is None or world.now - last >= rate.interval
        if world.running:
            world.end(0)
        world.now += SECOND


@given(sizes, steps)
def test_all_jobs_start_in_the_end_without_a_needless_claim(sizes: dict[str, Size], steps: list[tuple[str, Any]]) -> None:
    """Liveness: a worker that claims again when a job ends, and at the moment told, drains what waits."""
    world = after_steps(sizes, steps)
    for _ in range(3 * len(world.waiting) + 10):
        admission = world.claim(MANY)
        if not world.waiting:
            return
        assert world.running or admission.again_at is not None, "jobs wait, and nothing will ever make room"
        if world.running:
            while world.running:
                world.end(0)
        elif admission.again_at is not None:
            assert admission.again_at > world.now
            world.now = admission.again_at
    raise AssertionError(f"still waiting: {world.waiting}")


@given(rates, st.lists(st.sampled_from((-1, 1)), min_size=1, max_size=30), st.data())
def test_two_starts_in_a_row_are_an_interval_apart_whichever_way_the_clock_moves(
    rate: Rate, ways: list[int], data: st.DataObject
) -> None:
    partner, now, usage, starts = Instance("r"), NOW, dict[Instance, Usage](), list[Micros]()
    for way in ways:
        now += way * data.draw(st.sampled_from((1, rate.interval - 1, rate.interval, 2 * MINUTE, 2 * HOUR)))
        admission = admit([Candidate("job", (partner,))], {"r": rate}, usage, now, 1)
        usage |= admission.usage
        starts += [now] if admission.admitted else []
    assert all(abs(one - other) >= rate.interval for one, other in pairwise(starts))


@given(rates, st.integers(0, 10 * HOUR))
def test_a_clock_that_was_set_back_delays_a_start_by_an_interval_and_a_minute_at_the_most(rate: Rate, back: Micros) -> None:
    usage = Usage(started_at=NOW + back)
    opening = opens_at(rate, usage, NOW)
    assert opening is not None
    assert opening - NOW <= rate.interval + max(rate.interval, MINUTE)


def test_a_rate_drains_at_the_rate_asked_for_where_claims_come_when_told() -> None:
    world = Deployment({"r": Rate(10, MINUTE)})
    for _ in range(11):
        world.send((Instance("r"),))
    while world.waiting:
        again_at = world.claim(MANY).again_at
        assert again_at is not None
        world.now = again_at
    assert world.starts[Instance("r")] == [NOW + number * 6 * SECOND for number in range(11)]


class Counting(dict[Instance, Usage]):
    """Usage that counts how often it is asked."""

    asked = 0

    def get(self, key: Instance, default: Any = None) -> Any:
        self.asked += 1
        return super().get(key, default)


@pytest.mark.parametrize("jobs", [10, 1_000])
def test_the_work_grows_with_the_jobs_and_their_limits_alone(jobs: int) -> None:
    needed = tuple(Instance(limit) for limit in LIMITS)
    usage = Counting({Instance(f"other {number}"): Usage() for number in range(10_000)})
    sizes: dict[str, Size] = dict.fromkeys(LIMITS, Concurrency(jobs // 2))
    admission = admit([Candidate(f"{n}", needed) for n in range(jobs)], sizes, usage, NOW, MANY)
    assert len(admission.held) == jobs - jobs // 2
    assert usage.asked <= 2 * jobs * len(LIMITS)


# -- sleep --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("poll", "sizes", "least", "expected"),
    [
        (5 * SECOND, [], FLOOR, 5 * SECOND),
        (5 * SECOND, [Concurrency(2)], FLOOR, 5 * SECOND),
        (5 * SECOND, [Rate(10, MINUTE)], FLOOR, 5 * SECOND),
        (30 * SECOND, [Rate(10, MINUTE)], FLOOR, 6 * SECOND),
        (30 * SECOND, [Rate(10, MINUTE), Rate(1, HOUR), Rate(1, SECOND), Concurrency(1)], FLOOR, SECOND),
        (30 * SECOND, [Rate(1_000, SECOND)], FLOOR, FLOOR),
        (30 * SECOND, [Rate(20, SECOND)], FLOOR, FLOOR),
        (30 * SECOND, [Rate(1_000, SECOND)], 2 * SECOND, 2 * SECOND),
        (30 * SECOND, [Rate(1_000, SECOND)], 0, FLOOR),
        (30 * SECOND, [Rate(10, MINUTE)], 2 * SECOND, 6 * SECOND),
    ],
)
def test_a_worker_polls_as_often_as_its_shortest_interval(
    poll: Micros, sizes: list[Size], least: Micros, expected: Micros
) -> None:
    assert poll_within(poll, sizes, least) == expected


def test_the_floor_is_fifty_milliseconds() -> None:
    assert FLOOR == SECOND // 20
