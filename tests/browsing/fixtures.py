"""A real browser for tests: one for the whole session, and visitors who know nothing of each other.

Where a test fails, its report has what each page showed and where the pictures of it are.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from browsing.chromium import FLAGS, FOLDER, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browsing.visits import Visits

FAILED = FOLDER / "failed"
"""Where pictures of pages on which a test failed are."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """A browser without a history, and the event loop on which it is spoken to.

    The loop is in the midst of running for as long as the browser is there. Only within a test that looks at pages the thread
    is told of it: others could run no loop of their own.
    """
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)
    program = chromium()
    home = str(tmp_path_factory.mktemp("chromium"))
    environment = os.environ | program.environment | {"XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
    with sync_playwright() as playwright:
        # Playwright gives each browser that it launches a new empty folder for its data.
        browser = playwright.chromium.launch(executable_path=program.path, args=FLAGS, env=environment)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()
    asyncio._set_running_loop(None)


@pytest.fixture
def visits(request: pytest.FixtureRequest, browser: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Visits]:
    """Opens pages for visitors who know nothing of each other."""
    from browsing.visits import Visits

    program, loop = browser
    asyncio._set_running_loop(loop)
    visits = request.node.stash[VISITS] = Visits(program)
    try:
        yield visits
    finally:
        visits.close()
        asyncio._set_running_loop(None)
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
