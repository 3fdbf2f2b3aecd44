"""Many threads and processes that enqueue one key at the same moment make one job."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from rota import Rota

THREADS, PROCESSES, ROUNDS = 20, 4, 10


def test_threads_that_enqueue_one_key_at_once_make_one_job(app: Rota) -> None:
    together = threading.Barrier(THREADS)

    def race(round_: int) -> tuple[str, bool]:
        together.wait()
        job = app.named("once").using(key=f"round {round_}").enqueue()
        return job.id, job.existed

    with ThreadPoolExecutor(THREADS) as pool:
        for round_ in range(ROUNDS):
            answers = list(pool.map(race, [round_] * THREADS))
            assert len({id for id, _ in answers}) == 1
            assert sum(not existed for _, existed in answers) == 1


RACER = """
import sys, threading
from rota import Rota

url, threads, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
app = Rota(url)
app.store
together = threading.Barrier(threads)
said = threading.Lock()

def race():
    for round_ in range(rounds):
        together.wait()
        job = app.named("once").using(key=f"round {round_}").enqueue()
        with said:
            print(round_, job.id, job.existed)

print("ready", flush=True)
sys.stdin.readline()
runners = [threading.Thread(target=race) for _ in range(threads)]
for runner in runners: runner.start()
for runner in runners: runner.join()
app.close()
"""


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_processes_of_threads_that_enqueue_one_key_at_once_make_one_job(store_url: str) -> None:
    command = [sys.executable, "-c", RACER, store_url, str(THREADS), str(ROUNDS)]
    pipe = subprocess.PIPE
    racers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(PROCESSES)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    answers = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        out, err = racer.communicate(timeout=60)
        assert (racer.returncode, err) == (0, "")
        answers += [line.split() for line in out.splitlines()]

    assert len(answers) == THREADS * PROCESSES * ROUNDS
    new = Counter(round_ for round_, _, existed in answers if existed == "False")
    assert new == {str(round_): 1 for round_ in range(ROUNDS)}
    assert len({(round_, id) for round_, id, _ in answers}) == ROUNDS
    with Rota(store_url) as app:
        assert app.stats().states["queued"] == ROUNDS
