"""Chromium for the tests: the one of this machine, or else Debian's, kept in a folder of the project's own.

`python tests/browsing/chromium.py` gets it before any test waits for it.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)

from debian import Program  # noqa: E402  # its folder is known only now where this is run by itself

FOLDER = HERE.parents[1] / ".chromium"
NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""First the Chromium that can have no window: it loads a page for a quarter of the work, and shows the same."""
REMEDY = "put a Chromium on the PATH, under one of the names " + ", ".join(NAMES)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@dataclass(frozen=True)
class Chromium:
    """A program, and what has to be in its environment."""

    path: Path
    environment: Mapping[str, str]


def chromium(search: str | None = None, fonts: Path = Path("/etc/fonts/fonts.conf")) -> Chromium:
    """How to run Chromium here; `search` is where it is looked for in place of the PATH."""
    for name in NAMES:
        if path := shutil.which(name, path=search):
            return Chromium(Path(path), {})
    root = debians(_system()).root()
    environment = {
        "LD_LIBRARY_PATH": ":".join(sorted({str(library.parent) for library in root.glob("**/*-linux-gnu*/**/lib*.so*")}))
    }
    if not fonts.exists():
        environment["FONTCONFIG_FILE"] = str(_fonts_of(root))
    return Chromium(root / "usr/lib/chromium" / NAMES[0], environment)


def debians(system: Mapping[str, str]) -> Program:
    """The packages of the system's own release: of newer ones not even the C library would fit."""
    if system.get("ID") != "debian" or "VERSION_CODENAME" not in system:
        raise RuntimeError(f"the tests need Chromium, and this is no release of Debian to get it from: {REMEDY}")
    return Program(
        name="Chromium",
        folder=FOLDER,
        release=system["VERSION_CODENAME"],
        suites=("debian {}", "debian-security {}-security"),
        present=Path("/var/lib/dpkg/status"),
        wanted=("install", "--download-only", "--no-install-recommends", "--yes", NAMES[0]),
        remedy=f"run `{sys.executable} {Path(__file__)}` until it succeeds, or {REMEDY}",
    )


def _system() -> Mapping[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:  # not Linux
        return {}


def _fonts_of(root: Path) -> Path:
    """A description of the fonts that came along, for a system that has none: its own would be looked for in vain."""
    described = root / "fonts.conf"
    if not described.exists():
        made = root / f"fonts.conf.{os.getpid()}"
        made.write_text(
            f'<fontconfig><dir>{root}/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>\n'
        )
        made.rename(described)
    return described


if __name__ == "__main__":
    print(chromium().path)
