"""Tables of text: cut to fit a terminal, whole in a file or a pipe. A row is its cells by the names of their columns."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rota.cli.saying import Styled, say, styled
from rota.codec.text import visible

_GAP = 2
"""Spaces between two columns."""
_LEAST = 12
"""A flexible column is not cut below this many characters."""


@dataclass(frozen=True)
class Column:
    """A column. `flexible`: may be cut to fit. `drop`: left out where there is no room, the larger sooner; 0 for never.

    `tells`: it is the ends of its texts that tell them apart, as of names that begin with the same words, so that they are
    cut in their middle.
    """

    name: str
    flexible: bool = False
    drop: int = 0
    right: bool = False
    tells: bool = False


@dataclass(frozen=True)
class Cell:
    """Text in a colour."""

    text: str
    colour: str | None = None
    bold: bool = False


Row = Mapping[str, Cell | str]


def name_column(name: str, drop: int = 0) -> Column:
    """A column for names."""
    return Column(name, flexible=True, drop=drop, tells=True)


def chosen(columns: Iterable[Column], *names: str) -> list[Column]:
    """The columns of these names, in this order."""
    by_name = {column.name: column for column in columns}
    return [by_name[name] for name in names]


def write_table(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Write the heads and the rows to the standard output."""
    for line in table_lines(columns, rows, screen_width()):
        say(line)


def table_lines(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> list[Styled]:
    """The heads and the rows, each cut to fit so many characters (`None`: whole)."""
    told = [[row[column.name] for column in columns] for row in rows]
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in told]
    shown = [[_line(cell.text) for cell in row] for row in cells]
    natural = [max([_width(column.name), *(_width(row[at]) for row in shown)]) for at, column in enumerate(columns)]
    widths = _fit(columns, natural, width)
    last = max(widths)
    heads = [_set(columns[at], columns[at].name.upper(), room, at == last) for at, room in widths.items()]
    lines = [styled(_joined(heads), dim=True)]
    for row, texts in zip(cells, shown, strict=True):
        parts = []
        for at, room in widths.items():
            text = _set(columns[at], texts[at], room, at == last)
            parts.append(styled(text, fg=row[at].colour, bold=row[at].bold or None))
        lines.append(Styled(_joined(parts)))
    return lines


def paragraph(text: str, first: str = "") -> list[str]:
    """The lines of a text: broken between words on a terminal, one in a file or a pipe. `first` begins the first of them."""
    from textwrap import wrap

    shown, width = visible(text), screen_width()
    if width is None:
        return [first + shown]
    lines = wrap(shown, width, initial_indent=first, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return lines or [first]


def ellipsis() -> str:
    """The one character that stands for what was cut off."""
    return "…" if (sys.stdout.encoding or "").lower().startswith("utf") else "~"


def screen_width() -> int | None:
    """How many characters fit in a line, where the output is a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None


def _fit(columns: Sequence[Column], natural: Sequence[int], room: int | None) -> dict[int, int]:
    """The width of each column that is shown, by its place."""
    widths = dict(enumerate(natural))
    if room is None:
        return widths
    droppable = sorted((at for at, column in enumerate(columns) if column.drop), key=lambda at: -columns[at].drop)
    for at in droppable:
        least = [min(width, _LEAST) if columns[each].flexible else width for each, width in widths.items()]
        if sum(least) + _GAP * (len(least) - 1) <= room:
            break
        del widths[at]
    while sum(widths.values()) + _GAP * (len(widths) - 1) > room:
        flexible = [at for at in widths if columns[at].flexible and widths[at] > _LEAST]
        if not flexible:
            break
        widths[max(flexible, key=lambda at: widths[at])] -= 1
    return widths


def _set(column: Column, text: str, width: int, last: bool) -> str:
    """The text cut or filled up to the width; the last column is not filled up."""
    if _width(text) > width:
        text = _cut(text, width, tail=(width - 1) * 2 // 3 if column.tells else 0)
    fill = " " * (width - _width(text))
    if column.right:
        return fill + text
    return text if last else text + fill


def _cut(text: str, width: int, tail: int) -> str:
    """So much of the text as fits, with a mark where something was left out; of its end as much as `tail` holds."""
    end = len(text)
    while end and _width(text[end - 1 :]) <= tail:
        end -= 1
    while end < len(text) and not _width(text[end]):  # which belongs to what was cut off
        end += 1
    room, begin = width - 1 - _width(text[end:]), 0
    while _width(text[: begin + 1]) <= room:
        begin += 1
    return text[:begin] + ellipsis() + text[end:]


def _joined(parts: Sequence[str]) -> str:
    return (" " * _GAP).join(parts).rstrip()


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):  # accents, and what joins
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
