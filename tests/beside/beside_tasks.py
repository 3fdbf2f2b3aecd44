"""The app of the programs here."""

from __future__ import annotations

import os
import threading

from rota import Rota

app = Rota(os.environ["BESIDE_URL"])


@app.task(name="deliver", queue="mail")
def deliver(to: str) -> None:
    if to == "nobody":
        raise ValueError("nobody lives there")


@app.task(name="linger", queue="mail")
def linger(seconds: float) -> None:
    print("a body has begun", flush=True)
    threading.Event().wait(seconds)
