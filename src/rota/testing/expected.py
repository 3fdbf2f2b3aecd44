"""A job that a test expects, and how those that are there differ from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rota.app import Rota
from rota.clock import SECOND, at
from rota.codec import encode_untyped
from rota.codec.wire import brief
from rota.desk import StoreDesk
from rota.errors import ConfigError
from rota.model import JobRow
from rota.options import Options, changed, given_after
from rota.task import BoundTask, NamedTask
from rota.testing.arguments import alike, called, in_short, named, stored, unlike

Target = BoundTask[..., Any] | NamedTask
"""A task, perhaps with options, or a task by its name."""

_COMPARED = ("queue", "priority", "delay", "run_at", "key", "key_until", "max_attempts")
_PUT_BACK = "no longer known, as the job was put back since"
_CLAIMED = "no longer known, as the job has been claimed"


@dataclass(frozen=True, slots=True)
class Unlike:
    """One thing in which a job is not the expected one, or, where it is not `known` any more, may not be."""

    name: str
    has: object
    wanted: object
    known: bool = True
    argument: bool = False

    def lines(self) -> list[str]:
        """In words: a line, or of long arguments those lines that differ."""
        return unlike(self.name, self.wanted, self.has) if self.argument else self.briefly()

    def briefly(self) -> list[str]:
        """In one line."""
        if not self.known:
            return [f"{self.name}: {self.has}, expected {self.wanted!r}"]
        has, wanted = (in_short(self.has), in_short(self.wanted)) if self.argument else (repr(self.has), repr(self.wanted))
        return [f"{self.name}: {has}, expected {wanted}" if has != wanted else f"{self.name}: other than {wanted}"]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a test says of a job: its task, and what else it said."""

    app: Rota
    task: str
    payload: str | None
    """The arguments as they are stored; `None` for any."""
    arguments: Mapping[str, object]
    """By the names of the parameters, with the defaults."""
    options: Options
    given: frozenset[str]
    """Which of the options count."""
    connection: object
    stored: Mapping[str, bytes | None]
    """Each argument as JSON."""

    @classmethod
    def of(cls, target: Target, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Expected:
        """Raises `ArgumentsError` where the task cannot be called like this: no such job could be."""
        if isinstance(target, BoundTask):
            inner = target._task
            app, name, options, given = _app(inner.desk), inner.name, target._options, target._given
        elif isinstance(target, NamedTask):
            app, name = _app(target._desk), target.name
            options, given = Options(), frozenset[str]()
            for asked in target._changes:
                options, given = changed(options, **asked), given_after(given, asked)
        else:
            raise ConfigError(f"{brief(target)} is no task: pass a task of your app, perhaps with .using(…), or app.named(…)")
        payload = _payload(app, name, args, kwargs or {}) if args or kwargs else None
        arguments = {} if payload is None else named(app, name, payload)
        return cls(app, name, payload, arguments, options, given, target._connection, stored(arguments))

    def __str__(self) -> str:
        inside = "…" if self.payload is None else called(self.arguments)
        options = [f"{name}={self._wanted(name)!r}" for name in _COMPARED if name in self.given]
        return f"{self.task}({inside}){' with ' if options else ''}{', '.join(options)}"

    def differences(self, row: JobRow) -> list[Unlike]:
        """In what a job of this task is not the expected one, as far as that is known; empty where it is."""
        found = [] if self.payload in (None, row.args) else self._among_arguments(named(self.app, self.task, row.args))
        for name in _COMPARED:
            if name in self.given:
                known, has = _has(name, row)
                wanted = self._wanted(name)
                if not known or has != wanted:
                    found.append(Unlike(name, has, wanted, known))
        return found

    def _among_arguments(self, found: Mapping[str, object]) -> list[Unlike]:
        names = [*self.arguments, *(name for name in found if name not in self.arguments)]
        pairs = [(name, found.get(name, LEFT_OUT), self.arguments.get(name, LEFT_OUT)) for name in names]
        return [
            Unlike(name, has, wanted, argument=True)
            for name, has, wanted in pairs
            if not alike(has, wanted, self.stored.get(name))
        ]

    def _wanted(self, name: str) -> object:
        match name:
            case "delay":
                return self.options.delay / SECOND
            case "run_at":
                return None if self.options.run_at is None else at(self.options.run_at).isoformat()
            case "key_until":
                return _until(self.options.key_waiting)
            case _:
                return getattr(self.options, name)


class _LeftOut:
    def __repr__(self) -> str:
        return "left out"


LEFT_OUT = _LeftOut()
"""In place of an argument that a call does not have."""


def _has(name: str, row: JobRow) -> tuple[bool, object]:
    """What a job was enqueued with, and whether that is known."""
    match name:
        case "delay" | "run_at" if row.claim > 0 and not _in_first_claim(row):
            return False, _PUT_BACK
        case "key" if row.key is None and row.key_waiting and row.claim > 0:
            return False, _CLAIMED
        case "delay":
            return True, (row.due - row.created_at) / SECOND
        case "run_at":
            return True, at(row.due).isoformat()
        case "key_until":
            return True, _until(row.key_waiting)
        case _:
            return True, getattr(row, name)


def _in_first_claim(row: JobRow) -> bool:
    """Whether a job runs, or ended, in its first claim: nothing has changed since when it was to be due."""
    return (row.claim, row.excused) == (1, 0) and row.claimed_at is not None


def _until(key_waiting: bool) -> str:
    return "started" if key_waiting else "finished"


def _app(desk: object) -> Rota:
    assert isinstance(desk, StoreDesk)
    app = desk._app
    assert isinstance(app, Rota)
    return app


def _payload(app: Rota, task: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    known = app.tasks.get(task)
    if known is None:
        return encode_untyped(args, kwargs, app.max_payload)
    return known.signature.encode(args, kwargs, app.max_payload)
