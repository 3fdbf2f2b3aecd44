"""Visitors of a site: their pages, what these complain of, and what they show."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Error, Page

AXE = files("axe_playwright_python") / "axe.min.js"
_NO_COMPLAINTS = tuple(
    f"Failed to load resource: {why}" for why in ("the server responded", "net::ERR_CONNECTION_", "net::ERR_EMPTY_RESPONSE")
)
PATIENCE = 20_000
"""How many milliseconds something on a page may take."""


class Visits:
    """Pages that a test looks at, each of a visitor of its own.

    What a page's console calls an error, such as a style that a policy forbids or a script that raises, is in `complaints`, for
    which the test fails in the end. That an answer is no success is not, nor that a server has gone while a page loads: it is
    for the test to tell whether that is right.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._pages: list[Page] = []
        self.complaints: list[str] = []

    def page(self, **options: Any) -> Page:
        """A page of a new visitor; `options` are of Playwright's `new_context`."""
        page = self._browser.new_context(**{"reduced_motion": "reduce", **options}).new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        self._pages.append(page)
        return page

    def seen(self, picture: Callable[[int], Path]) -> list[str]:
        """What each page shows, in words, after a picture of it was written where that is told."""
        return [_seen(page, picture(number)) for number, page in enumerate(self._pages, 1)]

    def close(self) -> None:
        for page in self._pages:
            page.context.close()

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type == "error" and not said.text.startswith(_NO_COMPLAINTS):
            self.complaints.append(f"{said.location.get('url', '')}: {said.text}")


def accessible(page: Page) -> None:
    """Raise for what keeps somebody from using a page, in its light and in its dark colours."""
    found = faults(page, "light") + faults(page, "dark")
    assert not found, f"not everybody can use {page.url}:\n" + "\n".join(found)


def faults(page: Page, scheme: Literal["light", "dark"]) -> list[str]:
    """What axe-core finds wrong with a page in these colours. It takes the ground of a page that sets none for white."""
    page.emulate_media(color_scheme=scheme)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    violations = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [
        f"{each['id']} ({scheme}): {each['help']}: {node['html']}: {node['failureSummary']}"
        for each in violations
        for node in each["nodes"]
    ]


def _seen(page: Page, picture: Path) -> str:
    try:
        page.screenshot(path=picture, full_page=True, timeout=5_000)
        return f"{page.url}\n{page.title()}\n\n{page.inner_text('body', timeout=5_000)}\n\nA picture of it: {picture}"
    except Error as error:  # the page may have crashed, or never been there
        return f"{page.url}: {error}"
