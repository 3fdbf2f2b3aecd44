"""The shop's tasks. A worker runs them with `rota worker --app rota.demo.tasks:app`."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from rota import Abandon, Rota, current_job
from rota.demo.effects import recorded

app = Rota()  # where ROTA_URL says


@app.task(name="demo.send_mail", queue="demo-mail")
def send_mail(order: int) -> None:
    """Confirm an order: a mail server that takes its time."""
    with recorded():
        time.sleep(0.03)


@app.task(name="demo.express_mail", queue="demo-mail", priority=100)
def express_mail(order: int) -> None:
    """Confirm an express order: it overtakes every other mail that waits."""
    with recorded():
        time.sleep(0.02)


@app.task(name="demo.print_receipt", queue="demo-office", keep_result=True)
def print_receipt(order: int, cents: int) -> str:
    with recorded():
        return f"order {order}: {cents / 100:.2f}"


@app.task(name="demo.make_thumbnail", queue="demo-photos")
async def make_thumbnail(photo: str) -> None:
    """A coroutine: many of them wait at once."""
    with recorded():
        await asyncio.sleep(0.2)


@app.task(name="demo.build_report", queue="demo-office")
def build_report(month: str, steps: int) -> None:
    """Long work that says how far it is, and that asks whether it should stop."""
    job = current_job()
    with recorded():
        for step in range(steps):
            if job.should_stop:
                return
            job.progress(step, steps, month)
            time.sleep(0.1)
        job.progress(steps, steps, month)


@app.task(name="demo.tell_partner", queue="demo-office", max_attempts=3, retry=[0.4, 0.8])
def tell_partner(order: int, bad_days: int) -> None:
    """A partner that is slow and refuses the first `bad_days` attempts."""
    job = current_job()
    with recorded():
        time.sleep(0.15)
        if job.attempt <= bad_days:
            raise ConnectionError(f"the partner answers 503 for order {order}")


@app.task(name="demo.refund", queue="demo-office")
def refund(order: int) -> None:
    """Gives up at once when no further attempt could help."""
    with recorded():
        raise Abandon(f"order {order} was refunded before")


@app.task(name="demo.remind", queue="demo-mail")
def remind(customer: str) -> None:
    """Enqueued with a delay."""
    with recorded():
        time.sleep(0.01)


@app.task(name="demo.count_stock", queue="demo-office")
def count_stock(article: str) -> None:
    """Enqueued with a key: while one waits for an article, asking again adds none."""
    with recorded():
        time.sleep(0.02)


@app.task(name="demo.crash", queue="demo-risky", max_attempts=2)
def crash() -> None:
    """Kills the process that runs it, as a fault in a C library or the system's memory guard would."""
    with recorded():
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        time.sleep(60)
