"""Text made safe for every store, and shown for what it is on every screen; payloads as one line for tables."""

from __future__ import annotations

import re

import msgspec

_UNSAFE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
_UNSEEN = re.compile(
    _UNSAFE.pattern
    + r"|[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Besides, what turns a line's direction, ends it, or is not seen at all; not the joiners that scripts and emoji need."""


def clean(text: str, limit: int) -> str:
    r"""The text with control characters and lone surrogates written as escapes, cut to `limit` characters with a mark.

    Line ends and tabs stay. No store, terminal or encoding refuses what it returns, save for its length.

    >>> clean("a\0b", 100)
    'a\\x00b'
    >>> clean("x" * 1_000, 40)
    'xxxxxxxxxxxxxxxx… (984 characters cut)'
    """
    safe = escape(text[: limit + 1])
    if len(text) <= limit and len(safe) <= limit:
        return safe
    room = limit - len(_mark(len(text)))
    kept = 0
    for character in text[: max(0, room)]:
        # Escapes are longer than what they stand for, so what fits is found by measuring each.
        room -= len(escape(character))
        if room < 0:
            break
        kept += 1
    return (escape(text[:kept]) + _mark(len(text) - kept))[:limit]


def _mark(cut: int) -> str:
    return f"… ({cut:,} characters cut)"


def escape(text: str) -> str:
    """The text with control characters (save line ends and tabs) and lone surrogates written as escapes."""
    return _UNSAFE.sub(_escaped, text)


def visible(text: str) -> str:
    r"""The text as a screen may have it: besides what `escape` does, nothing in it turns other text around or is not seen.

    >>> print(visible("mail\u202e\x1b[2J"))
    mail\u202e\x1b[2J
    """
    return _UNSEEN.sub(_escaped, text)


def one_line(text: str) -> str:
    """`visible`, with nothing in it that begins a line."""
    return text if text.isprintable() else visible(text).replace("\r", " ").replace("\n", " ").replace("\t", " ")


def json_visible(text: str) -> str:
    r"""A JSON document that says the same with escapes in place of what a screen would not show.

    >>> print(json_visible('{"name":"mail\u202e"}'))
    {"name":"mail\u202e"}
    """
    return text if text.isascii() else _UNSEEN.sub(_json_escaped, text)


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
    return line if len(line) <= width else f"{line[: max(0, width - 1)]}…"[:width]


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
