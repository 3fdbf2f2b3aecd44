"""A job finished on a connection of somebody else's: the fence, and who waits for the transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from effects import Connection, connect
from rota import LeaseLost, MoveRefused
from rota.model import Ended, Move, Report, Settled, State, Succeeded
from rota.stores import open_store
from rota.stores.base import Store
from rota.stores.finishing import finish_steps
from rota.testing.contract.scene import LEASE, NOW, OUTCOMES, change, claim, finish, join, new, put, row, running, state
from rota.within import blocking, work
from servers import PostgresServer
from working import eventually

NONE: frozenset[str] = frozenset()


@pytest.fixture
def store_url(shared_url: str) -> str:
    return shared_url


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[tuple[Store, Connection]]:
    with postgres_server.schema() as url:
        store = open_store(url)
        store.open()
        own = connect(url)
        yield store, own
        own.close()
        store.close()


@pytest.fixture
def own(store_url: str, store: Store) -> Iterator[Connection]:
    """A connection of a body's own; `store` has made the file by now."""
    connection = connect(store_url)
    yield connection
    connection.close()


def finish_on(own: Connection, store: Store, worker: str, id: str, number: int = 1) -> None:
    end = Ended(id, number, Succeeded('"paid"'), took=5)
    work(store, blocking(own, "finish_within"), finish_steps(worker, end, None, NOW))


def test_the_commit_finishes_the_job(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker, key="k")
    finish_on(own, store, worker, job.id)
    assert state(store, job.id) is State.RUNNING
    own.commit()
    kept = row(store, job.id)
    assert (kept.state, kept.result, kept.took, kept.worker, kept.finished_at) == (State.SUCCEEDED, '"paid"', 5, worker, NOW)
    assert [put.existed for put in put(store, new(key="k"))] == [False]
    assert store.finish_after(worker, [Ended(job.id, 1, OUTCOMES["failed"])], now=NOW).done == {job.id}
    assert not finish(store, worker, job, OUTCOMES["failed"])


def test_a_rollback_leaves_the_job_running(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    before = row(store, job.id)
    finish_on(own, store, worker, job.id)
    own.rollback()
    assert row(store, job.id) == before
    assert store.finish_after(worker, [Ended(job.id, 1, OUTCOMES["again"])], now=NOW).counted == {job.id}


def test_a_savepoint_that_is_rolled_back_leaves_the_job_running(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    own.execute("begin" if own.__class__.__module__.startswith("sqlite3") else "select 1")
    own.execute("savepoint inner_one")
    finish_on(own, store, worker, job.id)
    own.execute("rollback to savepoint inner_one")
    finish_on(own, store, worker, job.id)
    own.execute("rollback to savepoint inner_one")
    own.commit()
    assert state(store, job.id) is State.RUNNING


@pytest.mark.parametrize("became", ["queued again", "claimed again", "finished by another", "failed", "gone"])
def test_a_stale_claim_is_refused(store: Store, own: Connection, became: str) -> None:
    stale = join(store)
    job = running(store, stale, max_attempts=1 if became == "failed" else 5)
    store.lost(10, now=NOW + LEASE)
    fresh = join(store, now=NOW + LEASE)
    if became in ("claimed again", "finished by another"):
        (taken,) = claim(store, fresh, now=NOW + LEASE)
        if became == "finished by another":
            assert finish(store, fresh, taken, Succeeded(), now=NOW + LEASE)
    if became == "gone":
        change(store, Move.DELETE, job.id)
    before = store.get([job.id])
    with pytest.raises(LeaseLost, match=r"is not this attempt's any more \(claim 1\): its lease was lost, and it is"):
        finish_on(own, store, stale, job.id)
    own.rollback()
    assert store.get([job.id]) == before


def test_the_same_worker_cannot_finish_a_former_claim_of_its_own(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    finish(store, worker, job, OUTCOMES["released"])
    claim(store, worker)
    with pytest.raises(LeaseLost):
        finish_on(own, store, worker, job.id, 1)
    own.rollback()
    finish_on(own, store, worker, job.id, 2)
    own.commit()
    assert state(store, job.id) is State.SUCCEEDED


def test_a_lease_that_ran_out_counts_while_nobody_took_the_job(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    finish_on(own, store, worker, job.id)
    own.commit()
    assert store.lost(10, now=NOW + LEASE).lost == []
    assert (state(store, job.id), store.workers()) == (State.SUCCEEDED, [])


def test_a_job_that_someone_asked_to_cancel_is_finished_all_the_same(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    change(store, Move.CANCEL, job.id)
    finish_on(own, store, worker, job.id)
    own.commit()
    assert state(store, job.id) is State.SUCCEEDED


def test_a_second_finish_is_told_from_a_lost_lease(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    finish_on(own, store, worker, job.id)
    with pytest.raises(MoveRefused, match="has been finished by this attempt already"):
        finish_on(own, store, worker, job.id)
    own.commit()
    with pytest.raises(MoveRefused, match="has been finished by this attempt already"):
        finish_on(own, store, worker, job.id)
    own.rollback()
    assert state(store, job.id) is State.SUCCEEDED


def test_a_second_finish_is_one_also_where_the_job_was_retried_by_hand(store: Store, own: Connection) -> None:
    worker = join(store)
    job = running(store, worker)
    finish_on(own, store, worker, job.id)
    own.commit()
    for retried in (lambda: change(store, Move.RETRY, job.id), lambda: claim(store, worker)):
        retried()
        with pytest.raises(MoveRefused, match="has been finished by this attempt already"):
            finish_on(own, store, worker, job.id)
        own.rollback()
    assert state(store, job.id) is State.RUNNING


# -- nobody waits: on Postgres, for a SQLite file has but one writer -----------------------------


def test_nothing_that_a_worker_does_waits_for_the_transaction(postgres: tuple[Store, Connection]) -> None:
    store, own = postgres
    worker = join(store)
    job, beside = running(store, worker), running(store, worker)
    finish_on(own, store, worker, job.id)
    assert store.finish_after(worker, [Ended(job.id, 1, OUTCOMES["again"])], now=NOW) == Settled(
        NONE, NONE, frozenset({job.id})
    )
    reports = [Report(job.id, 1, "[1,2]"), Report(beside.id, 1, "[1,2]")]
    assert store.beat(worker, reports, now=NOW).lost == NONE
    assert (row(store, job.id).progress, row(store, beside.id).progress) == (None, "[1,2]")
    store.reconcile(worker, [job.id, beside.id], now=NOW)
    assert [lost.id for lost in store.lost(10, now=NOW + LEASE).lost] == [beside.id]
    assert {each.id for each in store.workers()} == {worker}  # it is looked at again, until the transaction has ended
    store.leave(worker, now=NOW + LEASE)
    assert {each.id for each in store.workers()} == {worker}
    own.rollback()
    assert [lost.id for lost in store.lost(10, now=NOW + 2 * LEASE).lost] == [job.id]
    assert store.workers() == []


def test_a_cancel_waits_for_the_commit_and_comes_too_late(postgres: tuple[Store, Connection]) -> None:
    store, own = postgres
    worker = join(store)
    job = running(store, worker)
    finish_on(own, store, worker, job.id)
    answers: list[State | None] = []
    cancel = threading.Thread(target=lambda: answers.append(change(store, Move.CANCEL, job.id).after))
    cancel.start()
    eventually(lambda: waiting_for_a_lock(own))
    own.commit()
    cancel.join(10)
    assert answers == [State.SUCCEEDED]


def waiting_for_a_lock(own: Connection) -> bool:
    [[count]] = own.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock'").fetchall()
    return bool(count)


@pytest.mark.parametrize("winner", ["the reaper", "the body"])
def test_of_a_body_and_a_reaper_one_gets_the_job(store: Store, own: Connection, winner: str) -> None:
    """Whoever comes first keeps the other from it."""
    worker = join(store)
    job = running(store, worker)
    steps: list[Callable[[], object]] = [
        lambda: store.lost(10, now=NOW + LEASE),
        lambda: (finish_on(own, store, worker, job.id), own.commit()),
    ]
    first, second = steps if winner == "the reaper" else steps[::-1]
    first()
    if winner == "the reaper":
        with pytest.raises(LeaseLost):
            second()
        own.rollback()
    else:
        second()
    assert state(store, job.id) is (State.QUEUED if winner == "the reaper" else State.SUCCEEDED)
