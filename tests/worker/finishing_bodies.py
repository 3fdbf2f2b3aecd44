"""Tasks that finish their jobs themselves, in processes of their own."""

from __future__ import annotations

import os
import time

from effects import note_effect, transaction
from rota import Rota, current_job

app = Rota("sqlite:///never")


def _pay(url: str) -> None:
    app.url = url  # the process that imports this knows nothing of the test
    with transaction(url) as own:
        note_effect(own, current_job().id)
        current_job().finish_within(own, result=7)


@app.task(name="pay", isolated=True, keep_result=True)
def pay(url: str) -> int:
    _pay(url)
    return 8


@app.task(name="pay_and_fail", isolated=True, keep_result=True, retry=0)
def pay_and_fail(url: str) -> int:
    _pay(url)
    raise ValueError("late")


@app.task(name="pay_and_leave", isolated=True, keep_result=True, retry=0)
def pay_and_leave(url: str) -> int:
    _pay(url)
    os._exit(3)


@app.task(name="pay_and_hang", isolated=True, keep_result=True, retry=0, timeout=1.0)
def pay_and_hang(url: str) -> int:
    _pay(url)
    while True:
        time.sleep(0.01)
