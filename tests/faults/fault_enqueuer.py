"""Enqueue single jobs for so many seconds, a dozen at least, and say which and how long the longest took; one for no seconds.

It may be told when to begin, and the task's name."""

from __future__ import annotations

import json
import os
import sys
import time

from rota import Rota

if __name__ == "__main__":
    if len(sys.argv) > 2:
        time.sleep(max(0.0, float(sys.argv[2]) - time.time()))
    task = sys.argv[3] if len(sys.argv) > 3 else "quick"
    ids: list[str] = []
    longest = 0.0
    seconds = float(sys.argv[1])
    least = 12 if seconds else 1
    end = time.monotonic() + seconds
    with Rota(os.environ["FAULT_URL"]) as app:
        while len(ids) < least or time.monotonic() < end:
            before = time.monotonic()
            ids.append(app.send(task).id)
            longest = max(longest, time.monotonic() - before)
            time.sleep(0.005)
    print(json.dumps({"ids": ids, "longest": longest}))
