"""What type checkers must refuse. Each line that ends in `# wrong` is an error, and no other line is."""

from __future__ import annotations

from rota import Rota

app = Rota("memory://")


@app.task
def plain(order_id: int, note: str = "") -> str:
    return f"{order_id}{note}"


@app.task(queue="reports")
async def build(tenant_id: int) -> bytes:
    return bytes(tenant_id)


def sync_use() -> None:
    plain.enqueue("one")  # wrong
    plain.enqueue()  # wrong
    plain.enqueue(1, note=2)  # wrong
    plain.enqueue(1, other="x")  # wrong
    plain.using(delay=60).enqueue("one")  # wrong
    plain.using(prioritee=1)  # wrong
    plain.using(delay="soon")  # wrong
    build.enqueue("seven")  # wrong
    number: int = build.enqueue(7).result()  # wrong
    print(number)


async def async_use() -> None:
    await plain.aenqueue("one")  # wrong
    await build.using(priority=1).aenqueue(tenant=7)  # wrong
    text: str = await (await build.aenqueue(7)).aresult()  # wrong
    print(text)
