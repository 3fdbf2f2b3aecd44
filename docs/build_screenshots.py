"""Draw the picture of `rota top` in the documentation anew, from a worker that really works.

    .venv/bin/python docs/build_screenshots.py

A small shop works for a few seconds on a store in a temporary file, and one look at it is drawn as it would be on a terminal.
"""

from __future__ import annotations

import logging
import os
import random
import re
import tempfile
import time
from pathlib import Path

from rich.console import Console

from rota import Abandon, Rota, current_job
from rota.cli.glance import look
from rota.cli.top import frame
from rota.worker import Worker

PICTURE = Path(__file__).parent / "images" / "top.svg"
SIZE = (90, 27)
"""The columns and lines of the terminal that is drawn."""
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def shop(app: Rota) -> None:
    """Tasks of a shop, and jobs for them."""

    @app.task(name="shop.send_receipt", queue="mail")
    def send_receipt(order: int) -> None:
        time.sleep(random.uniform(0.01, 0.05))  # noqa: S311

    @app.task(name="shop.build", queue="reports", concurrency=2)
    def build(tenant: int) -> None:
        for page in range(40):
            current_job().progress(page, 40, "pages")
            time.sleep(0.1)

    @app.task(name="shop.charge", max_attempts=1)
    def charge(card: int) -> None:
        raise Abandon(f"card {card} was declined")

    charge.enqueue_many([(card,) for card in range(3)])
    build.enqueue_many([(tenant,) for tenant in range(9)])
    send_receipt.enqueue_many([(order,) for order in range(1_500)])
    send_receipt.using(queue="newsletters").enqueue_many([(order,) for order in range(40)])
    send_receipt.using(queue="newsletters", delay=3600).enqueue_many([(order,) for order in range(120)])
    app.pause("newsletters", until=600, by="Ada")


def draw(app: Rota) -> str:
    """One look at the app as a picture."""
    width, height = SIZE
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=width, height=height, file=nowhere, force_terminal=True)
        console.print(frame(look(app, 5.0), width, height))
        # Without fonts from elsewhere, so that to look at it asks nobody for anything.
        return _FONTS.sub("", console.export_svg(title="rota top", unique_id="top"))


def main() -> None:
    logging.getLogger("rota").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with Rota("sqlite:///shop.db") as app:
            shop(app)
            workers = [Worker(app, concurrency=4, name=name, shutdown_timeout=1.0) for name in ("web-1", "web-2")]
            for worker in workers:
                worker.start()
            time.sleep(4)
            picture = draw(app)
            for worker in workers:
                worker.stop()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture, "utf-8")


if __name__ == "__main__":
    main()
