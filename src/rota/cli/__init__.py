"""The command line. Each command has a module of its own, imported when it is called, so that a worker starts fast."""

from __future__ import annotations

import io
import sys

from rota.cli.early import hold


def main() -> None:
    """Run the command that the process was called with, and end the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a terminal or a pipe cannot show is escaped: a job's words must never end a command.
            stream.reconfigure(errors="backslashreplace")
    hold()
    from rota.cli.group import rota

    rota(prog_name="rota")
