"""What the documentation tells people to do works when it is done: the README's queue, and the rights of a Postgres role."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
import pytest

from rota import Rota, State, StoreError
from rota.stores import open_store

if TYPE_CHECKING:
    from servers import PostgresServer

ROOT = Path(__file__).parents[2]
SOON = 60.0


def test_the_readmes_queue_runs_as_written(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    [tasks] = re.findall(r"```python\n(# tasks\.py\n.*?)```", readme, re.DOTALL)
    [enqueue] = re.findall(r'^\$ python -c "(.*)"$', readme, re.MULTILINE)
    [worker] = re.findall(r"^\$ (rota worker .*) &(?: +#.*)?$", readme, re.MULTILINE)
    [said] = re.findall(r"^receipt .*$", readme, re.MULTILINE)
    assert len([line for line in tasks.splitlines() if line.strip()]) <= 10
    (tmp_path / "tasks.py").write_text(tasks)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environment.pop("ROTA_URL", None)
    output = tmp_path / "output"
    with output.open("w") as to:
        command = [sys.executable, "-m", *worker.split()]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=to, stderr=subprocess.DEVNULL)
    try:
        subprocess.run([sys.executable, "-c", enqueue], cwd=tmp_path, env=environment, check=True, timeout=SOON)
        end, pause = monotonic() + SOON, Event()
        while said not in output.read_text().splitlines():
            assert process.poll() is None, "the worker ended"
            assert monotonic() < end, "the job did not run"
            pause.wait(0.05)
    finally:
        process.terminate()
        assert process.wait(SOON) == 0


def test_a_role_with_the_documented_rights_can_work_and_cannot_make_tables(postgres_server: PostgresServer) -> None:
    guide = (ROOT / "docs" / "migrating.md").read_text("utf-8")
    [grants] = re.findall(r"```sql\n(.*?)```", guide, re.DOTALL)
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as owner:
        owner_name = owner.info.user
        as_shop, reader = _as_role(url, "shop"), _as_role(url, "monitor")
        owner.execute("create role shop login")
        owner.execute("create role monitor login")
        try:
            _migrate(f"{url}{'&' if '?' in url else '?'}schema=jobs")
            for grant in grants.replace("role owner", f'role "{owner_name}"').split(";"):
                if grant.strip():
                    owner.execute(grant.encode())
            owner.execute("grant usage on schema jobs to monitor")
            owner.execute("grant select on all tables in schema jobs to monitor")
            _work(as_shop)
            with Rota(reader, schema="jobs") as app:
                assert app.stats().states[State.SUCCEEDED] == 1
            elsewhere = open_store(as_shop, schema="elsewhere")
            with pytest.raises(StoreError, match="run `rota migrate` as a user who may"):
                elsewhere.open()
            elsewhere.close()
        finally:
            for role in ("shop", "monitor"):
                owner.execute(f"drop owned by {role} cascade".encode())
                owner.execute(f"drop role {role}".encode())


def _as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}@{host}", query=urlencode(parse_qsl(parts.query), quote_via=quote)))


def _migrate(url: str) -> None:
    store = open_store(url)
    assert store.migrate()
    store.close()


def _work(url: str) -> None:
    with Rota(url, schema="jobs") as app:

        @app.task(name="greet")
        def greet(name: str) -> None: ...

        job = greet.using(delay=0).enqueue("Ada")
        greet.using(key="x", delay=3600).enqueue("Bo").cancel()
        assert [str(event) for event in app.drain()] == ["ran greet"]
        assert job.refresh().status is State.SUCCEEDED
        app.purge(cancelled=0)
