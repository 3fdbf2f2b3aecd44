"""The browser that tests of pages use: what it shows, what it keeps apart, and what it says where a test fails."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browsing.chromium import NAMES, chromium, debians
from browsing.fixtures import Driven
from browsing.visits import Visits, accessible

GREETING = """<!doctype html><html lang="en"><title>A greeting</title><meta name="viewport" content="width=device-width">
<main><h1>Who is there?</h1><form><label>Name <input name="name"></label> <button>Say</button></form><output></output></main>
<script>
  document.querySelector("form").addEventListener("submit", event => {
    event.preventDefault();
    document.querySelector("output").textContent = `Good day, ${document.querySelector("input").value}`;
  });
</script></html>"""

FAILING = """
def test_that_fails(page):
    page.set_content("<title>A shop</title><p>Nothing is left</p>")
    assert page.get_by_text("Nothing").text_content() == "All is there"

def test_that_a_page_complains_of(page):
    page.set_content("<script>nothing.at.all</script>")
"""


class _Site(BaseHTTPRequestHandler):
    """Says how often somebody was here."""

    def do_GET(self) -> None:
        if self.path != "/":  # browsers ask for an icon
            self.send_error(404)
            return
        before = re.search(r"visits=(\d+)", self.headers.get("Cookie", ""))
        now = int(before[1]) + 1 if before else 1
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", f"visits={now}")
        self.end_headers()
        self.wfile.write(f"<title>Visits</title><p>Visit {now}".encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        serving.join()


def test_a_page_does_what_it_does_for_a_person(page: Page) -> None:
    page.set_content(GREETING)
    page.get_by_label("Name").fill("Ada")
    page.get_by_role("button", name="Say").click()
    expect(page.get_by_role("status")).to_have_text("Good day, Ada")


def test_a_visitor_is_known_again_and_no_other_is(visits: Visits, site: str) -> None:
    one, other = visits.page(), visits.page()
    one.goto(site)
    one.reload()
    other.goto(site)
    expect(one.get_by_text("Visit 2")).to_be_visible()
    expect(other.get_by_text("Visit 1")).to_be_visible()


def test_what_keeps_somebody_from_using_a_page_is_found(page: Page) -> None:
    page.set_content(GREETING)
    accessible(page)
    page.set_content(GREETING.replace("<label>Name", "").replace("</label>", ""))
    with pytest.raises(AssertionError, match="Form elements must have labels"):
        accessible(page)


def test_what_cannot_be_read_in_dark_colours_is_found(page: Page) -> None:
    style = "<style>@media (prefers-color-scheme: dark) { h1 { color: #777; background: #666 } }</style>"
    page.set_content(GREETING.replace("<main>", style + "<main>"))
    with pytest.raises(AssertionError, match=r"color-contrast \(dark\)"):
        accessible(page)


def test_a_loop_runs_between_tests_of_pages(driven: Driven) -> None:
    async def answer() -> str:
        return "here"

    assert asyncio.run(answer()) == "here"
    with driven.in_use() as browser:
        assert browser.is_connected()


def test_a_failure_is_reported_with_what_the_page_showed(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(FAILING)
    here = {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "browsing.fixtures", "--rootdir", str(tmp_path), str(tmp_path)]
    said = subprocess.run(
        command, cwd=tmp_path, env=os.environ | here, capture_output=True, text=True, check=False, timeout=100
    ).stdout
    assert "1 failed, 1 passed, 1 error" in said
    assert "A shop\n\nNothing is left" in said
    assert "about:blank: nothing is not defined" in said
    [picture] = map(Path, re.findall(r"A picture of it: (\S+)", said))
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()


def test_a_chromium_of_the_machine_is_taken_first(tmp_path: Path) -> None:
    own = tmp_path / NAMES[-1]
    own.touch(mode=0o755)
    assert chromium(str(tmp_path)).path == own


def test_a_system_that_has_no_chromium_to_get_is_told_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"the tests need Chromium.*put a Chromium on the PATH"):
        debians({"ID": "fedora"})
