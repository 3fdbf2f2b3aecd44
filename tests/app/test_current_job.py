"""What a body sees of its own job."""

from __future__ import annotations

import asyncio
import json

import pytest

from rota import CurrentJob, Rota, current_job

NOTES = ("\0", "\ud800", "x" * 10_000, "\x1b[31m", "'\" 🎉")


def test_a_body_knows_its_job(app: Rota) -> None:
    seen: list[CurrentJob] = []

    @app.task(name="look", queue="q", max_attempts=3, retry=0)
    def look() -> None:
        seen.append(current_job())
        if len(seen) == 1:
            raise ValueError("again")

    job = look.using(key="k").enqueue()
    app.drain()
    assert [(one.id, one.task, one.queue, one.key, one.attempt, one.max_attempts, one.should_stop) for one in seen] == [
        (job.id, "look", "q", "k", attempt, 3, False) for attempt in (1, 2)
    ]
    assert repr(seen[1]) == f"<CurrentJob {job.id} look attempt 2 of 3>"


def test_what_a_coroutine_starts_sees_its_job(app: Rota) -> None:
    seen = []

    @app.task
    async def look() -> None:
        async def child() -> None:
            seen.append(current_job().id)

        await asyncio.gather(child(), child())

    job = look.enqueue()
    app.drain()
    assert seen == [job.id] * 2


def test_outside_of_a_body_there_is_no_job() -> None:
    with pytest.raises(LookupError, match=r"^no job is running here: current_job\(\) is for the body of a task$"):
        current_job()


@pytest.mark.parametrize("fails", [False, True])
def test_progress_is_in_the_row_afterwards(app: Rota, fails: bool) -> None:
    @app.task(max_attempts=1)
    def work() -> None:
        current_job().progress(1)
        current_job().progress(2, 10, "packing")
        if fails:
            raise ValueError("no")

    job = work.enqueue()
    app.drain()
    assert json.loads(job.row.progress or "") == {"done": 2, "total": 10, "note": "packing"}


def test_no_note_makes_a_job_fail(app: Rota) -> None:
    @app.task
    def work(number: int) -> None:
        current_job().progress(0.5, None, NOTES[number])

    for number in range(len(NOTES)):
        job = work.enqueue(number)
        assert [event.kind.value for event in app.drain()] == ["succeeded"]
        assert 0 < len(json.loads(job.row.progress or "")["note"]) <= 500
