"""The app: what users hold. It registers tasks, takes jobs in, and looks at and changes what its store has.

It is long because each operation has its parameters, its promise and its example here; what they do is done elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from rota import operate
from rota.block import Block
from rota.clock import Clock, Micros, moment, span
from rota.codec.wire import brief
from rota.desk import StoreDesk, in_pool
from rota.errors import ConfigError, JobNotFound, NotSupported
from rota.events import Event
from rota.handle import Job, not_found
from rota.holding import Holding
from rota.hooks import AroundHook, FailureHook, Hooks, StartHook, SuccessHook, When
from rota.model import Changed, Migration, Move, State, WorkerRow
from rota.operate import Stats, Tell, Where
from rota.options import Options, OwnConnection, check_attempts, check_flag, check_name, check_priority, check_queues, edit_of
from rota.rules.retry import DEFAULT, policy_of
from rota.settings import DAY, MAX_PAYLOAD, ages, settings
from rota.stores.base import Store
from rota.task import NamedTask, Task, TaskDecorator, check_function, declarations, name_of
from rota.twins import twin

if TYPE_CHECKING:  # loaded where they are used: a worker is to stay small
    from contextlib import AbstractAsyncContextManager
    from contextvars import ContextVar

    from rota.beside import Beside, BesideOptions
    from rota.carrying import Carried
    from rota.inline import Work
    from rota.lifespan import Lifespan
    from rota.limiting import Limiting
    from rota.queues import Queue
    from rota.rules.explain import Explanation
    from rota.rules.health import Problem
    from rota.rules.limits import ConcurrencyOption, Declared, RateOption
    from rota.rules.rooms import Room

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Rota:
    """An app on a store.

    `url` says where jobs are kept: `sqlite:///jobs.db` (three slashes: relative to the current directory), `sqlite:////var/jobs.db`,
    `postgresql://user@host/database`, `redis://host:6379/0`, `memory://`; without it `ROTA_URL` is read, and without that
    `sqlite:///rota.db` is used. Further keywords go to the store, for example `schema="jobs"` on Postgres. Nothing is opened
    before the first use.

    - `keep_succeeded`, `keep_failed`, `keep_cancelled`: how long finished jobs stay to be looked at (seconds or `timedelta`;
      `None`: for ever; `0`: deleted as they finish). By default a day, for ever, and a week.
    - `max_payload`: the most bytes that a job's arguments may weigh.
    - `clock`: answers the moment to use in place of the store's clock, for tests.
    - `eager`: run each job at its enqueue, in the caller, without the store.
    - `context`: the context variables whose values go along with each job, from where it is enqueued to its body.

    >>> app = Rota("memory://")
    >>> @app.task
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> job = add.enqueue(1, 2)
    >>> str(app.run_one())
    'ran rota.app.add'
    >>> job.refresh().status
    <State.SUCCEEDED: 'succeeded'>
    >>> app.close()
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        keep_succeeded: float | timedelta | None = DAY,
        keep_failed: float | timedelta | None = None,
        keep_cancelled: float | timedelta | None = 7 * DAY,
        max_payload: int = MAX_PAYLOAD,
        clock: Clock | None = None,
        eager: bool = False,
        context: Sequence[ContextVar[Any]] = (),
        **store_options: Any,
    ) -> None:
        url = _url(url)
        if clock is not None and not callable(clock):
            raise ConfigError(f"clock={clock!r}: pass a function that answers an aware datetime")
        check_flag("eager", eager)
        self.settings = settings(keep_succeeded, keep_failed, keep_cancelled, max_payload)
        self.max_payload = max_payload
        self.clock = clock
        self.eager = eager
        self.carried = _carried(context) if context else None
        """The context variables that go along with jobs; `None` where none was declared."""
        self.tasks: dict[str, Task[..., Any, Any]] = {}
        """Every declared task by its name."""
        self.hooks = Hooks()
        self.limiting: Limiting | None = None
        """The limits of the tasks, for claims; `None` while no task has any."""
        self.holding = Holding(url, store_options)
        """Its store, which is opened when it is first needed."""
        self._desk = StoreDesk(self)

    # -- tasks ----------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        max_attempts: int = 5,
        retry: object = DEFAULT,
        timeout: float | timedelta | None = None,
        keep_result: bool = False,
        isolated: bool = False,
        concurrency: ConcurrencyOption | None = None,
        rate: RateOption | None = None,
    ) -> TaskDecorator: ...
    def task(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        max_attempts: int = 5,
        retry: object = DEFAULT,
        timeout: float | timedelta | None = None,
        keep_result: bool = False,
        isolated: bool = False,
        concurrency: ConcurrencyOption | None = None,
        rate: RateOption | None = None,
    ) -> Any:
        """Declare a function as a task, as `@app.task` or with options as `@app.task(queue="mail")`.

        - `name`: how jobs refer to it; its module and name by default.
        - `queue`, `priority` (larger first), `max_attempts`: what its jobs start with.
        - `retry`: the wait before the next attempt: a policy of `rota.retries`, seconds, a list of seconds, a function of
          `(attempt, error)`, a dict by exception class, or `None` for no retries. By default attempt⁴ + 2 seconds.
        - `timeout`: seconds that a body may run.
        - `keep_result`: store what it returns, for `job.result()`.
        - `isolated`: run it in a process of its own, which a time-out or a cancel can kill.
        - `concurrency`: how many of its jobs run at once, counted over all workers; a number, a `Limit` or a list of these.
        - `rate`: how often one starts, such as `"10/m"`, evenly spaced, over all workers; text, a `Limit` or a list of these.

        Raises `ConfigError` for an option that cannot be right and for a name that is taken.
        """
        options = Options(
            queue=check_name("queue", queue), priority=check_priority(priority), max_attempts=check_attempts(max_attempts)
        )
        policy = policy_of(retry)
        limit = None if timeout is None else span(timeout, "timeout")
        if limit == 0:
            raise ConfigError(f"timeout={timeout!r}: no body could run; leave the timeout out for no limit")
        if name is not None:
            check_name("task", name)
        check_flag("keep_result", keep_result)
        check_flag("isolated", isolated)

        def declare(function: Callable[..., Any]) -> Task[..., Any, Any]:
            from rota.attempt import is_coroutine_function

            check_function(function)
            called = check_name("task", name_of(function) if name is None else name)
            task: Task[..., Any, Any] = Task(
                self._desk,
                function,
                called,
                options,
                policy=policy,
                timeout=limit,
                keep_result=keep_result,
                isolated=isolated,
                is_coroutine=is_coroutine_function(function),
                limits=_limits(called, function, concurrency, rate),
            )
            self._register(task)
            return task

        return declare if function is None else declare(function)

    def named(self, name: str) -> NamedTask:
        """A task by its name alone, for a process without its code: `using` and `enqueue` work on it.

        What its declaration says of queue, priority and attempts is used where a worker has told the store of it.
        """
        return NamedTask(self._desk, name)

    def within(self, connection: OwnConnection) -> Block:
        """A block in which every job of this app is enqueued on this connection of your own, as with `using(connection=…)`.

        `with app.within(connection):`, or `async with` for one that is awaited. It holds in this thread and in coroutines that
        start inside, and until its end. It neither begins nor ends a transaction; nest it in your own.

        >>> import sqlite3
        >>> app = Rota("sqlite:///shop.db")
        >>> made = app.migrate()
        >>> shop = sqlite3.connect("shop.db")
        >>> with shop, app.within(shop):
        ...     job = app.send("shop.send_receipt", 42)
        >>> job.status
        <State.QUEUED: 'queued'>
        >>> shop.close()
        >>> app.close()
        """
        from rota.within import check_known

        check_known(connection)
        return Block(self._desk, connection)

    def send(self, name: str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Enqueue a task by its name: short for `app.named(name).enqueue(…)`."""
        return self.named(name).enqueue(*args, **kwargs)

    async def asend(self, name: str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        return await self.named(name).aenqueue(*args, **kwargs)

    def declare(self) -> None:
        """Tell the store the declared defaults of every task, as a worker does when it starts."""
        self.store.declare(declarations(self.tasks.values()))

    adeclare = twin(declare)

    def _register(self, task: Task[..., Any, Any]) -> None:
        if task.name in self.tasks:
            raise ConfigError(
                f"two tasks are named {task.name}: {self.tasks[task.name].function!r} and {task.function!r}; "
                'give one of them another name with @app.task(name="…")'
            )
        if task.isolated:
            from rota.isolation import check_isolated

            check_isolated(task)
        if task.limits:
            if self.limiting is None:
                from rota.limiting import Limiting

                self.limiting = Limiting()
            self.limiting.add(task)
        self.tasks[task.name] = task

    # -- hooks ----------------------------------------------------------------------------------

    def on_start(self, function: StartHook) -> StartHook:
        """Have the function called with the job before each body, where the body runs and within its `around` hooks.

        It may be a coroutine function, and its time is part of the body's. `@task.on_start` does this for one task alone, as
        the other hooks have it too. What a hook raises is logged and concerns no job.

        >>> app = Rota("memory://")
        >>> @app.on_start
        ... def note(job):
        ...     print("attempt", job.attempt, "with", job.arguments)
        >>> @app.task
        ... def greet(name: str) -> None: ...
        >>> job = greet.enqueue("Ada")
        >>> _ = app.run_one()
        attempt 1 with {'name': 'Ada'}
        >>> app.close()
        """
        return self.hooks.add(When.START, function)

    def around(self, function: AroundHook) -> AroundHook:
        """Have the generator function run around each body: the body runs at its one `yield`, which raises what the body does.

        It runs in the body's thread, or on its loop, or in its process, and in its context: the body sees the context variables
        that it sets. An asynchronous generator function may be used too. The first to be registered is the outermost.
        The body runs whatever becomes of it, and the body's end stands.

        >>> app = Rota("memory://")
        >>> @app.around
        ... def framed(job):
        ...     print("before", job.attempt)
        ...     try:
        ...         yield
        ...     finally:
        ...         print("after")
        >>> @app.task
        ... def greet(name: str) -> None:
        ...     print("hello,", name)
        >>> job = greet.enqueue("Ada")
        >>> _ = app.run_one()
        before 1
        hello, Ada
        after
        >>> app.close()
        """
        return self.hooks.add(When.AROUND, function)

    def on_success(self, function: SuccessHook) -> SuccessHook:
        """Have the function called with the job and its result after each success, once that is recorded.

        The result is what `job.result()` answers, and `None` for a task that keeps none. A worker calls it in a thread of its
        own, one call after the other. It is called once at the most: not where the worker is killed after the record.

        >>> app = Rota("memory://")
        >>> @app.on_success
        ... def note(job, result):
        ...     print(job.task, "answered", result)
        >>> @app.task(name="add", keep_result=True)
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> job = add.enqueue(1, 2)
        >>> _ = app.run_one()
        add answered 3
        >>> app.close()
        """
        return self.hooks.add(When.SUCCESS, function)

    def on_failure(self, function: FailureHook) -> FailureHook:
        """Have the function called with the job and a `FailedAttempt` after each attempt that failed, once that is recorded.

        `failure.final` says whether the job has failed for good. It hears of time-outs, of tasks that nobody knows and of lost
        workers as well, of these by the worker that took the job back; not of jobs that were cancelled, snoozed or handed back.
        It is called as `on_success` is.

        >>> app = Rota("memory://")
        >>> @app.on_failure
        ... def alert(job, failure):
        ...     if failure.final:
        ...         print(job.task, "failed for good:", failure.reason)
        >>> @app.task(name="charge", max_attempts=1)
        ... def charge() -> None:
        ...     raise ConnectionError("the bank does not answer")
        >>> job = charge.enqueue()
        >>> _ = app.run_one()
        charge failed for good: the bank does not answer
        >>> app.close()
        """
        return self.hooks.add(When.FAILURE, function)

    # -- working jobs right here ----------------------------------------------------------------

    def run_one(self, queues: Sequence[str] | None = None, now: datetime | None = None) -> Event | None:
        """Claim and run one due job of these queues (`None`: of all) in the caller and say what happened.

        Answers `None` when nothing is due. The `str` of the answer is a line such as `ran greet` or
        `failed broken on attempt 1: it broke`. The claim holds for five minutes.

        `now` is the moment by which jobs are due, and at which they are said to run. Whether a worker is alive it does not say:
        leases, the claim's included, go by the app's `clock` or the store's, and jobs are taken back only from workers that
        are lost by that. What is due by `now` is queued, so with a later moment live workers may take it early.
        A job that a limit of its task holds is not due.
        """
        from rota import inline

        return inline.run_one(self._work(queues, now))

    async def arun_one(self, queues: Sequence[str] | None = None, now: datetime | None = None) -> Event | None:
        return await in_pool(lambda: self.run_one(queues, now))

    def drain(self, queues: Sequence[str] | None = None, now: datetime | None = None) -> list[Event]:
        """Run every due job of these queues in the caller, one after the other, and say what happened to each.

        Jobs that become due meanwhile are among them, so those that the bodies enqueue. `now` is as in `run_one`.
        Nothing waits for a limit: under a rate one job starts, and the others stay held until the clock has moved on.
        """
        from rota import inline

        return inline.drain(self._work(queues, now))

    async def adrain(self, queues: Sequence[str] | None = None, now: datetime | None = None) -> list[Event]:
        return await in_pool(lambda: self.drain(queues, now))

    def _work(self, queues: Sequence[str] | None, now: datetime | None) -> Work:
        from rota import inline

        moments = inline.Moments(self.now, _chosen(now))
        restore = None if self.carried is None else self.carried.unpack
        return inline.Work(
            self.store, self.tasks, check_queues(queues), self.settings.kept, moments, self.hooks, self.limiting, restore
        )

    # -- a worker in this process ---------------------------------------------------------------

    def beside(self, **options: Unpack[BesideOptions]) -> Beside:
        """A worker beside whatever else this process does, for a `with` or `async with` block: see `Beside` for the options.

        >>> app = Rota("memory://")
        >>> with app.beside(queues=["mail"]):
        ...     pass  # serve
        >>> app.close()
        """
        from rota.beside import Beside

        return Beside(self, **options)

    def lifespan(
        self,
        inner: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
        *,
        worker: bool = False,
        **options: Unpack[BesideOptions],
    ) -> Lifespan:
        """This app's life in an ASGI server: `Starlette(lifespan=app.lifespan(worker=True))`, and so with FastAPI.

        `inner` is a lifespan that exists already; it is entered first and left last, and what it yields is passed on. With
        `worker` a worker is at work meanwhile, `beside(**options)`; without, the store is opened at the start. Either way the
        loop is never held up, and the app is closed at the end. For an application of no framework see `Lifespan.asgi`.
        """
        from rota.lifespan import Lifespan

        check_flag("worker", worker)
        if options and not worker:
            raise ConfigError(f"lifespan({', '.join(f'{name}=…' for name in options)}) is for a worker: add worker=True")
        return Lifespan(self, inner, (lambda: self.beside(**options)) if worker else None)

    # -- looking --------------------------------------------------------------------------------

    def get(self, id: str) -> Job[Any]:
        """The job with this id. Raises `JobNotFound`."""
        if self.eager:
            raise JobNotFound(f"no job {brief(id)}: eager mode keeps none; use the one that enqueue answered")
        rows = self._desk.rows([id])
        if not rows:
            raise not_found(id)
        return Job(self._desk, id, rows[0])

    aget = twin(get)

    def jobs(
        self,
        *,
        status: str | Sequence[str] = (),
        queue: str | None = None,
        task: str | None = None,
        key: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Job[Any]]:
        """Jobs, the newest first. For the next page pass the last one's id as `before`.

        Raises `ConfigError` for a status that does not exist, and for a queue that has no job and that nobody serves.
        """
        rows = operate.find(self.store, operate.where(status, queue, task, key), limit, before, self._queues())
        return [Job(self._desk, row.id, row) for row in rows]

    ajobs = twin(jobs)

    def stats(self) -> Stats:
        """How many jobs there are in each state, by queue and task, how long the oldest waits, and who works."""
        return operate.stats(self.store, self.now())

    astats = twin(stats)

    def check(self, max_wait: float | timedelta | None = None, max_pause: float | timedelta | None = None) -> list[Problem]:
        """What is wrong: leases that ran out, jobs that no live worker knows or serves, and due jobs that wait too long.

        That jobs of a paused queue wait is no problem; that it has been paused for longer than `max_pause` is one.
        """
        longest = None if max_wait is None else span(max_wait, "max_wait")
        return operate.check(self.store, longest, self.now(), None if max_pause is None else span(max_pause, "max_pause"))

    acheck = twin(check)

    def queues(self) -> list[Queue]:
        """Each queue by name: how many unfinished jobs it has in each state, since when the first waits, and its pause.

        Reads every unfinished job, and no finished one.
        """
        from rota.queues import queues

        return queues(self.store, self._queues(), self.now())

    aqueues = twin(queues)

    def workers(self) -> list[WorkerRow]:
        """The workers that the store knows, oldest first."""
        return self.store.workers()

    aworkers = twin(workers)

    def explain(self, id: str) -> Explanation:
        """Why this job is not running, or where it runs, or how it ended; see `Job.explain`. Raises `JobNotFound`."""
        return self.get(id).explain()

    aexplain = twin(explain)

    def limits(self) -> list[Room]:
        """Each room of each limit: what is declared and set, how many run in it, how many it holds, and whether it is full.

        A limit with keys has a room for each key that a job was under lately. Those of other apps on the same store are among
        them, without what their code says.
        """
        from rota.rooms import rooms

        return rooms(self.store, self.limiting, self.now())

    alimits = twin(limits)

    # -- changing -------------------------------------------------------------------------------

    def cancel(self, id: str) -> State:
        """Cancel one job and answer where that left it; see `Job.cancel`."""
        return Job[Any](self._desk, id).cancel()

    acancel = twin(cancel)

    def retry(self, id: str) -> Job[Any]:
        """Queue one job to run now, with all of its attempts before it; see `Job.retry`."""
        return Job[Any](self._desk, id).retry()

    aretry = twin(retry)

    def delete(self, id: str) -> None:
        """Remove one job from the store; see `Job.delete`."""
        Job[Any](self._desk, id).delete()

    adelete = twin(delete)

    def edit(
        self,
        id: str,
        *,
        priority: int | None = None,
        queue: str | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
    ) -> Job[Any]:
        """Change the priority, the queue or the due time of one job that waits; see `Job.edit`."""
        return Job[Any](self._desk, id).edit(priority=priority, queue=queue, delay=delay, run_at=run_at)

    aedit = twin(edit)

    def change(self, move: Move, ids: Sequence[str]) -> list[Changed]:
        """Cancel, retry or delete these jobs in one transaction and say what became of each, in the order asked."""
        return self._desk.change(move, ids)

    achange = twin(change)

    def change_all(self, move: Move, where: Where, tell: Tell = operate.untold, before: str | None = None) -> list[Changed]:
        """Cancel, retry or delete every job that `where` (of `rota.operate.where`) names, in steps of 500.

        Each step is a transaction, the newest jobs first; jobs enqueued since it began stay as they are. `tell` hears a
        `rota.operate.Step` after each. With its `last` as `before`, a change that was interrupted goes on where it was. The
        answer holds those that changed.
        """
        return operate.change_all(self.store, move, where, self.settings.kept, self.now(), tell, self._queues(), before)

    achange_all = twin(change_all)

    def edit_all(
        self,
        where: Where,
        tell: Tell = operate.untold,
        before: str | None = None,
        *,
        priority: int | None = None,
        queue: str | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
    ) -> list[Changed]:
        """Edit every waiting job that `where` names, as `Job.edit` does, in steps as `change_all` takes them."""
        wanted = edit_of(queue, priority, delay, run_at)
        return operate.edit_all(self.store, wanted, where, self.now(), tell, self._queues(), before)

    aedit_all = twin(edit_all)

    def pause(self, queue: str, until: datetime | timedelta | float | None = None, by: str | None = None) -> None:
        """Have workers leave the jobs of a queue alone: until a moment, for a span, or until `resume`.

        Running jobs go on, jobs may be enqueued, and what is due waits. Every worker heeds it within about a second; until it
        has heard, it may take jobs. `run_one`, `drain` and workers beside a program heed it too. A pause ends by the store's
        clock. A queue may be paused before it has jobs. `by` says who did it, for those who look. A second pause takes the
        place of the first. Raises `ConfigError` for a moment that is past.
        """
        from rota.queues import pause

        pause(self.store, queue, until, by, self.now())

    apause = twin(pause)

    def resume(self, queue: str) -> bool:
        """End the pause of a queue, and answer whether it was paused. Sleeping workers are woken at once."""
        from rota.queues import resume

        return resume(self.store, queue, self.now())

    aresume = twin(resume)

    def set_limit(self, name: str, size: int | str | None) -> None:
        """Have a size outweigh what the code says of this limit, on all workers at once and until it is cleared with `None`.

        It is how many at once, as a number or in text, or a rate such as `"10/m"`, as the limit itself is. Raises `ConfigError`
        for another kind, and for a name that neither this app's code nor the store knows.
        """
        from rota.rooms import set_size

        set_size(self.store, self.limiting, name, size, self.now())

    aset_limit = twin(set_limit)

    def purge(self, /, **keep: float | timedelta | None) -> dict[State, int]:
        """Delete finished jobs whose time in the history ended, and answer how many of each state.

        By default the app's own `keep_…` settings count; `purge(failed=86400)` names others, by state.
        """
        return operate.purge(self.store, ages(keep) if keep else self.settings.ages, self.now())

    apurge = twin(purge)

    def purgeable(self, /, **keep: float | timedelta | None) -> dict[State, int]:
        """How many finished jobs of each state `purge` would delete now."""
        return self.store.prunable(ages(keep) if keep else self.settings.ages, self.now())

    apurgeable = twin(purgeable)

    # -- the store ------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the store is. Another counts from the next time that it is opened."""
        return self.holding.url

    @url.setter
    def url(self, url: str) -> None:
        self.holding.url = url

    @property
    def store(self) -> Store:
        """The store, opened: its tables are made where they are missing. In eager mode there is none: `NotSupported`."""
        if self.eager:
            raise NotSupported("eager mode has no store: use the job that enqueue answered, or an app without eager=True")
        return self.holding.open()

    def migrate(self) -> list[str]:
        """Make the store's tables or bring them to this version, and answer the names of the migrations that ran.

        The first use of an app does the same; a deploy may want it done before.
        """
        with self.holding.at_hand() as store:
            return store.migrate()

    amigrate = twin(migrate)

    def pending(self) -> list[Migration]:
        """The migrations that `migrate` would run, in order, and what each means for processes that run. Changes nothing.

        Raises `SchemaMismatch` where a newer Rota made the store's tables such that this one cannot use them.
        """
        with self.holding.at_hand() as store:
            return store.pending()

    apending = twin(pending)

    def there(self) -> bool:
        """Whether the store's tables are there. Makes nothing, where any other use would make them."""
        if self.holding.is_open:
            return True
        with self.holding.at_hand() as store:
            return store.there()

    athere = twin(there)

    def schema(self) -> list[tuple[str, str]]:
        """The name and the SQL of each step that makes the store's tables from nothing. The store is not touched."""
        return self.holding.unopened().schema()

    def now(self) -> Micros | None:
        """The moment that the app's clock tells, or `None` for the store's own."""
        return None if self.clock is None else moment(self.clock(), "clock")

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await self._desk.in_thread(call)

    def _queues(self) -> set[str]:
        """The queues that tasks declared here name."""
        return {task.options.queue for task in self.tasks.values()}

    def close(self) -> None:
        """Give back connections and threads. The app may be used again afterwards."""
        self._desk.door.close()
        self.holding.close()

    async def aclose(self) -> None:
        await in_pool(self.close)

    def __enter__(self) -> Rota:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Rota:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _limits(
    task: str, function: Callable[..., Any], concurrency: ConcurrencyOption | None, rate: RateOption | None
) -> tuple[Declared, ...]:
    if concurrency is None and rate is None:
        return ()
    from rota.limiting import declared_limits

    return declared_limits(task, function, concurrency, rate)


def _carried(variables: Sequence[ContextVar[Any]]) -> Carried:
    from rota.carrying import Carried

    return Carried(variables)


def _chosen(now: datetime | None) -> Micros | None:
    return None if now is None else moment(now, "now")


def _url(url: str | None) -> str:
    if url is not None and not isinstance(url, str):
        raise ConfigError(f"url={url!r}: pass text, for example 'sqlite:///jobs.db'")
    return url if url is not None else os.environ.get("ROTA_URL") or "sqlite:///rota.db"
