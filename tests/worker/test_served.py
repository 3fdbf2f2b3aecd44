"""A queue that a worker is told to serve, and that nobody seems to use, is told of when it starts."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from rota import Rota
from working import eventually, working


def told(app: Rota, caplog: pytest.LogCaptureFixture, queues: Sequence[str] | None) -> list[str]:
    """What a worker of these queues warned of when it had started."""
    app.task(name="send", queue="mail")(lambda: None)
    with caplog.at_level(logging.INFO, "rota"), working(app, queues=queues, name="postman"):
        eventually(lambda: any(record.message.startswith("worker postman") for record in caplog.records))
        app.named("send").enqueue()
        if queues is None or "mail" in queues:
            eventually(lambda: app.jobs(status="succeeded"))
    return [record.message for record in caplog.records if record.levelno == logging.WARNING and "no job is" in record.message]


@pytest.mark.parametrize("queues", [None, ["mail"]])
def test_queues_of_tasks_are_no_matter(app: Rota, caplog: pytest.LogCaptureFixture, queues: list[str] | None) -> None:
    assert told(app, caplog, queues) == []


def test_each_that_nobody_uses_is_named_and_served_all_the_same(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    app.send("elsewhere")
    said = told(app, caplog, ["mail", "mial", "reprots"])
    assert said == [
        f"no job is on queue {name!r}, which this worker serves, and no task of its app names it: is it spelt right? "
        "Known are 'default', 'mail'"
        for name in ("mial", "reprots")
    ]


@pytest.mark.parametrize("delay", [0, 3600])
def test_one_with_jobs_that_wait_is_used(app: Rota, caplog: pytest.LogCaptureFixture, delay: float) -> None:
    app.named("send").using(queue="bulk", delay=delay).enqueue()
    assert told(app, caplog, ["bulk", "mail"]) == []
