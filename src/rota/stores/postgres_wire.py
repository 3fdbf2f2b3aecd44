"""Named queries over one connection: sent together, as one transaction, and answered later.

It uses the client library's pipeline mode (libpq, chapter "Pipeline Mode" of Postgres's manual) without the driver's cursors,
for two reasons: the next transaction can be on its way before the answers to this one are read, and the driver's own
work is a good part of what a lone insert or claim costs.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from weakref import WeakSet

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from rota.bell import ready
from rota.forks import in_every_child
from rota.stores.database import Call, Row
from rota.stores.postgres_queries import Queries, Query

_DONE = pq.ExecStatus.PIPELINE_SYNC
_ROWS = pq.ExecStatus.TUPLES_OK
_NO_ROWS = pq.ExecStatus.COMMAND_OK
_SKIPPED = pq.ExecStatus.PIPELINE_ABORTED

_HURRIES = frozenset({"claim", "claim_behind"})
"""Queries that themselves see to it that their commit need not wait for the disk."""
_HURRY: Call = ("hurry", {})
_SETTINGS = frozenset({"hurry", "bound", "hurry_bound"})
"""Queries that only set something for their transaction, and of which nobody wants an answer."""
_WIRES: WeakSet[Wire] = WeakSet()
"""The connections of this process, for its forks."""
_UNHEARD = ""
"""Stands among the results that are expected for one that nobody asked for."""

Made = tuple[str, Query, list[bytes | None]]
"""A query that is ready to be sent: its name, its text, and its parameters."""


def ready_made(queries: Queries, calls: Sequence[Call], durable: bool) -> list[Made]:
    """Queries with their parameters as they are sent."""
    unheard = () if durable or _HURRIES.issuperset(name for name, _ in calls) else (_HURRY,)
    made: list[Made] = []
    for name, params in (*unheard, *calls):
        query = queries[name]
        made.append((name, query, query.values({**params, "durable": durable})))
    return made


class Wire:
    """A connection, used by one thread at a time. Errors are the driver's.

    `pooled` says that the server is another at each transaction, and so keeps no statement for the next time.
    """

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], pooled: bool) -> None:
        self._connection = connection
        self._libpq = connection.pgconn
        self._reader = Transformer(connection)
        self.pooled = pooled
        self._prepared: set[str] = set()
        self._expected: deque[deque[str | None]] = deque()
        """For each transaction on its way, what its results are: answers (`None`), prepared statements, and `_UNHEARD`."""
        self._found: list[list[Row]] = []
        self._error: psycopg.Error | None = None
        self._last_words = LastWords()
        connection.add_notice_handler(self._last_words)
        self._poll = select.poll() if hasattr(select, "poll") else None  # Windows has none
        if self._poll is not None:
            self._poll.register(self._libpq.socket, select.POLLIN)
        _WIRES.add(self)
        self.rang = False
        """Whether a notification came since this was last made false."""

    @property
    def socket(self) -> int:
        """The number of its socket, for whoever waits for more than this."""
        return self._libpq.socket

    @property
    def closed(self) -> bool:
        return not hasattr(self._connection, "pgconn") or self._connection.closed

    @property
    def idle(self) -> bool:
        """Whether nothing is under way on it."""
        return not self._expected and self._libpq.transaction_status == pq.TransactionStatus.IDLE

    @property
    def quiet(self) -> bool:
        """Whether the server said nothing that was not read: all that it tells an idle client is that it goes away."""
        return not (self._poll.poll(0) if self._poll is not None else ready([self.socket], timeout=0)[0])

    def close(self) -> None:
        if not self.closed:
            self._connection.close()

    def disown(self) -> None:
        """Leave the connection to the process that this one was forked from.

        Of one that is forgotten while it is open the driver complains, and one that is closed says goodbye to the server in
        the parent's name; without its link to the client library it does neither.
        """
        del self._connection.pgconn

    def driver(self) -> psycopg.Connection[tuple[object, ...]]:
        """The connection, for what the driver does itself, until the next `send`."""
        if self._expected:
            self.close()  # its answers would be taken for others
        elif self._libpq.pipeline_status != pq.PipelineStatus.OFF:
            self._libpq.exit_pipeline_mode()
        return self._connection

    def send(self, queries: Queries, calls: Sequence[Call], durable: bool = True) -> None:
        """Send these as one transaction. Inside a transaction that the connection is in, they become part of it.

        Where it need not be `durable`, its commit does not wait for the disk.
        """
        self.send_made(ready_made(queries, calls, durable))

    def send_made(self, made: Sequence[Made]) -> None:
        """`send` what was made ready before."""
        libpq = self._libpq
        if libpq.pipeline_status == pq.PipelineStatus.OFF:
            libpq.enter_pipeline_mode()
        expected: deque[str | None] = deque()
        for name, query, values in made:
            if self.pooled:
                libpq.send_query_params(query.text, values, param_formats=query.formats)
            else:
                if name not in self._prepared:
                    libpq.send_prepare(query.name, query.text)
                    self._prepared.add(name)
                    expected.append(name)
                libpq.send_query_prepared(query.name, values, param_formats=query.formats)
            expected.append(_UNHEARD if name in _SETTINGS else None)
        libpq.pipeline_sync()
        self._expected.append(expected)
        self._write()

    def answers(self) -> list[list[Row]]:
        """Wait for the rows of each query of the oldest transaction under way. Raises what the server said to any of them."""
        while (found := self.answered()) is None:
            ready([self._libpq.socket])
            self._take_in()
        return found

    def answered(self) -> list[list[Row]] | None:
        """The same, or `None` while the answers are not all here; for one who waits by other means."""
        libpq = self._libpq
        while self._expected and not libpq.is_busy():
            self.heed()
            result = libpq.get_result()
            if result is None:  # it stands between the results of two statements
                continue
            if result.status == _DONE:
                return self._taken()
            self._note(result)
        self.heed()
        return None

    def read(self) -> None:
        """Take in what the server has sent, without waiting for more."""
        self._take_in()
        self.heed()

    def heed(self) -> None:
        """Take note of notifications; all of them are one ring."""
        while self._libpq.notifies() is not None:
            self.rang = True

    def _note(self, result: pq.abc.PGresult) -> None:
        expected = self._expected[0]
        statement = expected.popleft() if expected else None  # a commit that fails is told beside the answers
        if result.status not in (_ROWS, _NO_ROWS):
            if statement:
                self._prepared.discard(statement)
            if result.status != _SKIPPED and self._error is None:
                self._error = error_from_result(result, encoding=self._connection.info.encoding)
        elif statement is not None:
            return
        elif result.status == _ROWS:
            self._reader.set_pgresult(result)
            self._found.append(self._reader.load_rows(0, result.ntuples, tuple))
        else:
            self._found.append([])

    def _taken(self) -> list[list[Row]]:
        self._expected.popleft()
        found, self._found = self._found, []
        error, self._error = self._error, None
        if error is not None:
            raise error
        return found

    def _write(self) -> None:
        """Send all that is to be sent. A server that answers meanwhile is listened to: it might wait for that."""
        socket = self._libpq.socket
        while self._libpq.flush():
            if ready([socket], [socket])[0]:
                self._take_in()

    def _take_in(self) -> None:
        """Who goes away often says why before, and that is worth more than that it has gone."""
        try:
            self._libpq.consume_input()
        except psycopg.OperationalError as gone:
            self.heed()  # which has the client library look at what came
            while self._error is None and (result := self._libpq.get_result()) is not None:
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    error = error_from_result(result, encoding=self._connection.info.encoding)
                    if error.sqlstate is not None:  # else it is the client library's own, of that the server has gone
                        self._error = error
            if (said := self._error or self._last_words.said) is not None:
                raise said from gone
            raise


def _disown_all() -> None:
    for wire in list(_WIRES):
        wire.disown()
    _WIRES.clear()


in_every_child(_disown_all)


class LastWords:
    """What the server says when it ends a connection on which nothing is under way: it comes as a notice."""

    def __init__(self) -> None:
        self.said: psycopg.Error | None = None

    def __call__(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "FATAL" and notice.sqlstate is not None:
            with suppress(KeyError):  # a code that the driver does not know
                self.said = psycopg.errors.lookup(notice.sqlstate)(notice.message_primary or "")
