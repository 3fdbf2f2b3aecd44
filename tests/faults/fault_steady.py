"""Enqueue one job after the other until SIGTERM, and write down each that the store took; wait where it is away."""

from __future__ import annotations

import os
import signal
import threading

from rota import Rota
from rota.errors import StoreUnavailable

if __name__ == "__main__":
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    away = False
    with Rota(os.environ["FAULT_URL"]) as app:
        while not ended.wait(0.002):
            try:
                job = app.send("quick").id
            except StoreUnavailable:
                away = True
                continue
            if away:
                print("again", flush=True)
                away = False
            print(job, flush=True)
