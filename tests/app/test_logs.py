"""Log records that are made in bodies carry the fields of their job."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from app import isolated
from rota import Rota, current_job
from rota.cli.logs import json_line, text_lines
from rota.logs import JobFields, add_job_fields
from working import working


class Kept(logging.Handler):
    """Keeps each record."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def fields(self) -> list[tuple[object, ...]]:
        names = ("job_id", "task", "queue", "attempt", "worker")
        return [tuple(getattr(record, name) for name in names) for record in self.records]


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    handler.addFilter(JobFields())
    log = logging.getLogger("shop")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_records_of_any_logger_made_in_a_body_have_its_jobs_fields(app: Rota, kept: Kept, kind: str) -> None:
    @app.task(name="plain", queue="mail", retry=0)
    def plain() -> None:
        logging.getLogger("shop.stock").info("packing")
        if current_job().attempt == 1:
            raise ValueError("once more")

    @app.task(name="coroutine", queue="mail", retry=0)
    async def coroutine() -> None:
        await asyncio.to_thread(plain)

    logging.getLogger("shop").info("before")
    with working(app) as worker:
        job = app.tasks[kind].enqueue()
        job.wait(10)
    logging.getLogger("shop").info("after")
    nothing = (None,) * 5
    assert kept.fields() == [nothing, *((job.id, kind, "mail", attempt, worker.id) for attempt in (1, 2)), nothing]


def test_records_of_an_isolated_body_are_logged_by_its_worker(kept: Kept, capfd: pytest.CaptureFixture[str]) -> None:
    with isolated.app as app:
        job = isolated.logs.enqueue()
        assert str(app.run_one()) == "ran app.isolated.logs"
    packed, missing = kept.records
    assert [fields[:4] for fields in kept.fields()] == [(job.id, "app.isolated.logs", "mail", 1)] * 2
    assert (packed.name, packed.levelname, packed.getMessage(), vars(packed)["shelf"]) == (
        "shop.stock", "INFO", "order 7 is packed", 3,
    )  # fmt: skip
    assert not hasattr(packed, "lock")
    assert "ValueError: the last one is gone" in logging.Formatter().format(missing)
    assert json.loads(json_line(missing))["trace"].endswith("ValueError: the last one is gone")
    assert text_lines(coloured=False)(missing).endswith("ValueError: the last one is gone")
    assert capfd.readouterr().err == "a fork says so itself\n"


def test_what_a_record_says_itself_stays(app: Rota, kept: Kept) -> None:
    @app.task(name="pack")
    def pack() -> None:
        logging.getLogger("shop").info("packing", extra={"queue": "at the till"})

    pack.enqueue()
    app.drain()
    assert kept.fields()[0][1:3] == ("pack", "at the till")


def test_the_line_of_an_outcome_has_the_fields_of_its_attempt(app: Rota) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(JobFields())
    handler.setFormatter(logging.Formatter("%(message)s %(job_id)s %(queue)s %(attempt)s"))
    log = logging.getLogger("rota")
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    @app.task(name="pack", queue="mail")
    def pack() -> None:
        pass

    job = pack.enqueue()
    app.drain()
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)
    assert stream.getvalue() == f"ran pack {job.id} mail 1\n"


def test_events_of_structlog_get_the_fields(app: Rota) -> None:
    told = []

    @app.task(name="pack")
    def pack() -> None:
        told.append(add_job_fields(None, "info", {"event": "packing", "queue": "at the till"}))

    job = pack.enqueue()
    app.drain()
    [event] = told
    assert event.pop("worker")
    assert event == {"event": "packing", "job_id": job.id, "task": "pack", "queue": "at the till", "attempt": 1}
    assert add_job_fields(None, "info", {"event": "outside"}) == {"event": "outside"}


def test_lines_of_json_have_them_too(app: Rota) -> None:
    lines = []

    @app.task(name="pack", queue="mail")
    def pack() -> None:
        record = logging.LogRecord("shop", logging.INFO, __file__, 1, "packing", (), None)
        lines.append((json.loads(json_line(record)), current_job().worker))

    job = pack.enqueue()
    app.drain()
    [(line, worker)] = lines
    del line["at"]
    assert line == {
        "level": "info",
        "message": "packing",
        "logger": "shop",
        "id": job.id,
        "task": "pack",
        "queue": "mail",
        "attempt": 1,
        "worker": worker,
    }
