"""The outbox of the guide to Redis, as it stands there: jobs of a transaction of one's own reach Redis, each of them once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from effects import effects, ready
from fresh import fresh_url
from rota import Rota, State
from working import eventually

TESTS = Path(__file__).parents[1]
GUIDE = TESTS.parent / "docs" / "redis.md"

STANDS_STILL = """
import os, signal
from tasks import outbox


@outbox.around
def stand_still(job):
    {before}
    yield
    {after}
"""
"""The outbox, in a worker that stands still before or after it has handed a job on."""
STOP = "os.kill(os.getpid(), signal.SIGSTOP)"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The application's own, with a table of its."""
    with fresh_url(request.param, request, tmp_path) as url:
        yield ready(url)


@pytest.fixture
def redis_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with fresh_url("redis", request, tmp_path) as url:
        yield url


class Shop:
    """The guide's program in a folder of its own, with the application's database and Redis at these URLs."""

    def __init__(self, folder: Path, database: str, redis: str) -> None:
        self._folder = folder
        self._database = database
        [program] = re.findall(r"```python\n(# tasks\.py\n[^`]*def through_outbox.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
        for shown, ours in {"redis://localhost:6379/0": redis, "sqlite:///shop.db": database}.items():
            assert f'"{shown}"' in program
            program = program.replace(f'"{shown}"', repr(ours))
        (folder / "tasks.py").write_text(program)
        for when, before, after in (("before", STOP, "pass"), ("after", "pass", STOP)):
            (folder / f"stops_{when}.py").write_text(STANDS_STILL.format(before=before, after=after))

    def order(self, ending: str) -> str:
        """Write an order and enqueue its receipt in one transaction that ends so; the id of the job."""
        program = f"""
from effects import connect, note_effect
from tasks import send_receipt

shop = connect({self._database!r})
note_effect(shop, "order")
print(send_receipt.using(connection=shop).enqueue(7).id)
shop.{ending}()
shop.close()
"""
        [id] = self._python(program)
        return id

    def run(self) -> list[str]:
        """Run what Redis has, and answer what that printed."""
        return self._python("from tasks import app; app.drain()")

    @contextmanager
    def worker(self, app: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "rota", "worker", "--app", app, "--lease", "1s"]
        with subprocess.Popen(command, cwd=self._folder, env=self._environment()) as process:
            try:
                yield process
            finally:
                process.kill()

    def hand_on_again(self) -> None:
        """What the guide says to do when Redis has lost jobs."""
        [words] = re.findall(r"^\$ rota (jobs retry .*)$", GUIDE.read_text("utf-8"), re.MULTILINE)
        command = [sys.executable, "-m", "rota", *words.split(), "--yes"]
        subprocess.run(command, cwd=self._folder, env=self._environment(), stdout=subprocess.DEVNULL, check=True, timeout=60)

    def _python(self, program: str) -> list[str]:
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, cwd=self._folder, env=self._environment(), stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
        return done.stdout.splitlines()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(self._folder), str(TESTS)])}


def test_a_job_reaches_redis_with_the_commit_and_never_without(tmp_path: Path, database: str, redis_url: str) -> None:
    shop = Shop(tmp_path, database, redis_url)
    shop.order("rollback")
    id = shop.order("commit")
    assert effects(database) == ["order"]
    with Rota(database) as outbox, Rota(redis_url) as app:
        with shop.worker("tasks:outbox"):
            eventually(lambda: handed_on(outbox))
        assert [job.id for job in app.jobs()] == [id]
        assert shop.run() == ["receipt for order 7"]
        assert app.get(id).status is State.SUCCEEDED


def test_a_worker_killed_before_it_hands_a_job_on_loses_none(tmp_path: Path, database: str, redis_url: str) -> None:
    shop = Shop(tmp_path, database, redis_url)
    id = shop.order("commit")
    with Rota(database) as outbox, Rota(redis_url) as app:
        _kill_where_it_stands_still(shop, "stops_before:outbox")
        assert app.jobs() == []
        with shop.worker("tasks:outbox"):
            eventually(lambda: handed_on(outbox))
        assert [job.id for job in app.jobs()] == [id]
        assert shop.run() == ["receipt for order 7"]


@pytest.mark.parametrize("ended", [False, True], ids=["still waits", "has ended"])
def test_a_worker_killed_after_it_handed_a_job_on_queues_none_twice(
    tmp_path: Path, database: str, redis_url: str, ended: bool
) -> None:
    shop = Shop(tmp_path, database, redis_url)
    id = shop.order("commit")
    with Rota(database) as outbox, Rota(redis_url) as app:
        _kill_where_it_stands_still(shop, "stops_after:outbox")
        assert [job.id for job in outbox.jobs(status="running")] == [id]
        assert [job.id for job in app.jobs(status="queued")] == [id]
        printed = shop.run() if ended else []
        with shop.worker("tasks:outbox"):
            eventually(lambda: handed_on(outbox))
        assert [job.id for job in app.jobs()] == [id]
        assert printed + shop.run() == ["receipt for order 7"]


def test_jobs_wait_in_the_outbox_while_redis_is_away(tmp_path: Path, database: str) -> None:
    from redis_servers import serving

    with serving() as server, Rota(database) as outbox, Rota(server.url()) as app:
        shop = Shop(tmp_path, database, server.url())
        server.stop()
        id = shop.order("commit")
        with shop.worker("tasks:outbox"):
            eventually(lambda: outbox.get(id).attempts())
            server.start()
            eventually(lambda: handed_on(outbox))
        assert [job.id for job in app.jobs()] == [id]


def test_what_redis_lost_is_handed_on_again_and_the_rest_left_alone(tmp_path: Path, database: str, redis_url: str) -> None:
    shop = Shop(tmp_path, database, redis_url)
    lost, kept = shop.order("commit"), shop.order("commit")
    with Rota(database) as outbox, Rota(redis_url) as app:
        with shop.worker("tasks:outbox"):
            eventually(lambda: handed_on(outbox))
        app.delete(lost)
        assert shop.run() == ["receipt for order 7"]
        before = app.get(kept).row
        shop.hand_on_again()
        assert not handed_on(outbox)
        with shop.worker("tasks:outbox"):
            eventually(lambda: handed_on(outbox))
        assert (app.get(lost).status, app.get(kept).row) == (State.QUEUED, before)


def handed_on(outbox: Rota) -> bool:
    return all(job.status is State.SUCCEEDED for job in outbox.jobs())


def _kill_where_it_stands_still(shop: Shop, app: str) -> None:
    with shop.worker(app) as worker:
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED)
        worker.kill()
