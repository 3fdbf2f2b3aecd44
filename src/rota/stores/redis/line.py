"""A worker's line to Redis: one connection that carries its turns, and one on which it is rung."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import monotonic

import redis
from msgspec import Struct

from rota.bell import Bell
from rota.clock import Micros
from rota.model import Ask, Claimed, Ended, Turn
from rota.stores.redis import records
from rota.stores.redis.client import Client
from rota.stores.redis.scripts import command, loading, script

_FRESH = 4.0
"""Seconds after which an offer is made anew, when the sleeper next looks about it: one of a worker that is frozen gets old."""


class Posted(Struct, frozen=True):
    """A turn that is under way."""

    worker: str
    ends: Sequence[Ended]
    called: bytes | None
    """`None` for a claim that was not sent, since what it asks for has come."""


class RedisLine:
    """Subscribed to the ring on a connection of its own: one that listens can carry nothing else.

    Whoever goes to sleep with a claim ready offers to run the next job, which is claimed as it comes and sent with the ring.
    """

    ahead = 2
    ample = True

    def __init__(self, client: Client) -> None:
        self._client = client
        self._posted: deque[Posted] = deque()
        self._listens_as: str | None = None
        """The worker whose own ring is listened to."""
        self._offered: Ask | None = None
        """What the last offer was for, while it stands."""
        self._offered_at = 0.0
        self._handed: list[tuple[str, Claimed]] = []
        """Jobs that have come with a ring and of which no answer has told yet, each with the worker that it was handed to."""
        self._turns = client.connections.connect()
        self._ear = self._turns
        try:
            self._ear = client.connections.connect()
            with client.connections.errors():
                self._turns.ask(loading(script("turn")))
                self._ear.ask(command(b"SUBSCRIBE", client.key("ring")))
        except BaseException:
            self.close()
            raise

    def post(
        self,
        worker: str,
        ends: Sequence[Ended],
        ask: Ask | None = None,
        now: Micros | None = None,
        tally: object = None,  # nothing: how many places are taken is known here to the one
    ) -> None:
        called = self._client.called("turn", *turn_values(worker, ends, ask), now=now)
        with self._client.connections.errors():
            self._turns.send(called)
        self._offered = None
        self._posted.append(Posted(worker, ends, called))

    def answered(self) -> Turn | None:
        if not self._posted:
            return None
        with self._client.connections.errors():
            if self._posted[0].called is None:
                return Turn(frozenset(), self._taken(self._posted.popleft().worker))
            if not self._turns.ready:
                return None
            posted = self._posted.popleft()
            try:
                answer = self._turns.read()
            except redis.exceptions.NoScriptError:  # somebody had the server forget it
                answer = self._again(posted)
        counted, claimed = turn(posted.ends, answer)
        return Turn(counted, [*self._taken(posted.worker), *claimed])

    def wait(self, timeout: float, bell: Bell, when_rung: Ask | None = None) -> bool:
        with self._client.connections.errors():
            rang = self._rang()
            if when_rung is not None and not rang:
                self._offer(when_rung)
            if not (rang or self._handed or (self._posted and self._turns.ready)):  # several answers may have come at once
                bell.wait(timeout, self._turns.socket, self._ear.socket)
                rang = self._rang()
        if when_rung is not None and rang:
            self.post(when_rung.worker, [], when_rung)
        elif when_rung is not None and self._handed:
            self._posted.append(Posted(when_rung.worker, (), None))
        return rang or bool(self._handed)

    def close(self) -> None:
        self._turns.close()
        self._ear.close()

    def _offer(self, ask: Ask) -> None:
        """Offer to run what comes next, as this claim would."""
        if ask == self._offered and monotonic() - self._offered_at < _FRESH:
            return
        if self._listens_as != ask.worker:
            self._ear.send(command(b"SUBSCRIBE", self._client.key(f"ring:{ask.worker}")))
            self._listens_as = ask.worker
        self._client.run("offer", ask.worker, ask.queues)
        self._offered, self._offered_at = ask, monotonic()

    def _rang(self) -> bool:
        """Whether all were rung since the last look; a job that was handed over is kept."""
        rang = False
        while self._ear.ready:
            kind, channel, said = records.heard(self._ear.read())
            if kind != b"message":
                continue
            if not isinstance(said, bytes) or not said:
                rang = True
            else:
                self._handed.append((channel.rpartition(b":")[2].decode(), records.handed(said)))
                self._offered = None
        return rang

    def _taken(self, worker: str) -> list[Claimed]:
        """What was handed to this worker. What a former self was handed is another's by now, as its lease was lost."""
        handed, self._handed = self._handed, []
        return [claimed for whose, claimed in handed if whose == worker]

    def _again(self, posted: Posted) -> object:
        """What the server answers to a turn whose script it did not know, sent over a connection on which no other waits."""
        with self._client.connections.lend() as wire:
            wire.ask(loading(script("turn")))
            assert posted.called is not None
            return wire.ask(posted.called)


def turn_values(worker: str, ends: Sequence[Ended], ask: Ask | None) -> tuple[object, ...]:
    """What the script of a turn is given."""
    closes = [(*room, end.closes_for) for end in ends for room in end.closes]
    if ask is None or ask.limit <= 0 or not ask.queues:
        return worker, *records.ends(ends), (), 0, closes
    ample = () if ask.ample is None else (ask.ample.rooms, ask.ample.places)
    return worker, *records.ends(ends), list(dict.fromkeys(ask.queues)), ask.limit, closes, *ample


def turn(ends: Sequence[Ended], answer: object) -> tuple[frozenset[str], list[Claimed]]:
    """What the script of a turn answered: which ends counted, and what was claimed."""
    assert isinstance(answer, bytes)
    stale, claimed = records.turn(answer)
    counted = frozenset(end.id for end in ends)
    return counted.difference(stale) if stale else counted, claimed
