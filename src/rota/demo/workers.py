"""The demo's worker processes: started, restarted when one dies, and listened to through what they log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec

_RESTART_AFTER = 0.3


@dataclass
class Place:
    """One worker's place: its process now, and how often that had to be replaced."""

    name: str
    options: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    died_at: float | None = None
    how: str = ""
    """How the last process ended."""


PLACES = (
    ("front", ("--queues", "demo-mail,demo-photos", "--concurrency", "12", "--lease", "10s")),
    ("office", ("--queues", "demo-office,demo-mail", "--concurrency", "8", "--lease", "10s")),
    # What may bring its process down has a worker of its own, so that no other job is with it in there.
    ("risky", ("--queues", "demo-risky", "--concurrency", "1", "--lease", "1.5s")),
)


@dataclass
class Workers:
    """Three workers. Use it as a context: they end with it."""

    environment: dict[str, str]
    places: list[Place] = field(default_factory=lambda: [Place(name, options) for name, options in PLACES])
    told: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=20_000))
    """What they logged and nobody took yet, oldest first: the fields of each line of JSON."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many outcomes of each kind they told of."""

    def __enter__(self) -> Workers:
        for place in self.places:
            self._start(place)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def look(self) -> list[Place]:
        """Note which processes died, start those anew whose time has come, and return the places that changed."""
        changed = []
        now = time.monotonic()
        for place in self.places:
            if place.died_at is None and place.process is not None and place.process.poll() is not None:
                place.died_at = now
                place.how = _manner(place.process.returncode)
                changed.append(place)
            elif place.died_at is not None and now - place.died_at >= _RESTART_AFTER:
                place.died_at = None
                place.restarts += 1
                self._start(place)
                changed.append(place)
        return changed

    def stop(self) -> None:
        """End them as a deploy would, and those that do not end in time by force."""
        processes = [place.process for place in self.places if place.process is not None]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 5
        for process in processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, place: Place) -> None:
        command = [sys.executable, "-m", "rota", "worker", "--app", "rota.demo.tasks:app", "--name", place.name]
        command += [*place.options, "--poll", "1s", "--shutdown-timeout", "2s", "--log-format", "json"]
        environment = {name: value for name, value in os.environ.items() if name != "ROTA_APP"} | self.environment
        place.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert place.process.stderr is not None
        threading.Thread(
            target=self._listen, args=(place.name, place.process.stderr), name="demo-listener", daemon=True
        ).start()

    def _listen(self, name: str, lines: IO[bytes]) -> None:
        with lines:
            for line in lines:
                try:
                    told = msgspec.json.decode(line)
                except msgspec.DecodeError:
                    told = {"level": "error", "message": line.decode(errors="backslashreplace").rstrip()}
                told["worker"] = name
                if "event" in told:
                    self.kinds[told["event"]] += 1
                self.told.append(told)


def _manner(code: int) -> str:
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
