"""What a SQLite file lies on: whether it may be written there, and whether locks can be trusted."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rota.errors import ConfigError

_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "9p", "vboxsf", "vmhgfs", "prl_fs", "virtiofs"}
)

_OCTAL = re.compile(r"\\([0-7]{3})")


def check_writable(path: Path) -> None:
    """Raises `ConfigError` naming the path when a SQLite file cannot be kept there."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"the SQLite file {path} cannot be made: there is no directory {folder}. Make it, or change the path")
    if path.is_dir():
        raise ConfigError(f"{path} is a directory: name a file in it, for example {path / 'jobs.db'}")
    # SQLite keeps its log beside the file, so the directory must be writable too.
    for place in (path, folder):
        if place.exists() and not os.access(place, os.W_OK):
            raise ConfigError(
                f"the SQLite file {path} cannot be written: this user may not write {place}. Change its rights or the path"
            )


def warning(path: Path) -> str | None:
    """A warning when the file lies on a network or shared file system."""
    kind = file_system(path)
    if kind in _SHARED or kind.startswith("fuse"):
        return (
            f"the SQLite file {path} lies on a network or shared file system ({kind}), where locks fail and files are damaged: "
            "move it to a local disk, or use Postgres"
        )
    return None


def file_system(path: Path, table: Path = Path("/proc/mounts")) -> str:
    """The type of the file system that holds a path, as the kernel names it; empty where there is no such table."""
    try:
        lines = os.fsdecode(table.read_bytes()).splitlines()
    except OSError:
        return ""
    place = path.resolve()
    best, kind = -1, ""
    for line in lines:
        _, mount, found, *_ = line.split(" ")
        point = Path(_OCTAL.sub(lambda escaped: chr(int(escaped[1], 8)), mount))  # the kernel writes a space as \040
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), found
    return kind
