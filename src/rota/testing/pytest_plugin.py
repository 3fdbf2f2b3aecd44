"""Fixtures for tests of those who use Rota. pytest finds them where Rota is installed, and loads no more than this for it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, NoReturn

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
    """The app that the setting `rota_app` names. Override it to name yours in code."""
    named = str(pytestconfig.getini(INI)).strip()
    if not named:
        _fail(
            f"nothing says which app rota_app is: set {INI} = module:attribute, for example {INI} = shop.tasks:app, "
            "in the part of your settings that is pytest's, or override the fixture rota_under_test with one that answers "
            'your app (or Rota("memory://") for a new one without tasks)'
        )
    return _found(named)


@pytest.fixture
def rota_app(rota_under_test: Rota, rota_url: str, rota_clock: Clock) -> Iterator[Rota]:
    """Your app, for this test on an empty store and by `rota_clock`; it is on its own again when the test ends."""
    from rota.testing import fresh_store

    with fresh_store(rota_under_test, rota_url, clock=rota_clock) as app:
        yield app


def _found(named: str) -> Rota:
    from rota import Rota

    name, colon, attribute = named.partition(":")
    if not (name and colon and attribute) or not all(part.isidentifier() for part in f"{name}.{attribute}".split(".")):
        _fail(f"{INI} = {named}: name your app as module:attribute, for example shop.tasks:app")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the app's own code lacks something
        _fail(
            f"{INI} = {named}: there is no module {error.name!r} on Python's path: install your project, or name its directory "
            "with pytest's setting pythonpath, for example pythonpath = src"
        )
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            _fail(f"{INI} = {named}: {name} has no attribute {attribute!r}; {_apps_in(module)}")
        found = getattr(found, part)
    if not isinstance(found, Rota):
        is_factory = isinstance(found, FunctionType)
        more = "override the fixture rota_under_test with one that calls it" if is_factory else _apps_in(module)
        _fail(f"{INI} = {named}: {attribute!r} is no Rota app, but of type {type(found).__name__}; {more}")
    return found


def _apps_in(module: ModuleType) -> str:
    from rota import Rota

    names = [f"{module.__name__}:{name}" for name, value in vars(module).items() if isinstance(value, Rota)]
    return f"the Rota apps there: {', '.join(names)}" if names else f"there is no Rota app at the top of {module.__name__}"


def _fail(said: str) -> NoReturn:
    """Fail the test that asks, in these words alone."""
    pytest.fail(said, pytrace=False)
