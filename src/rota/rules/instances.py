"""Which rooms a job needs: an instance of each limit of its task, one for each key where the limit has keys."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from inspect import Parameter, Signature
from typing import Any
from uuid import UUID

from msgspec import Struct

from rota.codec import clean, failure_of
from rota.codec.text import escape
from rota.codec.wire import a_type
from rota.errors import ArgumentsError
from rota.rules.limits import Declared

KEY_LIMIT = 200
"""A key's text is no longer than this: stores keep it in an index."""


class Instance(Struct, frozen=True, order=True, cache_hash=True):
    """The room that jobs share: a limit, and the text of a key where it has keys.

    They sort, so that whoever locks several locks them in one order.

    >>> print(Instance("partner"), Instance("reports", "42"))
    partner reports [42]
    """

    limit: str
    key: str = ""
    """JSON, hence never empty where the limit has keys."""

    def __str__(self) -> str:
        return f"{self.limit} [{self.key}]" if self.key else self.limit


class BadKey(ArgumentsError):
    """A limit's key function gave no usable key for these arguments."""


def instances_of(limits: Iterable[Declared], arguments: Mapping[str, object]) -> tuple[Instance, ...]:
    """The instances that a job with these arguments falls under, in the order of the limits.

    `arguments` are those of `by_name`; they are not looked at where no limit has a key. Raises `BadKey`.

    >>> from rota.rules.limits import Limit, limits_of
    >>> limits = limits_of("app.build", [Limit(2, key=lambda tenant: tenant), 20])
    >>> print(*instances_of(limits, {"tenant": "acme", "report": 7}), sep=", ")
    concurrency of app.build by tenant ["acme"], concurrency of app.build
    """
    return tuple(
        Instance(limit.name) if limit.key is None else Instance(limit.name, _key(limit, arguments)) for limit in limits
    )


def by_name(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments as a key function gets them: by the names of the function's parameters, defaults filled in.

    `*args` come as one tuple under their name; each of `**kwargs` comes under its own. Raises `BadKey` when they do not fit.

    >>> from inspect import signature
    >>> by_name(signature(lambda tenant, report=1, *more, **rest: ...), ("acme",), {"lang": "de"})
    {'tenant': 'acme', 'report': 1, 'more': (), 'lang': 'de'}
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise BadKey(f"the arguments do not fit the task, so its limits have no key for them: {error}") from None
    bound.apply_defaults()
    rest = next((name for name, parameter in signature.parameters.items() if parameter.kind is Parameter.VAR_KEYWORD), None)
    named = {name: value for name, value in bound.arguments.items() if name != rest}
    more = bound.arguments[rest] if rest else {}
    return named | {name: value for name, value in more.items() if name not in named}


def key_text(value: object) -> str:
    """A key's value as JSON, the same for equal values whether they went through the store or not.

    So a whole `float` is written as an `int`, a list like a tuple, a UUID as its text and a member of an enum as its value.
    Long text is cut, with a digest of the whole. Raises `ValueError` for what can be no key.

    >>> key_text((7, "acme", 2.0)), key_text("7")
    ('[7,"acme",2]', '"7"')
    """
    text = _written(value)
    if len(text) <= KEY_LIMIT:
        return text
    from hashlib import sha256  # it brings OpenSSL along, megabytes that few need: long keys are rare

    digest = sha256(text.encode()).hexdigest()[:32]
    return f"{text[: KEY_LIMIT - len(digest) - 1]}…{digest}"


def _key(limit: Declared, arguments: Mapping[str, object]) -> str:
    assert limit.key is not None
    takes = arguments if limit.takes is None else limit.takes & arguments.keys()
    try:
        value = limit.key(**{name: arguments[name] for name in takes})
    except KeyboardInterrupt:
        raise  # it is meant for whoever asks
    except BaseException as error:  # a key of the user's may even exit
        failure = failure_of(error)
        said = f"raised {failure.type}: {clean(failure.message, 300)}; mend it, or give it arguments that it can take"
        raise BadKey(f"the key of limit {limit.name!r} {said}") from error
    try:
        return key_text(value)
    except (ValueError, RecursionError) as error:
        found = error if isinstance(error, ValueError) else f"{a_type(value)} that is nested too deeply"
        raise BadKey(
            f"the key of limit {limit.name!r} answered {found}: answer text, a finite number, a bool, None, a UUID, or a tuple "
            "of these, for example str(…)"
        ) from None


def _written(value: object) -> str:
    match value:
        case None:
            return "null"
        case Enum():
            return _written(value.value)
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= _HUGE:
            raise ValueError("a number of more than 1,000 digits")
        case int():
            return int.__repr__(value)
        case float() if not math.isfinite(value):
            raise ValueError(float.__repr__(value))
        case float():
            return int.__repr__(int(value)) if value.is_integer() else float.__repr__(value)
        case str():
            # Control characters and lone surrogates, which not every store takes, become escapes that JSON does not know.
            return escape(json.dumps(value, ensure_ascii=False))
        case UUID():
            return f'"{value}"'
        case tuple() | list():
            return f"[{','.join(map(_written, value))}]"
        case _:
            raise ValueError(a_type(value))


_HUGE = 10**1_000
"""A number from here on has no text in Python by default, or soon would have none."""
