"""A function's parameters as a msgspec Struct: the form that its arguments are filled into, written and read by.

Built from the annotations, which are resolved here: names in them must exist by now.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from inspect import Parameter
from pathlib import PurePath
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec.json import Decoder

from rota.codec.wire import revive
from rota.errors import ArgumentsError

POSITIONAL_ONLY, NAMED, VARARGS, KEYWORD_ONLY, VARKW = (
    Parameter.POSITIONAL_ONLY,
    Parameter.POSITIONAL_OR_KEYWORD,
    Parameter.VAR_POSITIONAL,
    Parameter.KEYWORD_ONLY,
    Parameter.VAR_KEYWORD,
)


class Form(NamedTuple):
    """What is known of a function's parameters once its annotations are resolved."""

    signature: inspect.Signature
    struct: type[msgspec.Struct]
    """One field a parameter, `UNSET` where the call leaves it to its default."""
    decoder: Decoder[Any]
    names: tuple[str, ...]
    """The parameters, in the order of the fields."""
    labels: dict[str, str]
    """The JSON name of each parameter's field."""
    plain: bool
    """Whether every parameter can be given by name and name its field, so that the payload is the struct as it is."""
    positionals: int
    """How many arguments may be given by position to a plain function."""
    complete: bool
    """Whether no parameter has a default, so that nothing is ever left out."""


def form_of(function: Callable[..., Any], name: str) -> Form:
    """Read the function's parameters. Raises `ArgumentsError` naming the one that no payload can carry."""
    signature = signature_of(function, name)
    parameters = tuple(signature.parameters.values())
    # Structs cannot have fields like `__x`, the old way to say positional-only.
    plain = all(parameter.kind in (NAMED, KEYWORD_ONLY) and parameter.name[:2] != "__" for parameter in parameters)
    types = {parameter.name: _field_type(function, parameter, name) for parameter in parameters}
    labels = {parameter.name: _label(index, parameter) for index, parameter in enumerate(parameters)}
    struct = _struct(parameters, types, labels, plain)
    return Form(
        signature=signature,
        struct=struct,
        decoder=_decoder(struct, parameters, types, name),
        names=tuple(labels),
        labels=labels,
        plain=plain,
        positionals=sum(parameter.kind is NAMED for parameter in parameters),
        complete=all(parameter.default is Parameter.empty for parameter in parameters),
    )


def result_decoder(function: Callable[..., Any], name: str) -> Decoder[Any]:
    """A decoder for what the function returns (for a coroutine function, what awaiting it gives)."""
    annotation = signature_of(function, name).return_annotation
    if annotation is Parameter.empty:
        return Decoder()
    kind = _resolve(function, "return", annotation, f"{name}: the return annotation")
    if get_origin(kind) in (Coroutine, Awaitable):
        kind = get_args(kind)[-1]
    if kind in (typing.NoReturn, typing.Never):
        kind = None
    _refuse_strangers(kind, f"{name}: the result")
    return Decoder(kind, dec_hook=revive)


def signature_of(function: Callable[..., Any], name: str) -> inspect.Signature:
    """The function's signature, its annotations as written. Raises `ArgumentsError` where Python cannot tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError, NameError) as error:
        raise ArgumentsError(f"{name}: its signature cannot be read ({error}): declare a plain function as the task") from error


def _struct(
    parameters: tuple[Parameter, ...], types: dict[str, Any], labels: dict[str, str], plain: bool
) -> type[msgspec.Struct]:
    def field(index: int, parameter: Parameter) -> Any:
        name = parameter.name if plain else f"p{index}"
        required = parameter.default is Parameter.empty and parameter.kind not in (VARARGS, VARKW)
        return (name, types[parameter.name]) if required else (name, types[parameter.name], msgspec.UNSET)

    fields = [field(index, parameter) for index, parameter in enumerate(parameters)]
    # Positions are the constructor's own: it binds a plain call at the speed of C.
    by_position = sum(parameter.kind is NAMED for parameter in parameters) if plain else 0
    return msgspec.defstruct(
        "Arguments",
        fields[by_position:],
        bases=(msgspec.defstruct("Positional", fields[:by_position]),),
        kw_only=True,
        forbid_unknown_fields=True,
        rename=None if plain else {f"p{index}": label for index, label in enumerate(labels.values())},
    )


def _label(index: int, parameter: Parameter) -> str:
    # A positional-only parameter may bear the name of a key of **kwargs, so its field is known by its position.
    if parameter.kind is POSITIONAL_ONLY:
        return f"{index}"
    if parameter.kind is VARARGS:
        return "*"
    return "**" if parameter.kind is VARKW else parameter.name


def _field_type(function: Callable[..., Any], parameter: Parameter, name: str) -> Any:
    where = f"{name}: the annotation of {parameter.name!r}"
    kind: Any = Any
    if parameter.annotation is not Parameter.empty:
        kind = _resolve(function, parameter.name, parameter.annotation, where)
    if parameter.kind is VARARGS:
        return tuple[kind, ...]
    if parameter.kind is VARKW:
        return get_args(kind)[0] if get_origin(kind) is typing.Unpack else dict[str, kind]
    return kind


def _resolve(function: Callable[..., Any], key: str, annotation: object, where: str) -> Any:
    inner = inspect.unwrap(function)
    inner = getattr(inner, "func", inner)  # functools.partial
    globals_ = getattr(inner, "__globals__", None) or getattr(type(inner).__call__, "__globals__", {})
    holder = type("Holder", (), {"__annotations__": {key: annotation}})
    try:
        kind = typing.get_type_hints(holder, globalns=globals_, include_extras=True)[key]
    except Exception as error:
        raise ArgumentsError(
            f"{where} cannot be read ({type(error).__name__}: {error}): "
            "what it names must exist in the task's module when the task is first used (not only under TYPE_CHECKING)"
        ) from error
    return Any if kind is object else kind


def _decoder(struct: type[msgspec.Struct], parameters: tuple[Parameter, ...], types: dict[str, Any], name: str) -> Decoder[Any]:
    for parameter in parameters:
        _refuse_strangers(types[parameter.name], f"{name}: the parameter {parameter.name!r}")
    return Decoder(struct, dec_hook=revive)


def _refuse_strangers(kind: Any, where: str) -> None:
    try:
        Decoder(kind)
        strangers = [found.cls for found in _within(msgspec.inspect.type_info(kind)) if not _revivable(found.cls)]
    except Exception as error:
        raise ArgumentsError(f"{where} is annotated {kind!r}, which no payload can carry: {error}") from error
    if strangers:
        raise ArgumentsError(
            f"{where} is annotated with {strangers[0].__qualname__}, which no payload can carry: "
            "pass what identifies it (an id, a name, a URL) and look it up in the task"
        )


def _revivable(kind: type) -> bool:
    return kind is object or issubclass(kind, PurePath)


def _within(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.CustomType]:
    """The classes unknown to msgspec anywhere within a type."""
    seen: set[int] = set()
    heap: list[object] = [kind]
    while heap:
        found = heap.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, msgspec.inspect.CustomType):
            yield found
        elif isinstance(found, tuple):
            heap.extend(found)
        elif isinstance(found, msgspec.inspect.Field):
            heap.append(found.type)
        elif isinstance(found, msgspec.inspect.Type):
            heap.extend(getattr(found, name) for name in found.__struct_fields__ if name not in ("cls", "values"))
