"""Who is measured, and in which settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ADAPTERS = Path(__file__).parent / "adapters"


@dataclass(frozen=True)
class Contender:
    """A job queue on one store. Its adapter script and its tasks are one file."""

    name: str
    store: str
    adapter: str
    worker: tuple[str, ...]
    """Its worker command. `{bin}` stands for its environment's programs."""
    unfinished: str
    """A query that is true while a job waits or runs; on Redis a script."""
    settings: str
    package: str
    """What is imported, and whose version is printed."""
    needs: tuple[str, ...] = ()
    """What its environment is made of; nothing for Rota, which runs in the environment of the bench."""
    once_queued: tuple[str, ...] = ()
    """Statements that help it along, run between queueing the jobs and starting the workers."""
    asynchronous: bool = True
    bulk: bool = True
    slow: bool = False
    """Whether it gets fewer jobs: it would fill most of a run."""
    rounds: int = 99
    """In how many rounds it takes part at the most, so that a run ends in time."""

    @property
    def environment(self) -> str:
        return self.package


ROTA_UNFINISHED = {
    "redis": """
        for _, name in ipairs(redis.call('hkeys', '{rota}:counts')) do
            if not string.find(name, '%zsucceeded$') then return 1 end
        end
        return 0
    """
}
ROTA_UNFINISHED["postgres"] = ROTA_UNFINISHED["sqlite"] = "select exists (select 1 from rota_jobs)"


def rota(store: str) -> Contender:
    return Contender(
        name="rota",
        store=store,
        adapter="peer_rota",
        worker=("{bin}/python", "-m", "rota", "worker", "--app", "peer_rota:app", "--log-level", "warning"),
        unfinished=ROTA_UNFINISHED[store],
        settings="8 slots, plain functions as bodies, --log-level warning: no line for each success",
        package="rota",
        rounds=2 if store == "redis" else 99,
    )


HUEY_UNFINISHED = "select exists (select 1 from {table})"
HUEY_NEEDS = ("huey", "psycopg[binary]", "redis[hiredis]")
"""One environment for all of its stores."""
TASKIQ_UNFINISHED = """
    local group = redis.call('xinfo', 'groups', 'taskiq')[1]
    for at = 1, #group, 2 do
        if (group[at] == 'lag' or group[at] == 'pending') and group[at + 1] ~= 0 then return 1 end
    end
    return 0
"""
"""Jobs that the stream's consumers have not read, or not acknowledged."""

CONTENDERS = (
    rota("postgres"),
    Contender(
        name="pgqueuer",
        store="postgres",
        adapter="peer_pgqueuer",
        worker=("{bin}/pgq", "run", "peer_pgqueuer:factory", "--batch-size", "200"),
        unfinished="select exists (select from pgqueuer)",
        settings="asyncpg, uvloop, --batch-size 200, coroutines as bodies",
        package="pgqueuer",
        # Its command fails with typer 0.28 and newer: "'str' object has no attribute 'name'".
        needs=("pgqueuer[asyncpg]", "typer<0.28"),
    ),
    Contender(
        name="huey",
        store="postgres",
        adapter="peer_huey",
        worker=("{bin}/huey_consumer", "peer_huey.huey", "-w", "1", "-q", "-n"),
        unfinished=HUEY_UNFINISHED.format(table="huey_task"),
        settings="PostgresHuey, one thread, no results, no periodic tasks",
        package="huey",
        needs=HUEY_NEEDS,
        asynchronous=False,
        bulk=False,
        slow=True,
        rounds=2,
    ),
    Contender(
        name="procrastinate",
        store="postgres",
        adapter="peer_procrastinate",
        worker=("{bin}/procrastinate", "--app", "peer_procrastinate.app", "worker", "--concurrency", "10"),
        unfinished="select exists (select from procrastinate_jobs where status in ('todo', 'doing'))",
        settings="psycopg, --concurrency 10, coroutines as bodies, tables analyzed",
        package="procrastinate",
        needs=("procrastinate", "psycopg[binary]"),
        # With statistics its claims are up to twice as fast; the others gain nothing from them.
        once_queued=("analyze",),
        slow=True,
        rounds=1,
    ),
    rota("sqlite"),
    Contender(
        name="huey",
        store="sqlite",
        adapter="peer_huey",
        worker=("{bin}/huey_consumer", "peer_huey.huey", "-w", "1", "-q", "-n"),
        unfinished=HUEY_UNFINISHED.format(table="task"),
        settings="SqliteHuey, one thread, no results, no periodic tasks, synchronous=full (its default, as Rota's enqueue)",
        package="huey",
        needs=HUEY_NEEDS,
        asynchronous=False,
        bulk=False,
        slow=True,
        rounds=2,
    ),
    Contender(
        name="tinyjobs",
        store="sqlite",
        adapter="peer_tinyjobs",
        worker=("{bin}/tinyjobs", "worker", "--app", "peer_tinyjobs:app", "--concurrency", "50", "--log-level", "WARNING"),
        unfinished="select exists (select 1 from jobs where status in ('queued', 'running'))",
        settings="--concurrency 50, coroutines as bodies, synchronous=normal (its own choice)",
        package="tinyjobs",
        needs=("tinyjobs",),
        bulk=False,
        slow=True,
        rounds=2,
    ),
    rota("redis"),
    Contender(
        name="dramatiq",
        store="redis",
        adapter="peer_dramatiq",
        worker=("env", "dramatiq_queue_prefetch=200", "{bin}/dramatiq", "peer_dramatiq", "--processes", "1", "--threads", "1"),
        unfinished="return redis.call('exists', 'dramatiq:default.msgs')",
        settings="one process, one thread, dramatiq_queue_prefetch=200, default middleware, hiredis",
        package="dramatiq",
        needs=("dramatiq[redis]", "redis[hiredis]"),
        asynchronous=False,
        bulk=False,
        slow=True,
        rounds=2,
    ),
    Contender(
        name="taskiq",
        store="redis",
        adapter="peer_taskiq",
        worker=("{bin}/taskiq", "worker", "peer_taskiq:broker", "--workers", "1", "--log-level", "WARNING"),
        unfinished=TASKIQ_UNFINISHED,
        settings="RedisStreamBroker, one process, coroutines as bodies, acknowledged when run, no results, uvloop, hiredis",
        package="taskiq",
        needs=("taskiq[uv]", "taskiq-redis", "redis[hiredis]"),
        bulk=False,
        slow=True,
        rounds=2,
    ),
    Contender(
        name="huey",
        store="redis",
        adapter="peer_huey",
        worker=("{bin}/huey_consumer", "peer_huey.huey", "-w", "1", "-q", "-n"),
        unfinished="return redis.call('exists', 'huey.redis.huey')",
        settings="RedisHuey, one thread, blocking pop, no results, no periodic tasks, hiredis",
        package="huey",
        needs=HUEY_NEEDS,
        asynchronous=False,
        bulk=False,
        slow=True,
        rounds=2,
    ),
)
