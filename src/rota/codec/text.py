"""Text made safe for every store and screen, and payloads as one line for tables."""

from __future__ import annotations

import re

import msgspec

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str, limit: int) -> str:
    r"""The text with control characters and lone surrogates written as escapes, cut to `limit` characters with a mark.

    Line ends and tabs stay. No store, terminal or encoding refuses what it returns, save for its length.

    >>> clean("a\0b", 100)
    'a\\x00b'
    >>> clean("x" * 1_000, 40)
    'xxxxxxxxxxxxxxxxxx… (982 characters cut)'
    """
    total = len(text)
    safe = escape(text[:limit])
    if total <= limit and len(safe) <= limit:
        return safe
    kept = min(total, limit)
    while True:
        # Escapes lengthen the text, so what fits is found by giving back as much as is too much.
        mark = f"… ({total - kept:,} characters cut)"
        safe = escape(text[:kept])
        if len(safe) + len(mark) <= limit or kept == 0:
            return (safe + mark)[:limit]
        kept = max(0, kept - max(1, (len(safe) + len(mark) - limit) // 4))


def escape(text: str) -> str:
    """The text with control characters (save line ends and tabs) and lone surrogates written as escapes."""
    return _UNSAFE.sub(_escaped, text)


def show(text: str, width: int = 60) -> str:
    """A payload as one line of at most `width` characters, for people. Never raises: what is broken is shown as it is.

    >>> show('{"order_id":42,"lang":"de"}')
    "order_id=42, lang='de'"
    """
    return _cut(_line(text), width)


def _line(text: str) -> str:
    if len(text) > _LONG:
        return escape(text[:_LONG])
    try:
        payload = msgspec.json.decode(text)
        if not isinstance(payload, dict):
            return repr(payload)
        args = payload.pop("*", [])
        parts = [repr(value) for value in args] if isinstance(args, list) else [f"*={args!r}"]
        return ", ".join(parts + [f"{name}={value!r}" for name, value in payload.items()])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text


_LONG = 16_384
"""A longer payload is not decoded to be shown: a page of them would take seconds."""


def _cut(text: str, width: int) -> str:
    line = " ".join(escape(text).split())
    return line if len(line) <= width else f"{line[: max(0, width - 1)]}…"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
