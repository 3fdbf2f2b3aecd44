"""What type checkers must refuse. Each line that ends in `# wrong` is an error, and no other line is."""

from __future__ import annotations

from rota import CurrentJob, Job, Limit, Retry, Rota

app = Rota("memory://")


@app.task
def plain(order_id: int, note: str = "") -> str:
    return f"{order_id}{note}"


@app.task(queue="reports")
async def build(tenant_id: int) -> bytes:
    return bytes(tenant_id)


@app.task(concurrency="2")  # wrong
def at_once() -> None: ...


@app.task(rate=10)  # wrong
def often() -> None: ...


@app.task(concurrency=[2, "10/m"])  # wrong
def both() -> None: ...


@app.task(concurrency=2)
def limited(tenant_id: int) -> None:
    raise Retry(after=30, limit=7)  # wrong


@app.on_start  # wrong
def no_job() -> None: ...


@app.on_failure  # wrong
def no_failure(job: CurrentJob) -> None: ...


@app.on_failure  # wrong
def another_failure(job: CurrentJob, failure: str) -> None: ...


@app.around  # wrong
def no_generator(job: CurrentJob) -> None: ...


@plain.on_success  # wrong
def of_a_job_from_outside(job: Job[str], result: str) -> None: ...


def sync_use() -> None:
    limited.enqueue("one")  # wrong
    Limit(2, name=7)  # wrong
    Limit(2, key="tenant_id")  # wrong
    Limit(2.5)  # wrong
    plain.enqueue("one")  # wrong
    plain.enqueue()  # wrong
    plain.enqueue(1, note=2)  # wrong
    plain.enqueue(1, other="x")  # wrong
    plain.using(delay=60).enqueue("one")  # wrong
    plain.using(prioritee=1)  # wrong
    plain.using(delay="soon")  # wrong
    build.enqueue("seven")  # wrong
    plain.using(connection="sqlite:///jobs.db")  # wrong
    plain.using(connection=7)  # wrong
    app.within("postgresql://localhost/jobs")  # wrong
    app.beside(queue="mail")  # wrong
    app.beside(concurrency="four")  # wrong
    app.lifespan(worker=True, polls=1)  # wrong
    number: int = build.enqueue(7).result()  # wrong
    print(number)


async def async_use() -> None:
    await plain.aenqueue("one")  # wrong
    await build.using(priority=1).aenqueue(tenant=7)  # wrong
    text: str = await (await build.aenqueue(7)).aresult()  # wrong
    print(text)
