"""What is printed from the code is current."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rota
import rota.retries
from rota.model import MOVES
from rota.stores.base import Store
from rota.worker import Worker

DOCS = Path(__file__).parents[2] / "docs"


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_reference", DOCS / "build_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILDER = _builder()
REFERENCE = (DOCS / "reference.md").read_text("utf-8")


@pytest.mark.parametrize("page", sorted(BUILDER.pages()), ids=lambda page: page.name)
def test_a_page_says_what_the_code_says(page: Path) -> None:
    written: str = BUILDER.pages()[page]
    if page.read_text("utf-8") != written:
        pytest.fail(f"{page.name} is out of date: run python docs/build_reference.py", pytrace=False)


@pytest.mark.parametrize("name", sorted({*rota.__all__} - {"__version__"}) + sorted(rota.retries.__all__))
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert f"\n### `{name}`\n" in REFERENCE


@pytest.mark.parametrize("kind", [Worker, Store])
def test_every_operation_of_workers_and_stores_is_in_the_reference(kind: type) -> None:
    operations = [name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")]
    assert operations
    for name in operations:
        assert f"\n#### `{kind.__name__}.{name}`\n" in REFERENCE


def test_the_table_of_moves_has_a_row_for_each_move() -> None:
    table = BUILDER.moves()
    assert [line.split("`")[1] for line in table.splitlines()[2:]] == [move.value for move in MOVES]
