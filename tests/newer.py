"""A Rota with more migrations than there are, and tables that it made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rota import Rota
from rota.stores import queries

LATER = 999
GO_ON = "-- Older processes go on.\n\nalter table rota_jobs add column colour text;\n"
END = "-- Older processes end.\n\nalter table rota_jobs drop column looks;\n"


@contextmanager
def newer(*texts: str) -> Iterator[str]:
    """A Rota with these migrations more than there are, for as long as the block lasts; the name of the last."""
    known = queries.migrations
    more = [(number, f"{number:04}_later", text) for number, text in enumerate(texts, LATER)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "migrations", lambda dialect: [*known(dialect), *more])
        yield more[-1][1]


def migrated(url: str, text: str) -> None:
    """Have the tables changed by a newer Rota."""
    with newer(text) as name, Rota(url) as app:
        assert app.migrate()[-1] == name
