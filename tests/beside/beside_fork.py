"""Forks with a worker beside it. The child starts one of its own when it is told to, and says who is at work."""

from __future__ import annotations

import os
import sys

from beside_tasks import app, deliver

worker = app.beside(queues=["mail"])
with worker:
    while not any(row.asleep for row in app.workers()):
        pass
    child = os.fork()
    if child == 0:
        print("in the child:", worker.alive, flush=True)
        if "start" in sys.argv:
            worker.start()
            names = [row.pid for row in app.workers()]
            while os.getpid() not in names:
                names = [row.pid for row in app.workers()]
            worker.stop()
            print("started in the child", flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print("in the parent:", worker.alive, deliver.enqueue("Ada").wait(30).status, flush=True)
sys.exit(os.waitstatus_to_exitcode(status))
