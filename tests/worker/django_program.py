"""A worker whose bodies use Django's connection, with the hook of the guide; its sessions are ended in between."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import django
import psycopg
from django.conf import settings
from django.db import connection

from rota import CurrentJob, Rota
from rota.worker import Worker

url, kind, with_hook = sys.argv[1], sys.argv[2], sys.argv[3] == "hook"
parts = urlsplit(url)
database = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": parts.path.strip("/"),
    "USER": parts.username,
    "HOST": parse_qs(parts.query)["host"][0],
    "CONN_MAX_AGE": None if kind == "lasting" else 0,
    "CONN_HEALTH_CHECKS": kind == "lasting",
}
settings.configure(DATABASES={"default": database})
django.setup()

app = Rota(os.environ["ROTA_URL"])
if with_hook:
    guide = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text("utf-8")
    [hook] = re.findall(r"```python\n(from django\.db import close_old_connections\n.*?)```", guide, re.DOTALL)
    exec(hook, {"app": app, "CurrentJob": CurrentJob, "Iterator": Iterator})


@app.task(keep_result=True, max_attempts=1)
def session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


def is_open(admin: psycopg.Connection[tuple[object, ...]], pid: int) -> bool:
    """Whether the session is there, and stays there where it should be gone: the server notices its end a moment later."""
    end = time.monotonic() + (10 if with_hook and kind == "short" else 0)
    while admin.execute("select 1 from pg_stat_activity where pid = %s", [pid]).fetchone():
        if time.monotonic() > end:
            return True
    return False


worker = Worker(app, concurrency=1)
worker.start()
try:
    with psycopg.connect(url, autocommit=True) as admin:
        for _ in range(3):
            job = session.enqueue().wait(timeout=30)
            print(job.status, flush=True)
            if job.status == "succeeded":
                pid = job.result()
                print("open" if is_open(admin, pid) else "closed", flush=True)
                admin.execute("select pg_terminate_backend(%s, 5000)", [pid])
finally:
    worker.stop()
    app.close()
