"""Whether what a store is given is of the kind that it must be: much of it comes from an environment, where all is text."""

from __future__ import annotations

from rota.errors import ConfigError


def flag(name: str, value: object) -> bool:
    """`True` or `False`. Raises `ConfigError` naming the option."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} is neither True nor False: any text would count as true, 'false' as well")
    return value


def number(name: str, value: object, least: float) -> float:
    """A number that is not below `least`. Raises `ConfigError` naming the option."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise ConfigError(f"{name}={value!r} cannot be: it is a number, {least:g} or more")
    return value


def whole(name: str, value: object, least: int) -> int:
    """A whole number that is not below `least`. Raises `ConfigError` naming the option."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name}={value!r} cannot be: it is a whole number, {least} or more")
    return value


def text(name: str, value: object) -> str:
    """Text without null characters. Raises `ConfigError` naming the option."""
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"{name}={value!r} cannot be: it is text, without null characters")
    return value
