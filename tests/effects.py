"""Connections of a body's own to the store's database, with a table for what bodies do there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg

from rota import Rota

Connection = Any
"""A `sqlite3.Connection` or a `psycopg.Connection`: both begin a transaction with the first write."""


def connect(url: str) -> Connection:
    """A connection to where this store is, which sees its own tables first."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        return sqlite3.connect(path, timeout=30, isolation_level="IMMEDIATE", check_same_thread=False)
    return psycopg.connect(conninfo_of(url))


def conninfo_of(url: str) -> str:
    """A Postgres store's URL as drivers know it; the store's schema is looked at first."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    quoted = '"{}"'.format(query.pop("schema", "public").replace('"', '""')).replace("\\", r"\\").replace(" ", r"\ ")
    query["options"] = f"-csearch_path={quoted}"
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))


@contextmanager
def transaction(url: str) -> Iterator[Connection]:
    """A connection whose transaction is committed at the end, or rolled back by what is raised."""
    connection = connect(url)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def prepare(url: str) -> None:
    with transaction(url) as own:
        own.execute("create table effects (job text not null)")


def ready(url: str) -> str:
    """The same URL, once the store's tables are there, and the one for effects."""
    with Rota(url) as app:
        app.store.open()
    prepare(url)
    return url


def note_effect(own: Connection, job: str) -> None:
    own.execute(f"insert into effects (job) values ('{job}')")


def effects(url: str) -> list[str]:
    """The jobs whose effects are there."""
    with transaction(url) as own:
        return [str(job) for (job,) in own.execute("select job from effects").fetchall()]
