"""Tables of text: cut to fit a terminal, whole in a file or a pipe."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rota.cli.saying import Styled, say, styled
from rota.codec.text import visible

_GAP = 2
_LEAST = 12
"""A flexible column is not cut below this many characters."""


@dataclass(frozen=True)
class Column:
    """A column. `flexible`: may be cut to fit. `drop`: left out where there is no room, the larger sooner; 0 for never."""

    name: str
    flexible: bool = False
    drop: int = 0
    right: bool = False


@dataclass(frozen=True)
class Cell:
    """Text in a colour."""

    text: str
    colour: str | None = None
    bold: bool = False


def write_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
    """Write the heads and the rows to the standard output."""
    for line in table_lines(columns, rows, screen_width()):
        say(line)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], width: int | None) -> list[Styled]:
    """The heads and the rows, each cut to fit so many characters (`None`: whole)."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
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
        mark = ellipsis()
        while text and _width(text) + 1 > width:
            text = text[:-1]
        text += mark
    fill = " " * (width - _width(text))
    if column.right:
        return fill + text
    return text if last else text + fill


def _joined(parts: Sequence[str]) -> str:
    return (" " * _GAP).join(parts).rstrip()


def _line(text: str) -> str:
    return " ".join(visible(text).split())


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
