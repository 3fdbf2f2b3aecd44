"""A process's connections to Postgres: few, opened when needed, and looked at before they are used again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, LiteralString

import psycopg
from psycopg.types.string import TextLoader

from rota.errors import StoreError, StoreUnavailable
from rota.stores.exits import at_exit
from rota.stores.postgres_driver import Session
from rota.stores.postgres_errors import READ_ONLY, meaning
from rota.stores.postgres_queries import Queries
from rota.stores.postgres_url import PostgresUrl
from rota.stores.postgres_wire import Wire

Plans = Literal["anew", "kept"]
"""Whether a connection plans its statements anew at each run, or keeps their plans.

Planning takes a fifth of a lone insert's or claim's time. But a plan that was made while a table was empty would read the
whole table for ever, so where plans are kept there are only those along an index, which is right for what is run often.
"""

_PATIENCE = 30.0
"""For how many seconds a thread waits until another gives a connection back."""


class Pool:
    """Lends connections, the one used last first: it has its statements prepared and the server's caches warm."""

    def __init__(self, url: PostgresUrl, settings: Mapping[str, Any], pooler: bool | None, max_size: int) -> None:
        self._url = url
        self._settings = settings
        self.pooler = pooler
        """Whether a pooler that lends connections for a transaction is between; `None` to find out."""
        self.met_pooler = False
        """Whether one was found that nobody was told of."""
        self._max_size = max_size
        self.place = url.place
        self._start()
        at_exit(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._given_back = threading.Condition(self._lock)
        self._idle: dict[Plans, list[Wire]] = {"anew": [], "kept": []}
        self._open = 0
        self._round = 0
        self._pid = os.getpid()  # last: it tells other threads that all is ready

    def twin(self) -> Pool:
        """Another pool, which takes over what is idle here: whoever makes one means to work through that."""
        self._after_fork()
        twin = Pool(self._url, self._settings, self.pooler, self._max_size)
        twin.met_pooler = self.met_pooler
        with self._lock:
            twin._idle, self._idle = self._idle, twin._idle
            twin._open = sum(len(wires) for wires in twin._idle.values())
            self._open -= twin._open
            self._given_back.notify_all()
        return twin

    @contextmanager
    def session(self, queries: Queries, plans: Plans = "anew") -> Iterator[Session]:
        """A connection for one operation. The driver's errors leave as Rota's."""
        try:
            wire, lent_in = self.lend(plans)
            try:
                yield Session(wire, queries)
            finally:
                self.give_back(wire, lent_in, plans)
        except psycopg.Error as error:
            raise self._told(error) from error

    def connect(self, plans: Plans = "anew") -> Wire:
        """A new connection that is the caller's own."""
        with self.errors():
            settings = {"client_encoding": "utf8", **self._settings}
            connection = psycopg.connect(self._url.conninfo, autocommit=True, prepare_threshold=None, **settings)
            try:
                pooled = self._set_up(connection, plans)
            except BaseException:
                connection.close()
                raise
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            connection.adapters.register_loader("uuid", TextLoader)
            return Wire(connection, pooled)

    def _set_up(self, connection: psycopg.Connection[tuple[object, ...]], plans: Plans) -> bool:
        """Set what a session keeps, and say whether there is none to keep it.

        A pooler tells each client another process than the one that serves it. Then nothing is set: it would stay behind in
        a connection that others are lent.
        """
        if self.pooler:
            return True
        told = connection.info.backend_pid if self.pooler is None else None
        if connection.execute(_SET_UP, {"told": told, "plans": _NAMES[plans], "scans": _SCANS[plans]}).fetchone():
            return False
        self.met_pooler = True
        return True

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back."""
        self._after_fork()
        with self._lock:
            idle = [wire for wires in self._idle.values() for wire in wires]
            self._idle = {"anew": [], "kept": []}
            self._open -= len(idle)
            self._round += 1
            self._given_back.notify_all()
        for wire in idle:
            wire.close()

    close_idle = close

    @contextmanager
    def errors(self) -> Iterator[None]:
        """The driver's errors leave as Rota's."""
        try:
            yield
        except psycopg.Error as error:
            raise self._told(error) from error

    def _told(self, error: psycopg.Error) -> StoreError:
        if error.sqlstate == READ_ONLY:
            self.close()  # another server takes the writes now, and only a new connection can lead there
        return meaning(error, self.place)

    def lend(self, plans: Plans) -> tuple[Wire, int]:
        """A connection, and what else `give_back` must be told."""
        self._after_fork()
        while True:
            with self._lock:
                if not (self._idle[plans] or self._open < self._max_size):
                    self._wait_for_one()
                lent_in = self._round
                wire, planned = self._pick(plans)
            if wire is None:
                try:
                    return self.connect(plans), lent_in
                except StoreUnavailable:
                    if (instead := self._instead(plans)) is None:
                        raise
                    wire, planned = instead
                except BaseException:
                    self._forget()
                    raise
            try:
                if not wire.closed and wire.quiet:  # else the server went away
                    if planned != plans and not wire.pooled:
                        wire.driver().execute(_SET_UP, {"told": None, "plans": _NAMES[plans], "scans": _SCANS[plans]})
                    return wire, lent_in
            except BaseException:
                self._drop(wire)
                raise
            self._drop(wire)

    def _pick(self, plans: Plans) -> tuple[Wire | None, Plans]:
        """An idle connection that plans so, else none, for which there is room, else an idle one that plans otherwise."""
        if self._idle[plans]:
            return self._idle[plans].pop(), plans
        if self._open < self._max_size:
            self._open += 1
            return None, plans
        other: Plans = "kept" if plans == "anew" else "anew"
        return self._idle[other].pop(), other

    def _instead(self, plans: Plans) -> tuple[Wire, Plans] | None:
        """An idle connection that plans otherwise, if any, for the server has no room for the one that was to be opened."""
        other: Plans = "kept" if plans == "anew" else "anew"
        with self._lock:
            self._open -= 1
            if self._idle[other]:
                return self._idle[other].pop(), other
            self._given_back.notify()
        return None

    def _wait_for_one(self) -> None:
        """Until there is an idle connection or room for another; the lock is held."""
        if not self._given_back.wait_for(lambda: any(self._idle.values()) or self._open < self._max_size, _PATIENCE):
            raise StoreUnavailable(
                f"all {self._max_size} connections to Postgres at {self.place} have been busy for {_PATIENCE:g} s: "
                "end what holds them, or raise max_size"
            )

    def give_back(self, wire: Wire, lent_in: int, plans: Plans) -> None:
        if not wire.idle:
            wire.close()
        with self._lock:
            if not wire.closed and lent_in == self._round:
                self._idle[plans].append(wire)
                self._given_back.notify()
                return
        self._drop(wire)

    def _drop(self, wire: Wire) -> None:
        wire.close()
        self._forget()

    def _forget(self) -> None:
        with self._lock:
            self._open -= 1
            self._given_back.notify()

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._start()  # the connections are the parent's, and were disowned


_SET_UP: LiteralString = """
select set_config('default_transaction_isolation', 'read committed', false), set_config('plan_cache_mode', %(plans)s, false),
       set_config('enable_seqscan', %(scans)s, false), set_config('enable_bitmapscan', %(scans)s, false)
where %(told)s::integer is null or pg_backend_pid() = %(told)s::integer
"""

_NAMES: dict[Plans, str] = {"anew": "force_custom_plan", "kept": "force_generic_plan"}
_SCANS: dict[Plans, str] = {"anew": "on", "kept": "off"}
