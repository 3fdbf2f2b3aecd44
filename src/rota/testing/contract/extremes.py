"""Texts, numbers and batches at their extremes: everything that was taken comes back as it went in."""

from __future__ import annotations

import json

import pytest

from rota.clock import LONGEST
from rota.model import Ended, Failed, Failure, Inserted, Move, Report, State, Succeeded, TaskRow
from rota.stores.base import Store
from rota.testing.contract.scene import NOW, claim, finish, found, ids, join, new, put, row, running, state

TEXTS = {
    "emoji": "🦀 日本語 ñ \u202e",
    "200 letters": "q" * 200,
    "200 emoji": "🦀" * 200,
    "quotes": """it's "quoted" `here`""",
    "per cent": "100 % %s %(name)s %%",
    "braces": "{} {x} {0} {{y}} '{z}'",
    "names": ":name ::text $1 ?1 @a",
    "backslashes": "\\ \\\\ \\n \\u0041 \\' \\x00",
    "comment": "'; drop table jobs; -- /*",
    "spaces": "  \t\n leading and trailing \r\n ",
    "commas": 'a,b;c|d{e}(f)"g",NULL,null',
    "control": "\x01\x1f\x7f\u0085\u2028\ufeff\uffff",
    "empty": "",
}

some_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


class Extremes:
    @some_text
    def test_a_job_keeps_any_text(self, store: Store, text: str) -> None:
        worker = join(store)
        args = json.dumps([[text], {"a": text}], ensure_ascii=False)
        job = new(task=text, queue=text, args=args, key=text)
        assert put(store, job) == [Inserted(job.id)]
        assert put(store, new(task=text, key=text)) == [Inserted(job.id, existed=True)]
        assert store.queues() == [text]
        (claimed,) = claim(store, worker, queues=(text,))
        assert (claimed.task, claimed.queue, claimed.args, claimed.key) == (text, text, args, text)
        assert finish(store, worker, claimed, Succeeded(args))
        kept = row(store, job.id)
        assert (kept.task, kept.queue, kept.args, kept.key, kept.result) == (text, text, args, text, args)
        assert found(store, task=text, queue=text, key=text) == [job.id]
        assert [(count.task, count.queue) for count in store.counts()] == [(text, text)]

    @some_text
    def test_a_failure_keeps_any_text(self, store: Store, text: str) -> None:
        worker = join(store)
        claimed = running(store, worker)
        store.beat(worker, [Report(claimed.id, 1, json.dumps(text))], now=NOW)
        assert row(store, claimed.id).progress == json.dumps(text)
        finish(store, worker, claimed, Failed(Failure(text, text, text)))
        assert [each.failure for each in store.attempts(claimed.id)] == [Failure(text, text, text)]
        assert text in str(row(store, claimed.id).reason)

    @some_text
    def test_a_worker_keeps_any_text(self, store: Store, text: str) -> None:
        join(store, name=text, host=text, queues=[text], tasks=[text, "t"], version=text)
        (seen,) = store.workers()
        assert (seen.name, seen.host, seen.queues, seen.tasks, seen.version) == (text, text, [text], [text, "t"], text)
        store.declare([TaskRow(text, text, 0, 5)])
        assert store.declared(text) == TaskRow(text, text, 0, 5)

    def test_texts_that_differ_in_case_or_spaces_are_different(self, store: Store) -> None:
        jobs = [new(queue=name, key=name) for name in ("a", "A", "a ", " a", "á", "a\u0301")]
        assert put(store, *jobs) == [Inserted(job.id) for job in jobs]
        assert ids(claim(store, join(store), queues=("a",))) == [jobs[0].id]

    @pytest.mark.parametrize(
        "args",
        [
            r'[["\u0000"],{}]',
            r'[["a\u0000b","\ud800"],{"\u0000":1}]',
            r'[["\\u0000"],{}]',
            '[[1.50,1e400,-0],{"b":1,"a":2,"b":3}]',
        ],
        ids=["NUL", "NUL and half a pair", "an escaped backslash", "numbers and doubled names"],
    )
    def test_arguments_are_kept_letter_by_letter(self, store: Store, args: str) -> None:
        worker = join(store)
        claimed = running(store, worker, args=args)
        assert claimed.args == args
        store.beat(worker, [Report(claimed.id, 1, args)], now=NOW)
        assert row(store, claimed.id).progress == args
        finish(store, worker, claimed, Succeeded(args))
        assert (row(store, claimed.id).args, row(store, claimed.id).result) == (args, args)

    def test_a_megabyte_of_arguments_result_and_trace_is_kept(self, store: Store) -> None:
        worker = join(store)
        big = json.dumps(["🦀xyz" * 130_000], ensure_ascii=False)
        jobs = [new(args=big), new(args=big), new(args=big, max_attempts=1)]
        put(store, *jobs)
        one, two, three = claim(store, worker)
        assert {each.args for each in (one, two, three)} == {big}
        ends = [
            Ended(one.id, 1, Succeeded(big)),
            Ended(two.id, 1, Succeeded()),
            Ended(three.id, 1, Failed(Failure("E", "m", big))),
        ]
        assert len(store.finish(worker, ends, now=NOW).counted) == 3
        assert row(store, one.id).result == big
        assert store.attempts(three.id)[0].failure == Failure("E", "m", big)

    @pytest.mark.parametrize("number", [-2_000_000_000, -1, 2_000_000_000])
    def test_priorities_reach_two_thousand_million_both_ways(self, store: Store, number: int) -> None:
        low, high = new(priority=min(number, 0)), new(priority=max(number, 0))
        put(store, low, high)
        claims = claim(store, join(store))
        assert [(each.id, each.priority) for each in claims] == [(high.id, high.priority), (low.id, low.priority)]

    def test_times_reach_from_the_epoch_to_a_century_ahead(self, store: Store) -> None:
        old, far, delayed = new(run_at=0), new(run_at=NOW + LONGEST), new(delay=LONGEST)
        put(store, far, old, delayed)
        assert [row(store, job.id).due for job in (old, far, delayed)] == [0, NOW + LONGEST, NOW + LONGEST]
        assert store.promote(10, now=NOW).next_in == LONGEST
        assert store.promote(10, now=NOW + LONGEST).count == 2
        assert ids(claim(store, join(store, now=NOW + LONGEST), now=NOW + LONGEST)) == [old.id, far.id, delayed.id]

    def test_batches_of_thousands_go_through_every_operation(self, store: Store) -> None:
        many = 5000
        worker = join(store)
        jobs = [new(key=f"k{number}") for number in range(many)]
        put(store, *jobs)
        claims = claim(store, worker, limit=many)
        assert len(claims) == many
        assert store.beat(worker, [Report(each.id, 1, "1") for each in claims], now=NOW).lost == frozenset()
        turn = store.finish(worker, [Ended(each.id, 1, Failed(Failure("E", "m"))) for each in claims], now=NOW)
        assert len(turn.counted) == many
        assert len(store.get([job.id for job in jobs])) == many
        retried = store.change(Move.RETRY, [job.id for job in jobs], now=NOW)
        assert {each.after for each in retried} == {State.QUEUED}
        assert len(store.change(Move.CANCEL, [job.id for job in jobs], now=NOW)) == many
        assert store.prune({State.CANCELLED: 0}, many, now=NOW + 1) == {State.CANCELLED: many}
        assert state(store, jobs[0].id) is None
