"""The story: which jobs the shop enqueues and when, and how each of them must end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rota import Job, State
from rota.demo import tasks

QUEUES = ("demo-mail", "demo-office", "demo-photos", "demo-risky")
_TICK = 0.1
_ARTICLES = ("boots", "coat", "lamp", "kettle", "globe", "kite")
_MONTHS = ("January", "February", "March", "April")


@dataclass
class Books:
    """What was enqueued, by the shop's own count."""

    calls: int = 0
    """How often something was enqueued."""
    deduplicated: int = 0
    """How often that found a waiting job with the same key."""
    expected: dict[str, State] = field(default_factory=dict)
    """How each job must end, by its id."""
    crashed: list[str] = field(default_factory=list)
    """The jobs that kill their process."""
    opening: list[str] = field(default_factory=list)
    """The mails that waited before the express ones came."""
    express: list[str] = field(default_factory=list)

    def enter(self, jobs: list[Job[Any]], end: State = State.SUCCEEDED) -> list[str]:
        """Note what an enqueue answered and return the ids of the jobs that are new."""
        self.calls += len(jobs)
        new = [job.id for job in jobs if not job.existed]
        self.deduplicated += len(jobs) - len(new)
        self.expected |= dict.fromkeys(new, end)
        return new


class Shop:
    """Enqueues the afternoon's jobs as time goes by. `total` is how many jobs there will be, about, for a progress bar."""

    def __init__(self, run: str, seconds: float) -> None:
        self._run = run
        self._ticks = max(10, round(seconds / _TICK))
        self._tick = 0
        self._order = 1000
        self._doomed: list[Job[Any]] = []
        self.books = Books()

    @property
    def closed(self) -> bool:
        """Whether everything is enqueued."""
        return self._tick >= self._ticks

    @property
    def total(self) -> int:
        known = len(self.books.expected)
        return known if self.closed else known + round((self._ticks - self._tick) * 7.2)

    def open(self) -> None:
        """What waits when the workers come: the morning's mails, then the express ones, and the long work."""
        books = self.books
        books.opening = books.enter(tasks.send_mail.enqueue_many((self._next_order(),) for _ in range(300)))
        books.express = books.enter(tasks.express_mail.enqueue_many((self._next_order(),) for _ in range(12)))
        books.enter(tasks.build_report.enqueue_many((month, 30 + 6 * at) for at, month in enumerate(_MONTHS)))
        books.enter([tasks.remind.using(delay=2 + at / 8).enqueue(f"customer {at}") for at in range(32)])
        self._doomed = [tasks.remind.using(delay=3600).enqueue(f"customer {at}") for at in range(6)]
        books.enter(self._doomed, State.CANCELLED)
        books.crashed = books.enter([tasks.crash.enqueue()], State.FAILED)
        books.enter([tasks.tell_partner.enqueue(self._next_order(), 9) for _ in range(2)], State.FAILED)
        books.enter([tasks.refund.enqueue(self._next_order())], State.FAILED)

    def tick(self, passed: float) -> None:
        """Enqueue what customers ordered until `passed` seconds after the opening."""
        while not self.closed and self._tick * _TICK <= passed:
            self._sell(self._tick)
            self._tick += 1
            if self._tick == self._ticks // 2:
                for job in self._doomed:
                    job.cancel()

    def _sell(self, at: int) -> None:
        orders = [self._next_order() for _ in range(3)]
        self.books.enter(tasks.send_mail.enqueue_many((order,) for order in orders))
        self.books.enter(tasks.print_receipt.enqueue_many((order, 1000 + order % 900) for order in orders))
        self.books.enter([tasks.make_thumbnail.enqueue(f"{orders[0]}.jpg")])
        if at % 5 == 0:
            self.books.enter([tasks.tell_partner.enqueue(orders[1], at // 5 % 3)])
        if at % 2 == 0:
            article = _ARTICLES[at // 2 % 3 + at // 30 % 4]
            # Counted a second after the first sale of an article; sales until then are counted along with it.
            self.books.enter([tasks.count_stock.using(key=f"{self._run}:{article}", delay=1).enqueue(article)])

    def _next_order(self) -> int:
        self._order += 1
        return self._order
