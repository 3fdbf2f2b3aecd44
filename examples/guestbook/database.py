"""The guestbook's database, in which Rota keeps its jobs too, so that one transaction holds an account and its letter."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.orm import Session

from .models import Base

PATIENCE = 15
"""Seconds that one who writes to a SQLite file waits for another."""


class Database:
    """Sessions that read, and sessions that write."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(_for_sqlalchemy(make_url(url)))
        self._writing = self._engine.execution_options(writing=True)
        if self._engine.dialect.name == "sqlite":
            _settle_transactions(self._engine)

    def reading(self) -> Session:
        return Session(self._engine)

    def writing(self) -> Session:
        return Session(self._writing)

    def prepare(self) -> None:
        """Make the tables where they are missing. Processes that start at once take turns."""
        with self._writing.begin() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execute(text("select pg_advisory_xact_lock(7300)"))
            Base.metadata.create_all(connection)

    def close(self) -> None:
        self._engine.dispose()


def _for_sqlalchemy(url: URL) -> URL:
    """SQLAlchemy names the driver in the URL, Rota does not."""
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _settle_transactions(engine: Engine) -> None:
    """A transaction that will write says so as it begins: SQLite lets nobody write who read what has changed since."""

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions begin below, rather than where the driver would begin them
        connection.execute(f"pragma busy_timeout = {PATIENCE * 1000}")
        connection.execute("pragma foreign_keys = on")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("begin immediate" if writing else "begin")
