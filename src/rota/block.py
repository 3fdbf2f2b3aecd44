"""Blocks in which an app's jobs are enqueued on a connection of the caller's own: what `app.within` answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rota.errors import ConfigError

_blocks: ContextVar[tuple[Block, ...]] = ContextVar("rota_blocks", default=())


class Block:
    """From its beginning to its end, jobs of one app go over one connection, in this context and in those copied from it.

    Tasks that begin inside are thus part of it, and other threads are not; once it has ended, none is.
    """

    __slots__ = ("_open", "connection", "owner")

    def __init__(self, owner: object, connection: object) -> None:
        self.owner = owner
        self.connection = connection
        self._open = False

    def __enter__(self) -> None:
        if self._open:
            raise ConfigError("this block has begun already: call app.within(connection) for each")
        self._open = True
        _blocks.set((*_blocks.get(), self))

    def __exit__(self, *_: object) -> None:
        self._open = False  # also where another context runs the end than ran the beginning, as in generators of frameworks
        _blocks.set(tuple(block for block in _blocks.get() if block is not self))

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    @staticmethod
    def of(owner: object) -> Block | None:
        """The innermost block of this owner that is open here."""
        return next((block for block in reversed(_blocks.get()) if block.owner is owner and block._open), None)

    @staticmethod
    @contextmanager
    def none() -> Iterator[None]:
        """For what runs here and belongs elsewhere: it is in no block."""
        before = _blocks.get()
        _blocks.set(())
        try:
            yield
        finally:
            _blocks.set(before)
