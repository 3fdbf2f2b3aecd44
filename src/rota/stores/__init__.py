"""Where jobs are kept. `open_store` finds the store for a URL."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from rota.errors import ConfigError, DriverMissing, StoreUnavailable
from rota.stores.base import Limits, Line, Store

__all__ = ["Limits", "Line", "Store", "open_store", "try_to_open"]

_BUILT_IN = {
    "sqlite": "rota.stores.sqlite:open_sqlite",
    "memory": "rota.stores.sqlite:open_memory",
    "postgresql": "rota.stores.postgres:open_postgres",
    "postgres": "rota.stores.postgres:open_postgres",
    "redis": "rota.stores.redis.store:open_redis",
    "rediss": "rota.stores.redis.store:open_redis",
    "unix": "rota.stores.redis.store:open_redis",
    "redis+sentinel": "rota.stores.redis.store:open_redis",
    "rediss+sentinel": "rota.stores.redis.store:open_redis",
}

_SHORTLY = 1.0
"""Seconds that a SQLite file is waited for by somebody who may be the one who locks it."""
_EXTRAS = {"postgresql": "postgres", "postgres": "postgres", "redis": "redis", "rediss": "redis", "unix": "redis"}
"""The extra that brings the driver of a scheme."""


def open_store(url: str, **options: object) -> Store:
    """The store that a URL names, not yet connected.

    It is one of Rota's own by its scheme, else an entry point of the group `rota.stores`.

    Raises `ConfigError` when the scheme, the URL or an option is not known, `DriverMissing` when the driver is not installed.
    """
    head, colon, _ = url.strip().partition(":")
    scheme = head.lower() if colon else ""
    opener = _opener(scheme, url)
    try:
        return opener(url, **options)
    except TypeError as error:
        raise ConfigError(f"the store {scheme}:// does not take these options ({', '.join(options)}): {error}") from error


def try_to_open(url: str, **options: object) -> None:
    """Make a SQLite file ready for a caller who may have a transaction open in it, and do nothing for other stores.

    Raises `StoreUnavailable`, which says so, after a second in which the file was locked.
    """
    if not url.startswith("sqlite:"):
        return  # elsewhere a transaction keeps nobody from making tables
    trial = open_store(url, **{**options, "patience": _SHORTLY})
    try:
        trial.open()
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"{error}, and where that keeps the tables from being made, call app.migrate() before it begins"
        ) from error
    finally:
        trial.close()


def _opener(scheme: str, url: str) -> Callable[..., Store]:
    if scheme in _BUILT_IN:
        module, _, name = _BUILT_IN[scheme].partition(":")
        try:
            opener: Callable[..., Store] = getattr(import_module(module), name)
        except ImportError as error:
            extra = _EXTRAS.get(scheme.partition("+")[0])
            mend = "use a Python that was built with it" if extra is None else f"pip install 'rota[{extra}]'"
            raise DriverMissing(f"the store {scheme}:// needs a driver that is missing ({error}): {mend}") from error
        return opener
    # Imported here: it takes longer than all the rest, and the stores that come with Rota need no search.
    from importlib.metadata import entry_points

    others = entry_points(group="rota.stores")
    if scheme in others.names:
        found: Callable[..., Store] = others[scheme].load()
        return found
    plain, plus, _ = scheme.partition("+")
    if plus and plain in _BUILT_IN:
        raise ConfigError(f"{scheme}:// names a driver, as SQLAlchemy's URLs do: write {plain}://")
    known = ", ".join(f"{name}://" for name in sorted({*_BUILT_IN, *others.names}))
    raise ConfigError(f"no store is known for {scheme or url!r}: the URL starts with one of {known}")
