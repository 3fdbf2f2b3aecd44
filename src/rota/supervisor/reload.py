"""Watching Python files for changes, in development. What counts is their content: opening or touching one changes nothing."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from rota.errors import ConfigError


class FilesChanged(Struct, frozen=True):
    """The content of these files is another than before; some may be new or gone."""

    files: list[Path]


class Watch:
    """Watches directories and all below them from a thread of its own. Raises `ConfigError` where the library is missing."""

    def __init__(self, folders: Sequence[Path], post: Callable[[FilesChanged], None]) -> None:
        try:
            from watchfiles import PythonFilter, watch
        except ModuleNotFoundError:
            raise ConfigError("--reload needs the package watchfiles: pip install 'rota[reload]'") from None
        logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it counts each change, also those that change nothing
        self._post = post
        self._stopping = threading.Event()
        self._filter = PythonFilter()  # passes over __pycache__, .git, .venv and their like
        self._changes = watch(
            *folders,
            watch_filter=self._filter,
            stop_event=self._stopping,
            rust_timeout=1_000,
            debounce=400,
            raise_interrupt=False,
        )
        self._known = {file: _content(file) for folder in folders for file in self._files(folder)}
        self._thread = threading.Thread(target=self._serve, name="rota-reload", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(3)

    def _files(self, folder: Path) -> Iterator[Path]:
        """The Python files that are watched. A virtual environment may have tens of thousands, so it is not looked into."""
        for place, folders, files in os.walk(folder):
            folders[:] = [each for each in folders if each not in self._filter.ignore_dirs]
            if "pyvenv.cfg" in files:
                folders.clear()
            yield from (Path(place, file) for file in files if file.endswith(".py"))

    def _serve(self) -> None:
        for changes in self._changes:
            changed = []
            for file in sorted({Path(path) for _, path in changes}):
                content = _content(file)
                if content != self._known.get(file):
                    self._known[file] = content
                    changed.append(file)
            if changed:
                self._post(FilesChanged(changed))


def _content(file: Path) -> bytes | None:
    """A digest of what is in the file; `None` where there is none."""
    try:
        return hashlib.blake2b(file.read_bytes(), digest_size=16).digest()
    except OSError:
        return None
