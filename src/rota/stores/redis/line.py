"""A worker's line to Redis: one connection that carries its turns, and one on which it is rung."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import redis
from msgspec import Struct

from rota.bell import Bell
from rota.clock import Micros
from rota.model import Ask, Ended, Turn
from rota.stores.redis import records
from rota.stores.redis.client import Client
from rota.stores.redis.scripts import command, loading, script


class Posted(Struct, frozen=True):
    """A turn that is under way."""

    ends: Sequence[Ended]
    called: bytes


class RedisLine:
    """Subscribed to the ring on a connection of its own: one that listens can carry nothing else."""

    ahead = 2
    ample = True

    def __init__(self, client: Client) -> None:
        self._client = client
        self._posted: deque[Posted] = deque()
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
        self._posted.append(Posted(ends, called))

    def answered(self) -> Turn | None:
        if not self._posted:
            return None
        with self._client.connections.errors():
            if not self._turns.ready:
                return None
            posted = self._posted.popleft()
            try:
                answer = self._turns.read()
            except redis.exceptions.NoScriptError:  # somebody had the server forget it
                answer = self._again(posted)
        return turn(posted.ends, answer)

    def wait(self, timeout: float, bell: Bell, when_rung: Ask | None = None) -> bool:
        with self._client.connections.errors():
            rang = self._rang()
            if not rang and not (self._posted and self._turns.ready):  # several answers may have come at once
                bell.wait(timeout, self._turns.socket, self._ear.socket)
                rang = self._rang()
        if rang and when_rung is not None:
            self.post(when_rung.worker, [], when_rung)
        return rang

    def close(self) -> None:
        self._turns.close()
        self._ear.close()

    def _rang(self) -> bool:
        """Whether something rang since the last look."""
        rang = False
        while self._ear.ready:
            self._ear.read()
            rang = True
        return rang

    def _again(self, posted: Posted) -> object:
        """What the server answers to a turn whose script it did not know, sent over a connection on which no other waits."""
        with self._client.connections.lend() as wire:
            wire.ask(loading(script("turn")))
            return wire.ask(posted.called)


def turn_values(worker: str, ends: Sequence[Ended], ask: Ask | None) -> tuple[object, ...]:
    """What the script of a turn is given."""
    closes = [(*room, end.closes_for) for end in ends for room in end.closes]
    if ask is None or ask.limit <= 0 or not ask.queues:
        return worker, *records.ends(ends), (), 0, closes
    ample = () if ask.ample is None else (ask.ample.rooms, ask.ample.places)
    return worker, *records.ends(ends), list(dict.fromkeys(ask.queues)), ask.limit, closes, *ample


def turn(ends: Sequence[Ended], answer: object) -> Turn:
    """What the script of a turn answered."""
    assert isinstance(answer, bytes)
    stale, claimed = records.turn(answer)
    counted = frozenset(end.id for end in ends)
    return Turn(counted.difference(stale) if stale else counted, claimed)
