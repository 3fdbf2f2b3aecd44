"""The app of the programs here."""

from __future__ import annotations

import os
import threading
import time

from rota import Rota, current_job

app = Rota(os.environ["BESIDE_URL"])


@app.task(name="deliver", queue="mail")
def deliver(to: str) -> None:
    if to == "nobody":
        raise ValueError("nobody lives there")


@app.task(name="linger", queue="mail")
def linger(seconds: float) -> None:
    print("a body has begun", flush=True)
    end, pause, asked = time.monotonic() + seconds, threading.Event(), False
    while time.monotonic() < end:
        if not asked and current_job().should_stop:
            asked = True
            print("a body was asked to stop", flush=True)
        pause.wait(0.02)
