"""Spans of time, as they are written and read."""

from __future__ import annotations

import pytest

from rota.cli.durations import brief, seconds


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5_400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("1.5h", 5_400),
        ("0", 0),
        (" 1H 30M ", 5_400),
        ("0.5", 0.5),
    ],
)
def test_a_span_is_read(text: str, span: float) -> None:
    assert seconds(text) == pytest.approx(span)


@pytest.mark.parametrize("text", ["", "s", "-5", "5 minutes", "1h30", "5x", "m5", "1e3", "nan", "inf", "½h", "5m,3s"])
def test_what_is_no_span_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write 90, 90s, 5m, 1h30m or 2d"):
        seconds(text)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (0, "0ms"),
        (0.0004, "0ms"),
        (0.9999, "1.0s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.6, "1m"),
        (3_599.9, "1h"),
        (86_400, "1d"),
    ],
)
def test_a_span_is_told_in_two_units_at_most(span: float, text: str) -> None:
    assert brief(span) == text
