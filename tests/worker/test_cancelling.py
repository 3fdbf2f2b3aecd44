"""A cancelled job does not start; one that runs is stopped where that can be done."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import isolated_bodies
import pytest

from accounts import account, noted, starts
from rota import Rota, current_job
from rota.errors import JobNotFound
from rota.model import State
from working import eventually, working

PATIENCE = 30.0


def test_a_job_cancelled_while_it_waits_never_starts(app: Rota) -> None:
    go, begun = threading.Event(), threading.Event()

    @app.task
    def first() -> None:
        go.wait(PATIENCE)

    @app.task
    def second() -> None:
        begun.set()

    with working(app, concurrency=1):
        one, other = first.enqueue(), second.enqueue()
        eventually(lambda: one.refresh().status is State.RUNNING)
        assert other.cancel() is State.CANCELLED
        go.set()
        assert one.wait(PATIENCE).status is State.SUCCEEDED
    assert other.refresh().status is State.CANCELLED
    assert not begun.is_set()


def test_a_running_coroutine_is_cancelled_and_cleans_up(app: Rota) -> None:
    begun, cleaned = threading.Event(), threading.Event()

    @app.task
    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    with working(app):
        job = slow.using(queue="Emails-2").enqueue()
        assert begun.wait(PATIENCE)
        assert app.cancel(job.id) is State.RUNNING
        assert job.wait(PATIENCE).status is State.CANCELLED
    assert cleaned.is_set()


def test_jobs_on_a_queue_that_the_caller_never_named_are_cancelled(store_url: str) -> None:
    if store_url.startswith("memory:"):
        return  # it is one app's own
    begun = threading.Event()
    with Rota(store_url) as app, Rota(store_url) as stranger:

        @app.task(queue="Emails-2")
        async def slow() -> None:
            begun.set()
            await asyncio.sleep(PATIENCE)

        with working(app, queues=["Emails-2"], concurrency=1):
            running = slow.enqueue()
            assert begun.wait(PATIENCE)
            waiting, later = slow.using(key="a:b c").enqueue(), slow.using(delay=3600).enqueue()
            assert stranger.cancel(waiting.id) is stranger.cancel(later.id) is State.CANCELLED
            assert stranger.cancel(running.id) is State.RUNNING
            for job in (running, waiting, later):
                assert job.wait(PATIENCE).status is State.CANCELLED


def test_a_running_isolated_body_is_killed(isolated: Rota, ledger: Path) -> None:
    with working(isolated):
        job = isolated_bodies.endless.enqueue(str(ledger))
        eventually(lambda: starts(ledger) == 1)
        job.cancel()
        assert job.wait(PATIENCE).status is State.CANCELLED


def test_a_plain_body_may_look_and_end(app: Rota) -> None:
    begun = threading.Event()

    @app.task
    def slow() -> None:
        begun.set()
        eventually(lambda: current_job().should_stop)
        raise RuntimeError("asked to stop")

    with working(app):
        job = slow.enqueue()
        assert begun.wait(PATIENCE)
        job.cancel()
        assert job.wait(PATIENCE).status is State.CANCELLED


def test_a_body_that_finishes_in_spite_of_the_cancel_has_succeeded(app: Rota) -> None:
    @app.task(keep_result=True)
    def slow() -> str:
        eventually(lambda: current_job().should_stop)
        return "done"

    with working(app):
        job = slow.enqueue()
        eventually(lambda: job.refresh().status is State.RUNNING)
        job.cancel()
        assert job.wait(PATIENCE).result() == "done"


def test_a_job_that_was_claimed_and_cancelled_before_its_slot_came_does_not_start(app: Rota) -> None:
    """Quick jobs teach the worker to claim ahead; what it holds then is cancelled behind a slow one."""
    go, ran = threading.Event(), []

    @app.task
    def quick(number: int) -> None:
        ran.append(number)
        if number == 400:
            go.wait(PATIENCE)

    jobs = quick.enqueue_many([(number,) for number in range(1_000)])
    with working(app, concurrency=1):
        eventually(lambda: 400 in ran)
        answers = [job.cancel() for job in jobs[401:]]
        for job in jobs[401:]:
            assert job.wait(PATIENCE).status is State.CANCELLED
        go.set()
        assert jobs[400].wait(PATIENCE).status is State.SUCCEEDED
    assert ran == list(range(401))
    assert set(answers) <= {State.CANCELLED, State.RUNNING}


def test_a_cancel_is_either_in_time_or_too_late(app: Rota, ledger: Path) -> None:
    """A thousand cancels race the claims: what was answered `cancelled` never begins."""

    @app.task
    def quick() -> None:
        with noted(ledger):
            pass

    jobs = quick.enqueue_many([()] * 1_000)
    shuffled = random.Random(7).sample(jobs, len(jobs))
    answers: dict[str, State] = {}

    def cancel(some: list) -> None:
        for job in some:
            answers[job.id] = job.cancel()

    with working(app, concurrency=4):
        threads = [threading.Thread(target=cancel, args=(shuffled[start::2],)) for start in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for job in jobs:
            job.wait(PATIENCE)
    done = account(app, [job.id for job in jobs], ledger)
    assert done.repeated == {}
    begun = starts(ledger)
    in_time = [job for job, answer in answers.items() if answer is State.CANCELLED]
    assert len(answers) == 1_000
    for job in in_time:
        assert app.get(job).status is State.CANCELLED
    assert not any(starts(ledger, job) for job in in_time[:50])
    assert begun + len(in_time) <= 1_000


def test_a_cancel_of_a_gone_job_says_so(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    job = quick.enqueue()
    job.delete()
    with pytest.raises(JobNotFound, match=job.id):
        job.cancel()
