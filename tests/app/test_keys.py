"""Of one key a task has at most one unfinished job, and every road to its end frees the key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.conftest import Clock
from app.words import claimed
from rota import Abandon, Job, MoveRefused, Rota, State


@pytest.fixture
def pay(clocked: Rota) -> Callable[..., None]:
    """A task whose body does what its argument says."""

    @clocked.task(name="pay", max_attempts=2)
    def pay(do: str = "return") -> None:
        match do:
            case "raise":
                raise ValueError("no money")
            case "abandon":
                raise Abandon("refunded")

    return pay


def put(app: Rota, *args: str, **options: object) -> Job[object]:
    return app.named("pay").using(**{"key": "order:1", **options}).enqueue(*args)  # type: ignore[arg-type]


@pytest.mark.usefixtures("pay")
class TestOneKey:
    def test_a_second_job_of_the_key_is_the_first(self, clocked: Rota) -> None:
        first, second = put(clocked), put(clocked, "raise", priority=5)
        assert (first.existed, second.existed, second.id) == (False, True, first.id)
        assert second.priority == 0
        assert len(clocked.jobs()) == 1

    def test_each_task_has_keys_of_its_own(self, clocked: Rota) -> None:
        assert put(clocked).id != clocked.named("other").using(key="order:1").enqueue().id

    def test_a_key_counts_across_queues(self, clocked: Rota) -> None:
        assert put(clocked, queue="fast").id == put(clocked, queue="slow").id

    def test_a_key_counts_while_the_job_runs(self, clocked: Rota) -> None:
        job = put(clocked)
        claimed(clocked)
        again = put(clocked)
        assert (again.id, again.existed, again.status) == (job.id, True, State.RUNNING)

    def test_a_key_counts_between_attempts(self, clocked: Rota) -> None:
        job = put(clocked, "raise")
        clocked.run_one()
        assert job.refresh().status is State.SCHEDULED
        assert put(clocked).existed

    def test_a_key_until_started_is_free_once_the_job_runs(self, clocked: Rota) -> None:
        job = put(clocked, key_until="started")
        assert put(clocked, key_until="started").id == job.id
        claimed(clocked)
        following = put(clocked, key_until="started")
        assert (following.existed, following.status) == (False, State.QUEUED)

    def test_a_job_whose_key_was_taken_meanwhile_is_tried_again_all_the_same(self, clocked: Rota, clock: Clock) -> None:
        first = put(clocked, "raise", key_until="started")
        claimed(clocked, seconds=30)
        second = put(clocked, key_until="started")
        clock.forward(31)  # the worker is lost, and its job goes back beside the one that has the key now
        happened = [str(event) for event in clocked.drain()]
        clock.forward(3600)
        happened += [str(event) for event in clocked.drain()]
        assert happened == ["failed pay on attempt 2: no money", "ran pay"]
        assert (first.refresh().status, second.refresh().status) == (State.FAILED, State.SUCCEEDED)

    def test_a_failing_job_whose_key_was_taken_meanwhile_waits_for_its_next_attempt(self, clocked: Rota, clock: Clock) -> None:
        first = put(clocked, "raise", key_until="started")
        clocked.run_one()
        second = put(clocked, "raise", key_until="started")
        assert not second.existed
        clock.forward(3600)
        clocked.drain()
        clock.forward(3600)
        clocked.drain()
        assert (first.refresh().status, second.refresh().status) == (State.FAILED, State.FAILED)

    def test_a_retry_by_hand_is_refused_while_another_job_has_the_key(self, clocked: Rota) -> None:
        first = put(clocked, "abandon")
        clocked.drain()
        put(clocked)
        with pytest.raises(MoveRefused, match="is failed and cannot be retried: another unfinished job has its key"):
            first.retry()
        assert first.refresh().status is State.FAILED

    def test_a_retry_by_hand_takes_the_key_again(self, clocked: Rota) -> None:
        first = put(clocked, "abandon")
        clocked.drain()
        first.retry()
        assert put(clocked).id == first.id

    def test_a_kept_result_does_not_hold_the_key(self, clocked: Rota) -> None:
        first = put(clocked)
        clocked.drain()
        again = put(clocked)
        assert (first.refresh().status, again.existed) == (State.SUCCEEDED, False)


def _succeeds(app: Rota, clock: Clock) -> None:
    put(app)
    app.drain()


def _fails_for_good(app: Rota, clock: Clock) -> None:
    put(app, "raise")
    app.drain()
    clock.forward(3600)
    app.drain()


def _is_abandoned(app: Rota, clock: Clock) -> None:
    put(app, "abandon")
    app.drain()


def _is_cancelled_while_queued(app: Rota, clock: Clock) -> None:
    put(app).cancel()


def _is_cancelled_while_scheduled(app: Rota, clock: Clock) -> None:
    put(app, delay=60).cancel()


def _is_cancelled_while_running(app: Rota, clock: Clock) -> None:
    job = put(app)
    worker, _ = claimed(app)
    job.cancel()
    app.store.leave(worker, app.now())


def _is_deleted(app: Rota, clock: Clock) -> None:
    put(app).delete()


def _is_pruned(app: Rota, clock: Clock) -> None:
    _is_abandoned(app, clock)
    clock.forward(1)
    app.purge(failed=0)


def _is_lost_on_its_last_attempt(app: Rota, clock: Clock) -> None:
    put(app, max_attempts=1)
    claimed(app, seconds=30)
    clock.forward(31)
    app.drain()


ROADS = (
    _succeeds,
    _fails_for_good,
    _is_abandoned,
    _is_cancelled_while_queued,
    _is_cancelled_while_scheduled,
    _is_cancelled_while_running,
    _is_deleted,
    _is_pruned,
    _is_lost_on_its_last_attempt,
)


@pytest.mark.usefixtures("pay")
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__[1:])
def test_the_key_is_free_once_the_job(clocked: Rota, clock: Clock, road: Callable[[Rota, Clock], None]) -> None:
    road(clocked, clock)
    job = put(clocked)
    assert (job.existed, job.status) == (False, State.QUEUED)
