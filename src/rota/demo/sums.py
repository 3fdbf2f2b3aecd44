"""Whether everything adds up: the shop's books, the store, and the tasks' own record of what they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rota import State
from rota.demo.effects import Effect
from rota.demo.shop import Books
from rota.model import JobRow


@dataclass(frozen=True)
class Sum:
    """One thing that has to be so."""

    says: str
    holds: bool


def sums(books: Books, rows: Sequence[JobRow], effects: Sequence[Effect]) -> list[Sum]:
    """Every check, in the order in which to tell them. `rows` are the jobs of the books as the store has them in the end."""
    ours = [effect for effect in effects if effect.job in books.expected]
    return [
        _enqueued(books, rows),
        _deduplicated(books),
        _as_expected(books, rows),
        _once(rows, ours),
        _attempts(rows, ours),
        _final(rows, ours),
        _lost(books, rows),
        _overtaken(books, ours),
    ]


def _enqueued(books: Books, rows: Sequence[JobRow]) -> Sum:
    ends = Counter(row.state for row in rows)
    ok, failed, cancelled = ends[State.SUCCEEDED], ends[State.FAILED], ends[State.CANCELLED]
    jobs = len(books.expected)
    says = f"{jobs} jobs enqueued = {ok} succeeded + {failed} failed + {cancelled} cancelled"
    return Sum(says, jobs == ok + failed + cancelled and {row.id for row in rows} == set(books.expected))


def _deduplicated(books: Books) -> Sum:
    jobs, doubles = len(books.expected), books.deduplicated
    says = f"{books.calls} calls to enqueue = {jobs} jobs + {doubles} that found theirs waiting, by key"
    return Sum(says, books.calls == jobs + doubles and doubles > 0)


def _as_expected(books: Books, rows: Sequence[JobRow]) -> Sum:
    odd = [row for row in rows if row.state is not books.expected.get(row.id)]
    says = "every job ended as its story has it" if not odd else f"{len(odd)} jobs ended otherwise, such as {_named(odd[0])}"
    return Sum(says, not odd and len(rows) == len(books.expected))


def _once(rows: Sequence[JobRow], effects: Sequence[Effect]) -> Sum:
    did = Counter(effect.job for effect in effects if effect.did)
    ran = {row.id for row in rows if row.state is State.SUCCEEDED}
    says = f"{did.total()} pieces of work done, one by each job that succeeded and none by others"
    return Sum(says, did == dict.fromkeys(ran, 1))


def _attempts(rows: Sequence[JobRow], effects: Sequence[Effect]) -> Sum:
    began = Counter(effect.job for effect in effects if not effect.did)
    counted = {row.id: row.attempt for row in rows if row.attempt}
    says = f"{began.total()} bodies begun = {sum(counted.values())} attempts in the store, job by job"
    return Sum(says, began == counted)


def _final(rows: Sequence[JobRow], effects: Sequence[Effect]) -> Sum:
    ends = {row.id: row.finished_at for row in rows}
    late = [effect for effect in effects if (end := ends.get(effect.job)) is not None and effect.at > end]
    says = "no job ran after it was final" if not late else f"{len(late)} bodies ran after their job was final"
    return Sum(says, not late)


def _lost(books: Books, rows: Sequence[JobRow]) -> Sum:
    crashed = [row for row in rows if row.id in books.crashed]
    ended = [row for row in crashed if row.state is State.FAILED and "worker lost" in (row.reason or "")]
    reason = ended[0].reason if ended else "no reason was kept"
    says = f"the job that kills its process failed after {max((row.attempt for row in crashed), default=0)} attempts: {reason}"
    return Sum(says, len(ended) == len(books.crashed))


def _overtaken(books: Books, effects: Sequence[Effect]) -> Sum:
    began = {effect.job: effect.at for effect in effects if not effect.did}
    last = max((began[job] for job in books.express if job in began), default=0)
    behind = sum(1 for job in books.opening if began.get(job, 0) > last)
    says = f"{len(books.express)} express mails, enqueued last, overtook {behind} of the {len(books.opening)} mails that waited"
    return Sum(says, behind > 0)


def _named(row: JobRow) -> str:
    return f"{row.task} {row.id} ({row.state}: {row.reason})"
