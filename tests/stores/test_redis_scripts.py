"""The Lua scripts: each is whole with what it has of the prelude, and none does what an old or a clustered server forbids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from redis_servers import RedisServer, serving
from rota.stores import redis as package
from rota.stores.redis.scripts import script

FOLDER = Path(package.__file__).parent / "scripts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lua"))
GIVEN = frozenset({"KEYS", "ARGV", "ipairs", "pairs", "tonumber", "select", "unpack"})
"""What Lua and the server bring, of what is not named behind a dot or a colon."""
WORDS = frozenset({"function", "and", "or", "not", "if", "return", "in", "while"})
USED = re.compile(r"(?<![\w.:])([A-Z][A-Z_]+|[a-z_]+(?=\())(?!\w)")
"""A constant, or a function that is called."""
MADE = (r"local (?:function )?([\w, ]+)", r"function \w*\(([\w, .]*)\)", r"for ([\w, ]+?) (?:in|=)")
"""Names that are made, with commas between."""
NEWER = ("SINTERCARD", "ZMPOP", "LMPOP", "FCALL", "EXPIRETIME", "ZRANDMEMBER.*WITHVALUES", "HEXPIRE", "OBJECT FREQ")
"""Commands that Redis 6.2 does not know."""


@pytest.fixture(scope="module", params=["redis-6.2", "valkey-9.1"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with serving(request.param) as server:
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_understood_and_called_what_its_text_makes_of_it(server: RedisServer, name: str) -> None:
    with server.client() as client:
        assert client.script_load(script(name).text) == script(name).digest.decode()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_script_names_is_made_before_it(name: str) -> None:
    """Lua would take it for a global variable, of which there are none, and would only tell where it comes to it."""
    assert unmade(script(name).text.decode()) == []


def test_a_name_that_is_made_nowhere_is_found() -> None:
    assert unmade("local known = 1\nreturn known + UNKNOWN + unknown(known)") == ["UNKNOWN", "unknown"]


@pytest.mark.parametrize("name", NAMES)
def test_every_key_begins_with_the_base(name: str) -> None:
    text = script(name).text.decode()
    assert "KEYS[2]" not in text
    assert not re.search(r"call\('[A-Z]+', '", _code(text, keeps_texts=True))
    assert not [command for command in NEWER if re.search(f"'{command}'", text)]


def unmade(text: str) -> list[str]:
    """What a script uses and neither makes before nor is given, in the order of the letters."""
    made, lacking = set(GIVEN), set[str]()
    for line in _code(text).splitlines():
        made |= {word for way in MADE for names in re.findall(way, line) for word in re.findall(r"\w+", names)}
        lacking |= set(USED.findall(line)) - made - WORDS
    return sorted(lacking)


def _code(text: str, keeps_texts: bool = False) -> str:
    """A script without comments, and without what is in quotation marks."""
    bare = re.sub(r"--[^\n]*", "", text)
    return bare if keeps_texts else re.sub(r"'(?:\\.|[^'\\])*'", "''", bare)
