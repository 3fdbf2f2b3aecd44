"""`rota top`: one look in each form, and the live view on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.conftest import Call, Shop, command, environment, on_terminal
from rota import Limit, Rota
from rota.cli.glance import look
from rota.cli.overview import overview
from rota.cli.top import frame
from servers import PostgresServer
from working import eventually, working

GLANCE = {"at", "store", "window", "took", "rates", "queues", "workers", "limits", "failures"}
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


# -- one look -----------------------------------------------------------------------------------


def test_one_look_tells_of_queues_workers_limits_and_failures(shop: Shop, call: Call) -> None:
    @shop.app.task(name="shop.call", queue="calls", rate=Limit("1/h", name="partner"))
    def partner() -> None: ...

    partner.enqueue_many([()] * 3)
    shop.app.drain()
    shop.greet.enqueue("Eve")
    shop.app.pause("bills", by="Bob")
    with working(shop.app, queues=["nothing"], name="idler"):
        eventually(shop.app.workers)
        said = call("top", "--once")
    lines = [line.split() for line in said.splitlines()]
    rows = {line[0]: line for line in lines if line}
    assert rows["QUEUE"] == ["QUEUE", "SCHEDULED", "QUEUED", "HELD", "RUNNING", "OLDEST", "IN/S", "OUT/S", "PAUSED"]
    assert rows["mail"][1:5] == ["1", "1", "-", "-"]
    assert rows["calls"][3] == "2"
    assert "by Bob" in " ".join(rows["bills"])
    assert rows["WORKER"] == ["WORKER", "QUEUES", "JOBS", "SLOTS", "DONE/S", "FAILED/S", "LEASE"]
    assert rows["idler"][1:4] == ["nothing", "-", "8"]
    assert rows["partner"] == ["partner", "-", "?", "0", "2"]
    assert [line[4:] for line in lines if "shop.bill" in line] == [["order", each, "was", "refunded"] for each in "21"]


def test_one_look_as_json_has_the_documented_fields(shop: Shop, call: Call) -> None:
    told = call.json("top", "--interval", "60s")
    assert set(told) == GLANCE
    mail = next(queue for queue in told["queues"] if queue["name"] == "mail")
    assert {name: round(60 * rate) for name, rate in mail["rates"].items()} == {
        "enqueued": 4,
        "succeeded": 1,
        "failed": 0,
        "cancelled": 1,
    }
    whole = {"enqueued": 6, "succeeded": 1, "failed": 2, "cancelled": 1}
    assert {name: round(60 * rate) for name, rate in told["rates"].items()} == whole
    assert {failure["task"] for failure in told["failures"]} == {"shop.bill"}
    assert (told["window"], told["limits"]) == (60.0, [])


def test_what_is_cancelled_is_not_told_as_failed(shop: Shop, call: Call) -> None:
    assert "<0.1 failed, <0.1 cancelled (over 60 s)" in call("top", "--once", "--interval", "60s")
    shop.app.purge(failed=0)
    assert ", 0 failed, <0.1 cancelled" in call("top", "--once", "--interval", "60s")


def test_a_store_without_jobs_has_a_look_as_well(call: Call) -> None:
    assert "0 workers, 0 slots; 0 running, 0 due" in call("top", "--once")
    assert call.json("top")["queues"] == []


def test_an_interval_that_would_keep_the_store_busy_is_refused(call: Call) -> None:
    assert "take 0.2 s or more" in call.result("top", "--interval", "10ms").stderr
    call("top", "--interval", "10ms", status=2)


# -- on a screen --------------------------------------------------------------------------------


@pytest.fixture
def crowded(url: str) -> Iterator[Rota]:
    """An app with more queues and failures than a screen has lines, under long names."""
    with Rota(url) as app:

        @app.task(name="shop.with.a.rather.long.name.that.goes.on.and.on", max_attempts=1)
        def fail(number: int) -> None:
            raise ValueError(f"number {number} could not be done for a reason that takes many words to tell")

        fail.enqueue_many([(number,) for number in range(30)])
        app.drain()
        for number in range(40):
            fail.using(queue=f"a queue with quite a long name, {number}").enqueue(number)
        yield app


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 12), (200, 60), (60, 10), (40, 5)])
def test_a_frame_fits_the_screen(crowded: Rota, width: int, height: int) -> None:
    lines = frame(look(crowded, 5.0), width, height).plain.splitlines()
    assert len(lines) <= height
    assert width < 80 or max(len(line) for line in lines) <= width
    assert lines[-1] == "q quits"


def test_at_80_columns_each_section_is_seen(crowded: Rota) -> None:
    text = ANSI.sub("", "\n".join(overview(look(crowded, 5.0), 80, 24)))
    assert re.search(r"^QUEUE .* IN/S  OUT/S", text, re.MULTILINE)
    assert re.search(r"^… and \d+ queues more$", text, re.MULTILINE)
    assert re.search(r"ago  [0-9a-f]{12}  shop\.with", text)
    assert re.search(r"^… and 13 failures more$", text, re.MULTILINE)


def test_on_a_terminal_one_look_is_cut_to_its_width(crowded: Rota, url: str, tmp_path: Path) -> None:
    said = ANSI.sub("", on_terminal("top", "--once", cwd=tmp_path, env=environment(ROTA_URL=url), columns=80))
    assert max(len(line) for line in said.splitlines()) <= 80


class Screen:
    """A command on a terminal of its own, which somebody looks at and types on."""

    def __init__(self, *args: str, cwd: Path, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        size = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
        self.process = subprocess.Popen(command(*args), cwd=cwd, env=env | size, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.shown = ""
        self._reader = threading.Thread(target=self._read, name="screen")
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._ours, 65_536)
            except OSError:  # the other end is closed
                return
            if not part:
                return
            self.shown += part.decode(errors="replace")

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(10)
        os.close(self._ours)


@contextmanager
def screen(*args: str, cwd: Path, url: str) -> Iterator[Screen]:
    shown = Screen(*args, cwd=cwd, env=environment(ROTA_URL=url))
    try:
        yield shown
    finally:
        shown.close()


def test_the_live_view_is_drawn_anew_until_q_is_pressed(shop: Shop, url: str, tmp_path: Path) -> None:
    with screen("top", "--interval", "200ms", cwd=tmp_path, url=url) as live:
        eventually(lambda: "mail" in live.shown)
        shop.greet.using(queue="a long name, " * 5 + "to be cut").enqueue("Eve")
        eventually(lambda: re.search(r"…[a-z, ]*be cut", live.shown))
        shop.greet.using(queue="a new one").enqueue("Eve")
        eventually(lambda: "a new one" in live.shown)
        live.type("xq")
        assert live.process.wait(10) == 0


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_ctrl_c_ends_the_live_view(shop: Shop, url: str, tmp_path: Path) -> None:
    with screen("top", cwd=tmp_path, url=url) as live:
        eventually(lambda: "mail" in live.shown)
        live.process.send_signal(2)
        assert live.process.wait(10) == 130


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_written_to_a_pipe_each_look_is_plain_text(shop: Shop, url: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        command("top", "--interval", "200ms"), cwd=tmp_path, env=environment(ROTA_URL=url), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        seen: list[str] = []
        for line in iter(process.stdout.readline, ""):
            assert "\x1b" not in line
            seen += [line] if line.startswith("mail") else []
            if len(seen) == 2:
                break
        process.terminate()


def test_the_live_view_outlives_the_stores_absence(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        with server.schema() as url:
            with Rota(url) as app:
                app.named("shop.greet").using(queue="mail").enqueue("Ada")
            with screen("top", "--interval", "200ms", cwd=tmp_path, url=url) as live:
                eventually(lambda: "mail" in live.shown)
                server.stop("immediate")
                eventually(lambda: "the store is away" in live.shown)
                server.start()
                with Rota(url) as app:
                    app.named("shop.greet").using(queue="afterwards").enqueue("Ada")
                eventually(lambda: "afterwards" in live.shown)
                live.type("q")
                assert live.process.wait(10) == 0
    finally:
        server.close()
