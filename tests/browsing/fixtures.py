"""A real browser for tests: one for the whole session, and visitors who know nothing of each other.

Where a test fails, its report has what each page showed and where the pictures of it are.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from browsing.chromium import FLAGS, FOLDER, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browsing.visits import Visits

FAILED = FOLDER / "failed"
"""Where pictures of pages on which a test failed are."""


@dataclass(frozen=True)
class Driven:
    """A browser, and the event loop on which it is spoken to.

    The loop is in the midst of running for as long as the browser is there. The thread is told of it only while the browser is
    in use: it could run no other.
    """

    browser: Browser
    loop: asyncio.AbstractEventLoop

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    """A browser without a history, for all tests of a process."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)
    program = chromium()
    home = str(tmp_path_factory.mktemp("chromium"))
    environment: dict[str, str | float | bool] = {
        **os.environ,
        **program.environment,
        "XDG_CONFIG_HOME": home,
        "XDG_CACHE_HOME": home,
    }
    with sync_playwright() as playwright:
        # Playwright gives each browser that it launches a new empty folder for its data.
        browser = playwright.chromium.launch(executable_path=program.path, args=FLAGS, env=environment)
        driven = Driven(browser, asyncio.get_running_loop())
        asyncio._set_running_loop(None)
        yield driven
        asyncio._set_running_loop(driven.loop)  # whose end takes that back
        browser.close()


@pytest.fixture
def visits(request: pytest.FixtureRequest, driven: Driven) -> Iterator[Visits]:
    """Opens pages for visitors who know nothing of each other."""
    from browsing.visits import Visits

    with driven.in_use() as browser:
        visits = request.node.stash[VISITS] = Visits(browser)
        yield visits
        visits.close()
    assert not visits.complaints, "\n".join(visits.complaints)


@pytest.fixture
def page(visits: Visits) -> Page:
    """A page of a visitor who was never here before."""
    return visits.page()


VISITS = pytest.StashKey["Visits"]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    visits = item.stash.get(VISITS, None)
    if visits is not None and report.when == "call" and report.failed:
        FAILED.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", item.nodeid)[-150:].strip("-")
        for number, seen in enumerate(visits.seen(lambda number: FAILED / f"{name}-{number}.png"), 1):
            report.sections.append((f"page {number}", seen))
    return report
