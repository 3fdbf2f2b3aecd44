"""The scenario that Rota's defaults come from: five jobs, worked at chosen moments, come out to the letter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rota import Rota

START = datetime.fromtimestamp(1_000, UTC)
MOMENTS = [0, 0, 0, 0, 3_000, 60_000, 60_000, 60_000, *[at for at in (1_000_000, 10_000_000, 100_000_000) for _ in range(2)]]
TRANSCRIPT = """\
hello, Ada
at 0: ran greet
at 0: failed broken on attempt 1: it broke
at 0: failed missing on attempt 1: no performer is named missing
at 0: nothing due
at 3000: failed broken on attempt 2: it broke
at 60000: failed missing on attempt 2: no performer is named missing
at 60000: failed broken on attempt 3: it broke
hello, Bo
at 60000: ran greet
at 1000000: failed missing on attempt 3: no performer is named missing
at 1000000: failed broken on attempt 4: it broke
at 10000000: failed missing on attempt 4: no performer is named missing
at 10000000: failed broken on attempt 5: it broke
at 100000000: failed missing on attempt 5: no performer is named missing
at 100000000: nothing due
[{ "attempts":"5" "failure":"it broke" "name":"broken" "queue":"default" } \
{ "attempts":"5" "failure":"no performer is named missing" "name":"missing" "queue":"default" } \
{ "attempts":"0" "failure":"" "name":"greet" "queue":"mail" }]
"""


@pytest.mark.parametrize("clock", [None, lambda: START], ids=["the store's clock", "the scenario's clock"])
def test_the_guides_transcript_comes_out_to_the_letter(store_url: str, clock: None, capsys: pytest.CaptureFixture[str]) -> None:
    with Rota(store_url, clock=clock, keep_succeeded=0) as app:

        @app.task(name="greet")
        def greet(name: str) -> None:
            print(f"hello, {name}")

        @app.task(name="broken")
        def broken() -> None:
            raise RuntimeError("it broke")

        greet.using(run_at=START).enqueue("Ada")
        broken.using(run_at=START).enqueue()
        app.named("missing").using(run_at=START).enqueue()
        greet.using(run_at=START + timedelta(minutes=1)).enqueue("Bo")
        greet.using(run_at=START, queue="mail").enqueue("Cy")

        for at in MOMENTS:
            happened = app.run_one(["default"], now=START + timedelta(milliseconds=at))
            print(f"at {at}: {happened or 'nothing due'}")
        print(_rows_left(app))

    assert capsys.readouterr().out == TRANSCRIPT


def _rows_left(app: Rota) -> str:
    """The jobs still in the store, oldest first, as the guide shows rows."""
    rows = [
        f'{{ "attempts":"{job.attempt}" "failure":"{job.reason or ""}" "name":"{job.task}" "queue":"{job.queue}" }}'
        for job in reversed(app.jobs())
    ]
    return f"[{' '.join(rows)}]"
