"""The words for JSON that does not fit the annotations, with the path of the part that does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.json import Decoder

from rota.codec.wire import brief

SEARCHED = 1_000_000
"""In a larger payload no key is searched for: each step of the search reads all of it."""


def misfit(error: Exception, payload: bytes | str, decoder: Decoder[Any], root: str, names: Mapping[str, str]) -> str:
    """Where and why `decoder` refused the payload: `order.items[2].price: expected `int`, got `str``.

    `names` gives the parameters' names for the JSON names of the outermost object; `root` names that object itself.
    """
    if not isinstance(error, msgspec.MsgspecError):
        return f"{root}: a type's own code refused it: {brief(error)}"
    found = _WHERE.fullmatch(str(error))
    if found is None:
        return f"{root}: {_small(str(error))}"
    said, at_key, path = found["said"], found["key"], found["path"]
    steps = _STEP.findall(path) + (["[...]"] if at_key else [])
    if "[...]" in steps and len(payload) <= SEARCHED:
        steps = _named(steps, str(error), payload, decoder)
    if steps and names and (label := steps[0].removeprefix(".")) in names:
        root, steps = names[label], steps[1:]
    return f"{root}{''.join(steps)}: {'key ' if at_key else ''}{_small(said)}"


_WHERE = re.compile(r"(?P<said>.*) - at (?P<key>`key` in )?`\$(?P<path>.*)`", re.DOTALL)
_STEP = re.compile(r"\.[^.\[\]]+|\[\d+\]|\[\.\.\.\]")


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _named(steps: list[str], complaint: str, payload: bytes | str, decoder: Decoder[Any]) -> list[str]:
    """The steps with the keys that msgspec leaves out of its paths, as far as they can be found."""
    tree: Any = msgspec.json.decode(payload)
    node, named = tree, []
    try:
        for step in steps:
            if step != "[...]":
                node = node[int(step[1:-1]) if step[0] == "[" else step[1:]]
                named.append(step)
                continue
            _reduce(node, tree, complaint, decoder)
            [(key, node)] = node.items()
            named.append(f"[{brief(key)}]")
    except (LookupError, TypeError, ValueError, AttributeError):
        pass  # the path is not what it seemed: what was found of it stands, the rest stays unnamed
    return named + steps[len(named) :]


def _reduce(node: dict[str, Any], tree: Any, complaint: str, decoder: Decoder[Any]) -> None:
    """Drop entries of `node`, which is somewhere in `tree`, by halves until only one that is complained of is left."""
    entries = list(node.items())
    while len(entries) > 1:
        half = len(entries) // 2
        _put(node, entries[:half])
        entries = entries[:half] if _complaint(tree, decoder) == complaint else entries[half:]
    _put(node, entries)
    if _complaint(tree, decoder) != complaint:
        raise LookupError


def _put(node: dict[str, Any], entries: list[tuple[str, Any]]) -> None:
    node.clear()
    node.update(entries)


def _complaint(tree: Any, decoder: Decoder[Any]) -> str:
    try:
        decoder.decode(msgspec.json.encode(tree))
    except Exception as error:  # noqa: BLE001  # a type's own code may raise anything
        return str(error) if isinstance(error, msgspec.MsgspecError) else ""
    return ""
