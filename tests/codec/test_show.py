"""A payload is shown on one line, whatever it holds."""

from __future__ import annotations

import pytest

from rota.codec import show

LINES = [
    ('{"order_id":42,"lang":"de"}', "order_id=42, lang='de'"),
    ('{"*":[1,"a"],"x":null}', "1, 'a', x=None"),
    ('{"order":{"items":[1,2]}}', "order={'items': [1, 2]}"),
    ("{}", ""),
    ('{"*":5}', "*=5"),
    ("[1]", "[1]"),
    ("{broken", "{broken"),
    ('{"a":"\\n\\u0000\\u001b"}', "a='\\n\\x00\\x1b'"),
    ("two\nlines\0", "two lines\\x00"),
    ("\udc80", "\\udc80"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "line"), LINES)
def test_a_payload_reads_like_a_call(text: str, line: str) -> None:
    assert show(text) == line


@pytest.mark.parametrize(
    "text",
    ['{"a":"' + "x" * 20_000_000 + '"}', "[" * 10_000, '{"a":' + "9" * 10_000 + "}", '{"a":' + "[" * 2_000 + "]" * 2_000 + "}"],
)
def test_a_huge_payload_is_cut_to_the_width(text: str) -> None:
    line = show(text, width=30)
    assert len(line) == 30
    assert line.endswith("…")
