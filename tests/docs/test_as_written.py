"""What the documentation tells people to do works when it is done: the README's queue, and the rights of users of servers."""

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

import rota
from redis_servers import serving
from rota import Rota, State, StoreError
from rota.stores import open_store
from working import eventually, working

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
            _work(as_shop, schema="jobs")
            with Rota(reader, schema="jobs") as app:
                assert app.stats().states[State.SUCCEEDED] > 1_000
            elsewhere = open_store(as_shop, schema="elsewhere")
            with pytest.raises(StoreError, match="run `rota migrate` as a user who may"):
                elsewhere.open()
            elsewhere.close()
        finally:
            for role in ("shop", "monitor"):
                owner.execute(f"drop owned by {role} cascade".encode())
                owner.execute(f"drop role {role}".encode())


@pytest.mark.parametrize("version", ["valkey-9.1", "redis-8.2", "redis-6.2"])
def test_users_with_either_of_the_documented_rights_can_work_in_redis(version: str) -> None:
    groups, single = _redis_rights()
    head = groups.partition("-@all")[0]
    with serving(version) as server, server.client() as admin:
        for name, rights in {"groups": groups, "single": f"{head}-@all {single}"}.items():
            admin.execute_command("ACL", "SETUSER", name, *rights.split())
            _work(server.url(user=name, password="secret"), prefix="rota")
            with pytest.raises(StoreError, match="lacks a right"):
                _work(server.url(user=name, password="secret"), prefix="other")
            admin.execute_command("ACL", "DELUSER", name)


def test_the_documented_commands_are_those_that_are_sent_to_redis() -> None:
    folder = Path(rota.__file__).parent / "stores" / "redis"
    scripts = "".join(path.read_text("utf-8") for path in folder.rglob("*.lua"))
    code = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    sent = {
        *re.findall(r"(?:call|in_pieces)\('([A-Z]+)'", scripts),
        *re.findall(r"['\"]([HSZ]SCAN)['\"]", scripts + code),
        *re.findall(r"(?:send|command)\(b\"([A-Z]+)\"", code),
    }
    beneath = {"SCRIPT": "script|load", "CONFIG": ""}  # of the one a part, and of the other nothing that is needed
    from_the_driver = {"auth", "select", "client|setname"}
    expected = {beneath.get(word, word.lower()) for word in sent} - {""} | from_the_driver
    assert set(re.findall(r"\+(\S+)", _redis_rights()[1])) == expected


def _redis_rights() -> tuple[str, str]:
    """What the guide to Redis gives a user: by groups of commands, and each command by itself."""
    guide = (ROOT / "docs" / "redis.md").read_text("utf-8")
    [groups] = re.findall(r"^ACL SETUSER \S+ (.*)$", guide, re.MULTILINE)
    [single] = re.findall(r"```text\n(\+.*?)```", guide, re.DOTALL)
    return groups, single


def _as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}@{host}", query=urlencode(parse_qsl(parts.query), quote_via=quote)))


def _migrate(url: str) -> None:
    store = open_store(url)
    assert store.migrate()
    store.close()


def _work(url: str, **options: str) -> None:
    with Rota(url, **options) as app:

        @app.task(name="greet", concurrency=2, keep_result=True)
        def greet(name: str) -> str:
            if name == "nobody":
                raise ValueError(name)
            return name

        job = greet.using(delay=0).enqueue("Ada")
        greet.using(key="x", delay=3600).enqueue("Bo").cancel()
        assert [str(event) for event in app.drain()] == ["ran greet"]
        assert job.refresh().status is State.SUCCEEDED
        many = greet.enqueue_many([("Cy",)] * 1_100)
        long, bad = greet.enqueue("Dan" * 500), greet.using(max_attempts=1).enqueue("nobody")
        many[0].edit(priority=1)
        app.set_limit("concurrency of greet", 3)
        app.pause("reports")
        app.resume("reports")
        with working(app):
            eventually(lambda: not app.jobs(status=["queued", "held", "running"]))
        assert (long.refresh().result(), len(bad.refresh().attempts())) == ("Dan" * 500, 1)
        assert [each.id for each in app.jobs(status="failed", task="greet")] == [bad.id]
        assert app.check() == []
        app.purge(failed=0, cancelled=0)
