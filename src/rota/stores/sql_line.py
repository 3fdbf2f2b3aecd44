"""A worker's line to a SQL database, and what a turn is there: the queries that write what ended, and one that claims."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from rota.bell import Bell
from rota.clock import Micros
from rota.model import Ask, Claimed, Ended, Tally, Turn
from rota.stores import rows
from rota.stores.database import Call, Database, Row

_CLAIMS = frozenset({"claim", "claim_behind", "claim_amply"})
_NOTHING = Tally({})


class SqlLine:
    """A `Line` over a database's link."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._link = database.line()
        self.ahead = self._link.ahead
        self.ample = self._link.ample
        self._name = f"{time.monotonic_ns():020}"  # no moment: of a worker's lines a later one comes later in this order
        self._posted: deque[list[Call]] = deque()

    def post(
        self,
        worker: str,
        ends: Sequence[Ended],
        ask: Ask | None = None,
        now: Micros | None = None,
        tally: Tally | None = None,
    ) -> None:
        calls = turn_calls(self._database, worker, ends, ask, now, tally, self._name)
        if calls:
            self._link.send(calls, durable=bool(ends))
        self._posted.append(calls)

    def answered(self) -> Turn | None:
        if not self._posted:
            return None
        calls = self._posted[0]
        answers: list[list[Row]] | None = []
        if calls:
            try:
                answers = self._link.answered()
            except BaseException:
                self._posted.popleft()
                raise
        if answers is None:
            return None
        self._posted.popleft()
        return turn(calls, answers)

    def wait(self, timeout: float, bell: Bell, when_rung: Ask | None = None) -> bool:
        if when_rung is None:
            return self._link.wait(timeout, bell, ())
        if self._database.looks_first:
            if rang := self._link.wait(timeout, bell, ()):
                self.post(when_rung.worker, [], when_rung)
            return rang
        calls = turn_calls(self._database, when_rung.worker, [], when_rung, None)
        if rang := self._link.wait(timeout, bell, calls):
            self._posted.append(calls)
        return rang

    def close(self) -> None:
        self._link.close()


def turn_calls(
    database: Database,
    worker: str,
    ends: Sequence[Ended],
    ask: Ask | None,
    now: Micros | None,
    tally: Tally | None = None,
    line: str = "",
) -> list[Call]:
    """The queries of a turn; none when there is nothing to write and a look shows that there is nothing to claim.

    Of a worker and rooms everybody locks the worker first, and then all rooms in one order.
    """
    calls = rows.end_calls(worker, ends, now)
    ample = None if ask is None else ask.ample
    if tally is None and ample is not None:
        tally = _NOTHING
    if tally is not None:
        calls.insert(0, ("me", {"worker": worker}))
        rooms = {*tally.rooms, *(room for end in ends for room in (*end.places, *end.closes))}
        calls += rows.lock_rooms_calls(rooms.union(() if ample is None else ((name, key) for name, key, _ in ample.rooms)))
        if tally.rooms and (tally.whole or ample is None):
            calls.append(rows.tell_places_call(worker, tally, line))
    calls += rows.giving_back_calls(ends, now, tally.rooms if tally is not None and tally.whole else ())
    if any(query == "put_back" for query, _ in calls):
        calls.append(("ring", {}))
    if ask is not None and ample is not None and tally is not None:
        calls.append(rows.claim_amply_call(ask, ample, _NOTHING if tally.whole else tally, line, now))
    elif ask is not None and ask.limit > 0 and ask.queues:
        sure_of_nothing = not calls and database.looks_first and not database.read("peek", {"queues": list(ask.queues)})
        if not sure_of_nothing:
            calls.append(rows.claim_call(ask, now, database.wades))
    return calls


def turn(calls: Sequence[Call], answers: Sequence[list[Row]]) -> Turn:
    """What the answers to a turn's queries say."""
    counted: list[str] = []
    claimed: list[Claimed] = []
    for (query, _), answer in zip(calls, answers, strict=True):
        if query in _CLAIMS:
            claimed = rows.claimed(answer)
        elif query in rows.ENDS:
            counted += [row[0] for row in answer]
    return Turn(frozenset(counted), claimed)
