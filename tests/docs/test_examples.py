"""The examples in the README, the documentation and the docstrings run as they stand, and leave nothing behind."""

from __future__ import annotations

import doctest
import importlib
import logging
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Document
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

import rota
from fresh import fresh_url
from rota import Rota
from rota.worker import Worker

ROOT = Path(__file__).parents[2]
REDIS = "redis://localhost:6379/0"
"""What the pages call a server; here it is one of the tests'."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    "rota",
    *sorted(module.name for module in pkgutil.walk_packages(rota.__path__, "rota.") if "testing" not in module.name),
]


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example writes goes to a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROTA_URL", raising=False)


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """A handler that an example adds to Rota's logger goes with the example."""
    log = logging.getLogger("rota")
    before = log.handlers.copy()
    yield
    log.handlers[:] = before


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    shown = page.read_text("utf-8")
    if REDIS in shown:
        with fresh_url("redis", request, tmp_path) as url:
            (tmp_path / page.name).write_text(shown.replace(f'"{REDIS}"', repr(url)), "utf-8")
            _run_examples(tmp_path / page.name)
    else:
        _run_examples(page)


def _run_examples(page: Path) -> None:
    document = Document.parse(str(page), PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS), SkipParser())
    document.namespace["__name__"] = "tasks"
    left_open: dict[int, Rota | Worker] = {}
    try:
        for example in document.examples():
            example.evaluate()
            left_open |= {id(each): each for each in document.namespace.values() if isinstance(each, Rota | Worker)}
    finally:  # as the end of the example's process would
        for each in reversed(left_open.values()):
            each.stop() if isinstance(each, Worker) else each.close()


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_modules_docstrings_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
