"""A job that a test expects, and how those that are there differ from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import ndiff
from pprint import pformat
from typing import Any

import msgspec

from rota.app import Rota
from rota.clock import SECOND, at
from rota.codec import encode_untyped
from rota.desk import StoreDesk
from rota.errors import ArgumentsError, ConfigError
from rota.model import JobRow
from rota.options import Options, changed
from rota.task import BoundTask, NamedTask

Target = BoundTask[..., Any] | NamedTask
"""A task, perhaps with options, or a task by its name."""

_LONG = 60
_MOST_LINES = 30


@dataclass(frozen=True, slots=True)
class Expected:
    """What a test says of a job: its task, and what else it said."""

    app: Rota
    task: str
    arguments: Mapping[str, object] | None
    """By the names of the parameters, with the defaults; `None` for any."""
    options: Options
    given: frozenset[str]
    """Which of the options count."""
    connection: object = None

    @classmethod
    def of(cls, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expected:
        """Raises `ArgumentsError` where the task cannot be called like this: no such job could be."""
        if isinstance(target, BoundTask):
            inner = target._task
            app, name, options, given = _app(inner.desk), inner.name, target._options, target._given
        elif isinstance(target, NamedTask):
            app, name = _app(target._desk), target.name
            options = Options()
            for asked in target._changes:
                options = changed(options, **asked)
            given = frozenset(option for asked in target._changes for option, value in asked.items() if value is not None)
        else:
            raise ConfigError(f"{target!r} is no task: pass a task of your app, perhaps with .using(…), or app.named(…)")
        arguments = None if not args and not kwargs else _arguments(app, name, _encoded(app, name, args, kwargs))
        return cls(app, name, arguments, options, given, target._connection)

    def __str__(self) -> str:
        inside = "…" if self.arguments is None else called(self.arguments)
        options = [f"{name}={self._wanted(name)!r}" for name in _COMPARED if name in self.given]
        return f"{self.task}({inside}){' with ' if options else ''}{', '.join(options)}"

    def differences(self, row: JobRow) -> list[str]:
        """In what a job of this task is not the expected one, a line or more for each; empty where it is."""
        found = [] if self.arguments is None else _differences(self.arguments, _arguments(self.app, self.task, row.args))
        for name in _COMPARED:
            if name in self.given and (has := self._has(name, row)) != (wanted := self._wanted(name)):
                found.append(f"{name}: {has!r}, expected {wanted!r}")
        return found

    def _wanted(self, name: str) -> object:
        if name == "delay":
            return self.options.delay / SECOND
        if name == "run_at":
            return None if self.options.run_at is None else at(self.options.run_at).isoformat()
        return getattr(self.options, name)

    def _has(self, name: str, row: JobRow) -> object:
        if name == "delay":
            return (row.due - row.created_at) / SECOND if not row.claim else "unknown, as it has run"
        return at(row.due).isoformat() if name == "run_at" else getattr(row, name)


_COMPARED = ("queue", "priority", "delay", "run_at", "key", "max_attempts")


def arguments_of(app: Rota, row: JobRow) -> Mapping[str, object]:
    """What a job was called with, by the names of its task's parameters where its code is here."""
    return _arguments(app, row.task, row.args)


def called(arguments: Mapping[str, object]) -> str:
    """Arguments as they are written in a call, cut where they are long."""
    return ", ".join(f"{name}={_brief(value)}" for name, value in arguments.items())


def _app(desk: object) -> Rota:
    assert isinstance(desk, StoreDesk)
    app = desk._app
    assert isinstance(app, Rota)
    return app


def _encoded(app: Rota, task: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    known = app.tasks.get(task)
    if known is None:
        return encode_untyped(args, kwargs, app.max_payload)
    return known.signature.encode(args, kwargs, app.max_payload)


def _arguments(app: Rota, task: str, text: str) -> Mapping[str, object]:
    known = app.tasks.get(task)
    if known is not None:
        try:
            return known.signature.by_name(text)
        except ArgumentsError:  # it was sent by its name, and does not fit
            pass
    plain = msgspec.json.decode(text)
    by_position = plain.pop("*", []) if isinstance(plain, dict) else [plain]
    return {f"argument {number}": value for number, value in enumerate(by_position, 1)} | (
        plain if isinstance(plain, dict) else {}
    )


def _differences(expected: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    lines = []
    for name in [*expected, *(name for name in found if name not in expected)]:
        if name not in found:
            lines.append(f"{name}: left out, expected {_brief(expected[name])}")
        elif name not in expected:
            lines.append(f"{name}: {_brief(found[name])}, expected none")
        elif found[name] != expected[name]:
            lines += _unlike(name, expected[name], found[name])
    return lines


def _unlike(name: str, expected: object, found: object) -> list[str]:
    """One line for what is short; the lines that differ for what is not."""
    if max(len(repr(expected)), len(repr(found))) <= _LONG:
        return [f"{name}: {found!r}, expected {expected!r}"]
    told = [line.rstrip("\n") for line in ndiff(_lines(expected), _lines(found))]
    if len(told) > _MOST_LINES:
        told = [*told[:_MOST_LINES], f"  … and {len(told) - _MOST_LINES} lines more"]
    return [f"{name}, expected (-) and there (+):", *(f"  {line}" for line in told)]


def _lines(value: object) -> list[str]:
    return value.splitlines() if isinstance(value, str) and "\n" in value else pformat(value, width=100).splitlines()


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
