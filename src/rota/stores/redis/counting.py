"""How many jobs there are, which is counted as they change, and since when the first of them are due, which is looked up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, msgpack

from rota.clock import Micros
from rota.model import FINAL, Count, State, Unfinished
from rota.stores.redis.client import MANY, Client, pieces

_NUMBERS = 2 * MANY
"""So many numbers are read at once."""
_GLANCE = 20
"""Jobs that are looked at first where there are several tasks: that mostly shows one of each."""
_FASTER = 8
"""So many times more with each further look."""
_FAR = 100 * MANY
"""So many jobs are looked at to know since when the first of each queue and task is due; then what was seen has to do."""
_WALKS = 200
"""Lines along which one script goes."""
_SOONEST: Micros = -(2**62)

_counts = msgpack.Decoder(tuple[str, list[str], Micros]).decode
_sights = msgpack.Decoder(list[tuple[str | None, Micros | None, list[tuple[str, str, Micros]]]]).decode
_running = msgpack.Decoder(tuple[int, list[tuple[str, str, str, int, Micros]]]).decode
_ids = msgpack.Decoder(list[str]).decode
_names = msgpack.Decoder(list[list[str]]).decode


class Group(NamedTuple):
    """What jobs are counted by."""

    queue: str
    task: str
    state: State


class Busy(NamedTuple):
    """What a worker runs of a queue and a task."""

    worker: str
    queue: str
    task: str
    jobs: int
    oldest: Micros


def counts(client: Client) -> list[Count]:
    """`Store.counts`.

    The numbers are kept. Of unfinished jobs the first of each task is looked up: exactly, unless a hundred thousand others that
    wait for the same are due before it. Of finished ones `oldest` is about when the first ended of those that are still there.
    """
    numbers, now = _numbers(client)
    dues = _first_dues(client, numbers, by_task=True)
    if any(group.state is State.RUNNING for group in numbers):
        for each in running(client):
            group = Group(each.queue, each.task, State.RUNNING)
            dues[group] = min(each.oldest, dues.get(group, each.oldest))
    return [Count(*group, number, dues.get(group, now)) for group, number in numbers.items()]


def unfinished(client: Client) -> list[Unfinished]:
    """`Store.unfinished`; since when the first are due is known as `counts` knows it."""
    numbers, now = _numbers(client)
    waiting: dict[Group, int] = {}
    for (queue, _, state), number in numbers.items():
        if state not in FINAL and state is not State.RUNNING:
            group = Group(queue, "", state)
            waiting[group] = waiting.get(group, 0) + number
    dues = _first_dues(client, waiting, by_task=False)
    told = [Unfinished(group.queue, group.state, None, number, dues.get(group, now)) for group, number in waiting.items()]
    held: dict[tuple[str, str], list[Busy]] = {}
    for each in running(client):
        held.setdefault((each.queue, each.worker), []).append(each)
    for (queue, worker), busy in held.items():
        jobs, oldest = sum(each.jobs for each in busy), min(each.oldest for each in busy)
        told.append(Unfinished(queue, State.RUNNING, worker, jobs, oldest))
    return told


def running(client: Client) -> list[Busy]:
    """What runs, by worker, queue and task."""
    told: list[Busy] = []
    workers = _ids(client.run("runners"))
    at = 0
    while at < len(workers):
        asked, found = _running(client.run("running", workers[at : at + _WALKS], MANY))
        told += [Busy(*each) for each in found]
        at += asked
    return told


def lines(client: Client, kind: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The lines of these names: the name and the key of each."""
    for piece in pieces(names):
        for name, priorities in zip(piece, _names(client.run("lines", kind, piece)), strict=True):
            yield from ((name, f"{kind}:{priority}:{name}") for priority in priorities)


def names(client: Client, kind: str) -> list[str]:
    """The names of the lines of one kind."""
    found: set[bytes] = set()
    cursor = b"0"
    while True:
        answer = client.send(b"SSCAN", client.key(kind), cursor, b"COUNT", b"%d" % MANY)
        assert isinstance(answer, list)
        cursor = answer[0]
        found.update(answer[1])
        if cursor == b"0":
            return sorted(name.decode() for name in found)


def _numbers(client: Client) -> tuple[dict[Group, int], Micros]:
    """How many jobs are in each group, and the moment."""
    numbers: dict[Group, int] = {}
    cursor = ""
    while cursor != "0":
        cursor, said, now = _counts(client.run("counts", cursor or "0", _NUMBERS))
        for at in range(0, len(said), 2):
            queue, task, state = said[at].split("\0")
            numbers[Group(queue, task, State(state))] = int(said[at + 1])
    return numbers, now


# -- since when the first are due ---------------------------------------------------------------


class Line(Struct):
    """How far something was walked along in which jobs stand by when they are due."""

    key: str
    id: str | None = None
    due: Micros = _SOONEST


class Search(Struct):
    """For the first of some groups of jobs, along lines that have all of them."""

    state: State
    wanted: set[Group] = set()
    lines: list[Line] = []
    step: int = 1
    """How many jobs to look at next."""
    left: int = _FAR
    """How many more may be looked at in each line."""
    dues: dict[Group, Micros] = {}

    @property
    def open(self) -> list[Line]:
        """The lines in which something earlier may stand than what was met."""
        if self.left <= 0:
            return []
        if self.wanted - self.dues.keys():
            return self.lines
        last = max(self.dues.values())
        return [line for line in self.lines if line.due < last]

    def met(self, group: Group, due: Micros) -> None:
        if group in self.wanted:
            self.dues[group] = min(due, self.dues.get(group, due))

    def grow(self) -> None:
        self.left -= self.step
        self.step = min(_FASTER * self.step, MANY)

    def found(self) -> dict[Group, Micros]:
        """When the first of each is due. What was not met is not due before all that was passed."""
        reached = min((line.due for line in self.lines if line.id is not None), default=None)
        return self.dues if reached is None else dict.fromkeys(self.wanted, reached) | self.dues


def _first_dues(client: Client, groups: Iterable[Group], by_task: bool) -> dict[Group, Micros]:
    """When the first of each of these groups is due, save of running ones. Without tasks a group is a queue in a state."""
    searches = _searches(client, groups)
    looked = 0
    while looked < _FAR and (walks := [(search, line) for search in searches.values() for line in search.open]):
        for piece in _together(walks):
            asked = [(line.key, line.id, line.due if line.id else None, search.step) for search, line in piece]
            for (search, line), (id, due, sights) in zip(piece, _sights(client.run("sight", asked)), strict=True):
                for queue, task, at in sights:
                    search.met(Group(queue, task if by_task else "", search.state), at)
                if id is None or due is None:
                    search.lines.remove(line)
                else:
                    line.id, line.due = id, due
        looked += sum(search.step for search, _ in walks)
        for search in searches.values():
            search.grow()
    dues: dict[Group, Micros] = {}
    for search in searches.values():
        dues |= search.found()
    return dues


def _searches(client: Client, groups: Iterable[Group]) -> Mapping[tuple[State, str], Search]:
    """By state and, where there are lines of each queue, by queue."""
    searches: dict[tuple[State, str], Search] = {}
    for group in groups:
        in_lines = group.state in (State.QUEUED, State.HELD)
        if group.state is not State.RUNNING:
            place = (group.state, group.queue if in_lines else "")
            searches.setdefault(place, Search(group.state)).wanted.add(group)
    queues = [queue for state, queue in searches if state is State.QUEUED]
    held = names(client, "held") if any(state is State.HELD for state, _ in searches) else []
    for state, called in ((State.QUEUED, queues), (State.HELD, held)):
        for name, key in lines(client, state.value, called):
            search = searches.get((state, name.partition("\0")[0]))
            if search is not None:
                search.lines.append(Line(key))
    for (state, _), search in searches.items():
        if state in FINAL:
            search.left = _GLANCE
            search.lines.append(Line(f"finished:{state.value}"))
        elif state is State.SCHEDULED:
            search.lines.append(Line("scheduled"))
        if len(search.wanted) > 1 and state is not State.HELD:
            search.step = _GLANCE
    return searches


def _together(walks: Sequence[tuple[Search, Line]]) -> Iterator[list[tuple[Search, Line]]]:
    """As many as one script goes along."""
    piece: list[tuple[Search, Line]] = []
    looks = 0
    for search, line in walks:
        if piece and (looks + search.step > MANY or len(piece) == _WALKS):
            yield piece
            piece, looks = [], 0
        piece.append((search, line))
        looks += search.step
    if piece:
        yield piece
