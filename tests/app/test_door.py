"""The door for coroutines: those that enqueue together share transactions, and no trouble of one is another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar

import pytest

from rota import Rota, StoreUnavailable
from rota.door import Door
from rota.ids import new_id
from rota.model import Inserted, NewJob


class Counter:
    """Takes jobs in like a store, keeps the sizes of the groups they came in, and can be held up and told to refuse."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.free = threading.Event()
        self.free.set()
        self.reached = threading.Event()
        self.refuses: Callable[[Sequence[NewJob]], BaseException | None] = lambda jobs: None

    def insert(self, jobs: Sequence[NewJob]) -> list[Inserted]:
        self.reached.set()
        assert self.free.wait(30)
        self.groups.append(len(jobs))
        if error := self.refuses(jobs):
            raise error
        return [Inserted(job.id) for job in jobs]


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
def door(counter: Counter) -> Iterator[Door]:
    door = Door(counter.insert)
    yield door
    counter.free.set()
    door.close()


def jobs(number: int = 1, task: str = "t") -> list[NewJob]:
    return [NewJob(new_id(), task, "default", "{}") for _ in range(number)]


async def until_reached(counter: Counter) -> None:
    """Wait until a group is on its way into the store."""
    await asyncio.to_thread(counter.reached.wait, 30)


def test_those_that_wait_together_share_a_transaction_and_each_gets_its_own(door: Door, counter: Counter) -> None:
    async def main() -> None:
        counter.free.clear()
        first = asyncio.create_task(door.insert(jobs()))
        await until_reached(counter)
        given = [jobs(1 + number % 3) for number in range(32)]
        others = [asyncio.create_task(door.insert(each)) for each in given]
        await asyncio.sleep(0)
        counter.free.set()
        await first
        for each, answer in zip(given, await asyncio.gather(*others), strict=True):
            assert [job.id for job in each] == [put.id for put in answer]

    asyncio.run(main())
    assert counter.groups == [1, sum(1 + number % 3 for number in range(32))]


def test_a_large_group_goes_in_several_transactions(door: Door, counter: Counter) -> None:
    async def main() -> None:
        counter.free.clear()
        waiting = [asyncio.create_task(door.insert(jobs(400))) for _ in range(8)]
        await until_reached(counter)
        counter.free.set()
        await asyncio.gather(*waiting)

    asyncio.run(main())
    assert sum(counter.groups) == 3_200
    assert max(counter.groups) <= 1_400


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1)], ids=repr)
def test_a_job_that_is_refused_does_not_fail_its_neighbours(door: Door, counter: Counter, error: BaseException) -> None:
    async def main() -> list[object]:
        counter.free.clear()
        first = asyncio.create_task(door.insert(jobs()))
        await until_reached(counter)
        counter.refuses = lambda group: error if any(job.task == "bad" for job in group) else None
        waiting = [asyncio.create_task(_caught(door, jobs(task=task))) for task in ("good", "bad", "good")]
        await asyncio.sleep(0)
        counter.free.set()
        await first
        return await asyncio.gather(*waiting)

    good, bad, also_good = asyncio.run(main())
    assert (type(good), bad, type(also_good)) == (list, error, list)
    assert counter.groups == [1, 3, 1, 1, 1]


async def _caught(door: Door, given: list[NewJob]) -> object:
    """What became of it, with an error as a value: one that ends a program would end the loop."""
    try:
        return await door.insert(given)
    except BaseException as error:
        return error


def test_an_absent_store_is_told_to_all_at_once(door: Door, counter: Counter) -> None:
    counter.refuses = lambda group: StoreUnavailable("away")

    async def main() -> None:
        for answer in await asyncio.gather(*(door.insert(jobs()) for _ in range(10)), return_exceptions=True):
            assert isinstance(answer, StoreUnavailable)

    asyncio.run(main())
    assert sum(counter.groups) == 10


def test_a_caller_that_is_cancelled_leaves_the_others_alone(door: Door, counter: Counter) -> None:
    async def main() -> None:
        counter.free.clear()
        cancelled, stays = (asyncio.create_task(door.insert(jobs())) for _ in range(2))
        await until_reached(counter)
        cancelled.cancel()
        counter.free.set()
        assert len(await stays) == 1
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(main())


def test_a_loop_that_was_closed_meanwhile_harms_nobody(door: Door, counter: Counter) -> None:
    async def abandon() -> None:
        counter.free.clear()
        task = asyncio.create_task(door.insert(jobs()))
        await until_reached(counter)
        task.cancel()

    asyncio.run(abandon())
    counter.free.set()
    assert len(asyncio.run(door.insert(jobs()))) == 1


def test_several_loops_use_it_at_once(door: Door, counter: Counter) -> None:
    together = threading.Barrier(4)
    answers: list[int] = []

    def run() -> None:
        async def main() -> None:
            together.wait()
            for put in await asyncio.gather(*(door.insert(jobs()) for _ in range(50))):
                answers.append(len(put))  # noqa: PERF401

        asyncio.run(main())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1] * 200
    assert sum(counter.groups) == 200


def test_what_waits_is_inserted_before_it_closes_and_it_opens_again(door: Door, counter: Counter) -> None:
    async def main() -> None:
        counter.free.clear()
        waiting = [asyncio.create_task(door.insert(jobs())) for _ in range(5)]
        await until_reached(counter)
        closing = asyncio.create_task(asyncio.to_thread(door.close))
        counter.free.set()
        assert len(await asyncio.gather(*waiting)) == 5
        await closing
        assert len(await door.insert(jobs())) == 1
        assert await door.run(lambda: 7) == 7

    asyncio.run(main())


def test_nobody_is_left_waiting_by_a_close(door: Door) -> None:
    async def main() -> None:
        ended = asyncio.Event()

        async def keep_closing() -> None:
            while not ended.is_set():
                await asyncio.to_thread(door.close)

        closing = asyncio.create_task(keep_closing())
        for _ in range(100):
            both = asyncio.gather(door.insert(jobs()), door.run(lambda: 7))
            await asyncio.wait_for(both, 30)
        ended.set()
        await closing

    asyncio.run(main())


def test_a_call_sees_its_callers_context(door: Door) -> None:
    seen: ContextVar[str] = ContextVar("seen")

    async def main() -> str:
        seen.set("mine")
        return await door.run(seen.get)

    assert asyncio.run(main()) == "mine"


def test_an_error_of_a_call_reaches_its_caller(door: Door) -> None:
    def call() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        asyncio.run(door.run(call))


# -- on each store ------------------------------------------------------------------------------


def test_many_callers_share_few_transactions_on_every_store(app: Rota) -> None:
    groups: list[int] = []
    insert = app._desk.door._insert

    def counted(given: Sequence[NewJob]) -> list[Inserted]:
        groups.append(len(given))
        return insert(given)

    app._desk.door._insert = counted

    async def caller() -> set[str]:
        return {(await app.asend("t")).id for _ in range(10)}

    async def main() -> set[str]:
        return set().union(*await asyncio.gather(*(caller() for _ in range(32))))

    app.send("t")
    assert len(asyncio.run(main())) == 320
    assert sum(groups) == 320
    assert len(groups) < 160


def test_callers_with_one_key_at_the_same_moment_make_one_job(app: Rota) -> None:
    async def main() -> None:
        task = app.named("t").using(key="k")
        jobs = await asyncio.gather(*(task.aenqueue() for _ in range(32)))
        assert len({job.id for job in jobs}) == 1
        assert sum(not job.existed for job in jobs) == 1

    asyncio.run(main())
