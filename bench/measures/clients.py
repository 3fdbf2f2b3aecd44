"""Eight processes enqueue one by one while a worker is busy, against the same inserts without any notification in them."""

from __future__ import annotations

from bench.contenders import Contender
from bench.session import Measure, Session, is_rota, rate
from bench.workers import Run, collect

CLIENTS = 8


def together(run: Run, command: str, jobs: int) -> float:
    """Jobs a second of eight clients that start together."""
    clients = [run.start(command, jobs) for _ in range(CLIENTS)]
    for client in clients:
        if client.stdout:
            client.stdout.readline()
    for client in clients:
        if client.stdin:
            client.stdin.write("\n")
            client.stdin.flush()
    return rate([answer for client in clients for answer in collect(client, command)])


def act(session: Session, contender: Contender) -> None:
    jobs = session.size(500, 100)
    kinds = [("enqueue", "clients"), ("enqueue_silently", "clients silent")]
    for command, figure in (*kinds, *reversed(kinds)):  # whoever comes first finds the server's caches colder
        with session.run(contender) as run:
            # A backlog of short sleeps: the worker never gets to rest, and leaves the processor to the clients.
            run.answers("naps", 20_000)
            with run.workers() as processes:
                run.first_start(processes)
                session.note(contender, figure, together(run, command, jobs))


MEASURE = Measure("clients", act, lambda contender: is_rota(contender) and contender.store == "postgres")
