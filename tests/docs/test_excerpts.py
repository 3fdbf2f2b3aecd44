"""What the documentation shows of a file is in that file, line for line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXCERPTS = [
    (page.name, path, excerpt)
    for page in sorted((ROOT / "docs").glob("*.md"))
    for path, excerpt in re.findall(
        r"^```python\n# (examples/\S+)\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
]


@pytest.mark.parametrize(("page", "path", "excerpt"), EXCERPTS, ids=[f"{page} {path}" for page, path, _ in EXCERPTS])
def test_an_excerpt_is_in_its_file(page: str, path: str, excerpt: str) -> None:
    assert f"\n{excerpt}" in (ROOT / path).read_text("utf-8"), f"{page} shows what {path} does not say"


def test_the_guestbook_is_shown_in_excerpts() -> None:
    assert len({path for page, path, _ in EXCERPTS if page == "guestbook.md"}) >= 5
