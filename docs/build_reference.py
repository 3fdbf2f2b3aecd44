"""Writes what the documentation says of the code itself: `reference.md` from the docstrings, and the blocks between markers.

    python docs/build_reference.py

A block stands between `<!-- moves:start -->` and `<!-- moves:end -->` on any page of this folder; `BLOCKS` names them all.
A test fails when a page differs from what this script would write.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType

from rota import retries
from rota.clock import SECOND
from rota.model import FINAL, MOVES, State

DOCS = Path(__file__).parent
WIDTH = 100
HEAD = """\
# Reference

Every public name, with its docstring.
The guides in [index.md](index.md) say what to use when; this page says what each thing promises.
It is written by `docs/build_reference.py`: change the docstrings, not this page.
"""

CONTENTS: dict[str, tuple[str, list[str]]] = {
    "The app": ("rota", ["Rota"]),
    "Tasks": ("rota", ["Task", "BoundTask", "NamedTask", "Limit"]),
    "Jobs": ("rota", ["Job", "State", "Move"]),
    "Inside a task": ("rota", ["current_job", "CurrentJob", "Retry", "Abandon", "Snooze"]),
    "Hooks": ("rota", ["FailedAttempt"]),
    "Retry policies": (
        "rota.retries",
        ["Polynomial", "Exponential", "Fixed", "Waits", "ByError", "Never", "never"],
    ),
    "Workers": ("rota.worker", ["Worker"]),
    "A worker beside a program": ("rota.beside", ["Beside"]),
    "An app in an ASGI server": ("rota.lifespan", ["Lifespan"]),
    "Mail": (
        "rota.mail",
        [
            "Mailer",
            "compose",
            "read_folder",
            "Letter",
            "Delivery",
            "MailError",
            "MessageRefused",
            "NotDelivered",
            "DeliveryFailed",
            "DeliveryPutOff",
        ],
    ),
    "Events": ("rota", ["Event", "Kind"]),
    "Looking after jobs": ("rota.operate", ["where", "Stats", "Step"]),
    "Moving to another store": ("rota.moving", ["move", "look", "reopen", "Moved", "Stage"]),
    "Problems": ("rota.rules.health", ["Problem"]),
    "Explanations": ("rota.rules.explain", ["Explanation"]),
    "Queues": ("rota.queues", ["Queue"]),
    "Rooms of limits": ("rota.rules.rooms", ["Room"]),
    "Kinds of problem": ("rota.rules.health", ["Trouble"]),
    "Records": (
        "rota.model",
        [
            "JobRow",
            "AttemptRow",
            "Failure",
            "WorkerRow",
            "PauseRow",
            "Count",
            "Filter",
            "Changed",
            "Migration",
            "Seal",
            "Whole",
            "RoomRow",
        ],
    ),
    "Errors": (
        "rota",
        [
            "RotaError",
            "ConfigError",
            "DriverMissing",
            "ArgumentsError",
            "PayloadTooLarge",
            "StoreError",
            "StoreUnavailable",
            "SchemaMismatch",
            "NotSupported",
            "JobNotFound",
            "MoveRefused",
            "LeaseLost",
            "WaitTimeout",
            "ResultError",
            "JobFailed",
            "ResultNotKept",
        ],
    ),
    "Opening a store": ("rota.stores", ["open_store"]),
    "The SQLite store": ("rota.stores.sqlite", ["open_sqlite", "open_memory"]),
    "The Postgres store": ("rota.stores.postgres", ["open_postgres"]),
    "Writing a store": ("rota.stores", ["Store", "Line", "Limits"]),
    "Its queries on other connections": ("rota.stores.foreign", ["Dialect", "Statement"]),
    "Testing tasks": (
        "rota.testing",
        [
            "Clock",
            "fresh_store",
            "enqueued",
            "assert_enqueued",
            "aassert_enqueued",
            "assert_not_enqueued",
            "aassert_not_enqueued",
            "assert_nothing_enqueued",
            "drain_through",
        ],
    ),
    "Testing a store": ("rota.testing.contract", ["StoreContract"]),
    "Comparing a store": ("rota.testing.machine", ["compare"]),
    "Comparing a store under limits": ("rota.testing.limits_machine", ["keep_limits"]),
}
"""The sections of the reference: for each the module to import from, and what it holds."""

POLICIES = (
    "Polynomial()",
    "Polynomial(power=2)",
    "Exponential()",
    "Exponential(10, factor=3)",
    "Fixed(30)",
    "Waits([1, 5, 30])",
)
"""The policies whose waits a table shows."""

INTERNAL = {
    "Rota": {"now"},
    **{policy: {"wait"} for policy in ("Polynomial", "Exponential", "Fixed", "Waits", "ByError", "Never")},
}
"""Methods that the parts of Rota ask of each other, and that no user needs."""

Def = ast.FunctionDef | ast.AsyncFunctionDef


def pages() -> dict[Path, str]:
    """Every page that this script writes, as it should be."""
    written = {DOCS / "reference.md": reference()}
    for path in sorted(DOCS.glob("*.md")):
        if path.name != "reference.md":
            text = path.read_text("utf-8")
            if any(f"<!-- {name}:start -->" in text for name in BLOCKS):
                written[path] = fill(text)
    return written


def fill(text: str) -> str:
    """A page with its blocks as they should be."""
    for name, block in BLOCKS.items():
        between = re.compile(rf"(?<=<!-- {name}:start -->\n).*?(?=<!-- {name}:end -->)", re.DOTALL)
        text = between.sub(block().replace("\\", "\\\\"), text)
    return text


# -- states and moves ---------------------------------------------------------------------------


def states() -> str:
    """The diagram of states, printed from the table of moves."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for move, table in MOVES.items():
        for before in State:
            for after in sorted(table.get(before, ()), key=list(State).index):
                if before != after:
                    arrows.setdefault((before.value, after.value), []).append(move.value)
    lines = [f"    {before} --> {after}: {', '.join(names)}" for (before, after), names in arrows.items()]
    ends = [f"    {state.value} --> [*]" for state in State if state in FINAL]
    begins = ["    [*] --> scheduled: enqueue with a delay", "    [*] --> queued: enqueue"]
    return "\n".join(["```mermaid", "stateDiagram-v2", *begins, *lines, *ends, "```", ""])


def moves() -> str:
    """The table of moves: a row for each move, a column for each state it may start from."""
    rows = ["| | " + " | ".join(State) + " |", "|---" * (len(State) + 1) + "|"]
    for move, table in MOVES.items():
        rows.append(f"| `{move.value}` | " + " | ".join(_cell(table.get(state)) for state in State) + " |")
    return "\n".join(rows) + "\n"


def _cell(after: frozenset[State] | None) -> str:
    if after is None:
        return ""
    return ", ".join(state.value for state in State if state in after) or "gone"


def waits() -> str:
    """A row for each policy: what it waits after the first failed attempts."""
    attempts = (1, 2, 3, 4, 5, 6, 10)
    rows = []
    for text in POLICIES:
        policy = eval(text, vars(retries))  # noqa: S307  # our own words, above
        found = [policy.wait(attempt, ValueError(), 0.5) / SECOND for attempt in attempts]
        rows.append(f"| `{text}` | " + " | ".join(f"{wait:,.10g}" for wait in found) + " |")
    return "\n".join(rows) + "\n"


BLOCKS = {"states": states, "moves": moves, "waits": waits}
"""What is printed between markers, by the markers' name."""


# -- the reference ------------------------------------------------------------------------------


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    parts += [f"- [{title}](#{title.lower().replace(' ', '-')})" for title in CONTENTS]
    for title, (module, names) in CONTENTS.items():
        parts.append(f"\n## {title}\n\n`from {module} import {', '.join(names) if len(names) < 4 else '…'}`")
        for name in names:
            parts += ["", *_entry(getattr(import_module(module), name), name)]
    return "\n".join(parts).rstrip() + "\n"


def _entry(thing: object, name: str) -> Iterator[str]:
    if isinstance(thing, type):
        yield from _class(thing)
    elif inspect.isfunction(thing):
        node = _find(sys.modules[thing.__module__], name)
        assert isinstance(node, Def)
        yield f"### `{name}`\n"
        yield _code(f"{name}{_call(node, method=False)}")
        yield _prose(node, name)
    else:
        yield f"### `{name}`\n\nThe only `{type(thing).__name__}` that anyone needs."


def _class(kind: type) -> Iterator[str]:
    name = kind.__name__
    node = _find(sys.modules[kind.__module__], name)
    assert isinstance(node, ast.ClassDef)
    functions = {item.name: item for item in node.body if isinstance(item, Def) and not _is_aside(item)}
    yield f"### `{name}`\n"
    bases = [base.__name__ for base in kind.__bases__ if base.__module__.startswith("rota")]
    if "__init__" in functions and name not in ("Job", "CurrentJob", "Task", "BoundTask", "NamedTask"):
        yield _code(f"{name}{_call(functions['__init__'], method=True)}")
    yield _prose(node, name)
    if bases and not issubclass(kind, BaseException):
        yield f"Has all of `{'`, `'.join(bases)}`, too.\n" if name == "Task" else ""
    if name == "StoreContract":
        yield dedent(inspect.getdoc(sys.modules[kind.__module__]) or "") + "\n"
        return
    yield from _fields(node, kind)
    twins = {twin for called, function in functions.items() if (twin := _twin_of(called, node, functions))}
    for called, function in functions.items():
        if called.startswith("_") or called in twins or called in INTERNAL.get(name, ()):
            continue
        yield from _method(name, called, function, _twin_of(called, node, functions))


def _method(owner: str, name: str, node: Def, twin: str | None) -> Iterator[str]:
    if any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
        kind = f": `{ast.unparse(node.returns)}`" if node.returns else ""
        said = ast.get_docstring(node)
        yield f"- **`{name}`**{kind}" + (f"  \n{indent(_lists(said), '  ')}" if said else "")
        return
    yield f"\n#### `{owner}.{name}`\n"
    yield _code(f"{'await ' if isinstance(node, ast.AsyncFunctionDef) else ''}{name}{_call(node, method=True)}")
    yield _prose(node, f"{owner}.{name}")
    if twin:
        yield f"For coroutines: `await …{twin}(…)`.\n"


def _twin_of(name: str, node: ast.ClassDef, all_: dict[str, Def]) -> str | None:
    """The method for coroutines that is told of in a line, having nothing to say for itself."""
    made = {item.targets[0].id for item in node.body if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)}
    silent = {called for called, function in all_.items() if ast.get_docstring(function) is None}
    return next((each for each in (f"a{name}", f"{name}_") if each in made | silent), None)


def _fields(node: ast.ClassDef, kind: type) -> Iterator[str]:
    """The fields of a record and the members of an enum, each with the docstring that follows it."""
    for item, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            name, shown = item.target.id, f": `{ast.unparse(item.annotation)}`"
            if item.value is not None:
                shown += f" = `{ast.unparse(item.value)}`"
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name) and hasattr(kind, "__members__"):
            name, shown = item.targets[0].id, f" = `{ast.unparse(item.value)}`"
        else:
            continue
        if name.startswith("_"):
            continue
        said = _text(following)
        yield f"- **`{name}`**{shown}" + (f"  \n{indent(inspect.cleandoc(said), '  ')}" if said else "")


def _text(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def _is_aside(node: Def) -> bool:
    """Whether it is an overload or the setter of a property, whose other half says all."""
    return any(ast.unparse(each).split(".")[-1] in ("overload", "setter") for each in node.decorator_list)


def _prose(node: Def | ast.ClassDef, name: str) -> str:
    said = ast.get_docstring(node)
    if said is None:
        raise SystemExit(f"{name} is public and has no docstring")
    return _lists(said) + "\n"


def _lists(said: str) -> str:
    """A docstring as Markdown: its examples become blocks of code."""
    lines: list[str] = []
    example = False
    for line in said.split("\n"):
        if line.startswith(">>>") and not example:
            example = True
            lines.append("```pycon")
        if example and not line.strip():
            example = False
            lines.append("```")
        lines.append(line)
    return "\n".join([*lines, "```"] if example else lines)


def _code(text: str) -> str:
    return f"```py\n{text}\n```\n"


def _call(node: Def, method: bool) -> str:
    """The parameters as they are written, on one line where they fit."""
    parameters = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0]
    assert isinstance(parameters, ast.FunctionDef)
    if method and parameters.args.args:
        del parameters.args.args[0]
    elif method and parameters.args.posonlyargs:
        del parameters.args.posonlyargs[0]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    inside = ast.unparse(parameters.args)
    if len(inside) + len(returns) < WIDTH - 10:
        return f"({inside}){returns}"
    return "(\n" + "".join(f"    {each},\n" for each in _split(inside)) + f"){returns}"


def _split(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield text[start:index].strip()
            start = index + 1
    yield text[start:].strip()


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _find(module: ModuleType, name: str) -> ast.stmt:
    return next(item for item in _tree(module).body if getattr(item, "name", None) == name)


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, "utf-8")
