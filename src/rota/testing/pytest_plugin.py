"""Fixtures for tests of those who use Rota. pytest finds them where Rota is installed, and loads no more than this for it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # loaded by the tests that ask for a fixture
    from rota import Rota
    from rota.testing import Clock

INI = "rota_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(INI, "The Rota app that rota_app puts on an empty store for each test, as module:attribute.", default="")


@pytest.fixture
def rota_clock() -> Clock:
    """The time of `rota_app`: it stands still until the test moves it, as `rota_clock.move(hours=1)`."""
    from rota.testing import Clock

    return Clock()


@pytest.fixture
def rota_url() -> str:
    """Where `rota_app` keeps its jobs: in memory. Override it for another empty store."""
    return "memory://"


@pytest.fixture
def rota_under_test(pytestconfig: pytest.Config) -> Rota:
    """The app that the setting `rota_app` names, else a new one without tasks. Override it to name yours in code."""
    from rota import Rota

    named = str(pytestconfig.getini(INI)).strip()
    return _found(named) if named else Rota("memory://")


@pytest.fixture
def rota_app(rota_under_test: Rota, rota_url: str, rota_clock: Clock) -> Iterator[Rota]:
    """Your app, for this test on an empty store and by `rota_clock`; it is what it was when the test ends."""
    from rota.testing import fresh_store

    with fresh_store(rota_under_test, rota_url, clock=rota_clock) as app:
        yield app


def _found(named: str) -> Rota:
    from rota import Rota

    module, colon, attribute = named.partition(":")
    if not (module and colon and attribute):
        raise pytest.UsageError(f"{INI} = {named}: name your app as module:attribute, for example shop.tasks:app")
    try:
        found: object = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the app's own code lacks something
        raise pytest.UsageError(
            f"{INI} = {named}: there is no module {error.name!r} on Python's path: install your project, or name its directory "
            'with pytest\'s setting pythonpath, for example pythonpath = ["src"]'
        ) from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Rota):
        raise pytest.UsageError(f"{INI} = {named}: {attribute} of {module} is no Rota app, but of type {type(found).__name__}")
    return found
