"""A task's arguments and result as JSON, by the function's own signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw
from msgspec.json import Decoder
from msgspec.structs import asdict, astuple

from rota.codec.exact import CERTAIN, find_loss, lossy, refuse_endless
from rota.codec.form import KEYWORD_ONLY, NAMED, POSITIONAL_ONLY, VARARGS, VARKW, Form, form_of, result_decoder
from rota.codec.misfit import misfit
from rota.codec.wire import refusal, weigh, write
from rota.errors import ArgumentsError, ConfigError


class Signature:
    """How calls of one function are written and read.

    A payload is one JSON object: the arguments by the names of their parameters. Arguments that have no name go, in order,
    under `*`. What is left to its default is left out, so the default of the code that runs the job applies.

    Making one costs nothing: the annotations are resolved when they are first needed, so they may name what is defined later.

    >>> def send(order_id: int, lang: str = "en") -> None: ...
    >>> signature = Signature(send)
    >>> signature.encode((42,), {}, limit=1_000)
    '{"order_id":42}'
    >>> signature.decode('{"order_id":42,"lang":"de"}')
    ((), {'order_id': 42, 'lang': 'de'})
    """

    __slots__ = ("_form", "_function", "_name", "_result")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name: str = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
        self._form: Form | None = None
        self._result: Decoder[Any] | None = None

    def check(self) -> None:
        """Resolve the annotations now. Raises `ConfigError` naming the parameter that no payload can carry."""
        try:
            self._resolve()
        except ArgumentsError as error:
            raise ConfigError(str(error)) from error

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], limit: int) -> str:
        """Write a call.

        Raises `ArgumentsError` naming the argument when it does not fit its parameter or would not come back as it is, and
        `PayloadTooLarge` when the whole weighs more than `limit` bytes.
        """
        form = self._form or self._resolve()
        if not form.plain or len(args) > form.positionals:
            return self._encode_bound(form, self._bind(form, args, kwargs), limit)
        try:
            filled = form.struct(*args, **kwargs)
        except TypeError:
            return self._encode_bound(form, self._bind(form, args, kwargs), limit)
        payload = self._write(form, filled)
        weigh(payload, limit, f"the payload of {self._name}")
        self._verify(form, filled, payload)
        return payload.decode()

    def decode(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the function with: arguments by position, and by name.

        Also reads what was sent without the function's code, by position. Raises `ArgumentsError` for whatever does not fit.
        """
        form = self._form or self._resolve()
        if not form.plain:
            return self._decode_bound(form, text)
        try:
            found = asdict(form.decoder.decode(text))
        except Exception:  # noqa: BLE001  # whatever it was, reading it in steps finds the words for it
            return self._decode_bound(form, text)
        if form.complete:
            return (), found
        return (), {name: value for name, value in found.items() if value is not UNSET}

    def by_name(self, text: str) -> dict[str, Any]:
        """What to call the function with, by the names of its parameters, defaults included. Raises as `decode` does."""
        args, kwargs = self.decode(text)
        bound = (self._form or self._resolve()).signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def encode_result(self, value: object) -> str:
        """Write what the function returned; raises `ArgumentsError` when it would not come back as it is."""
        decoder = self._result or self._resolve_result()
        whose = f"{self._name}: the result"
        try:
            payload = write(value)
        except Exception as error:
            raise refusal(value, whose, error) from error
        try:
            back = decoder.decode(payload)
        except Exception as error:
            refuse_endless(value, whose)
            said = misfit(error, payload, decoder, "result", {})
            raise ArgumentsError(f"{self._name}: {said}; return what the annotation says, or change it") from error
        if loss := find_loss(value, back, whose):
            raise lossy(loss)
        return payload.decode()

    def decode_result(self, text: str) -> Any:
        """Read what `encode_result` wrote; raises `ArgumentsError` when it does not fit the return annotation."""
        decoder = self._result or self._resolve_result()
        try:
            return decoder.decode(text)
        except Exception as error:
            said = misfit(error, text, decoder, "result", {})
            raise ArgumentsError(f"{self._name}: the stored result does not fit the return annotation: {said}") from error

    def _resolve(self) -> Form:
        self._form = self._form or form_of(self._function, self._name)
        return self._form

    def _resolve_result(self) -> Decoder[Any]:
        self._result = self._result or result_decoder(self._function, self._name)
        return self._result

    def _bind(self, form: Form, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return form.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            takes = ", ".join(
                f"{_STARS.get(parameter.kind, '')}{parameter.name}{'' if parameter.default is parameter.empty else '=…'}"
                for parameter in form.signature.parameters.values()
            )
            raise ArgumentsError(f"{self._name}({takes}) cannot be called like this: {error}; pass what it takes") from None

    def _encode_bound(self, form: Form, arguments: dict[str, Any], limit: int) -> str:
        if "*" in arguments.get(self._varkw(form), {}):
            raise ArgumentsError(f"{self._name}: '*' cannot be an argument's name, it stands for those without one: rename it")
        fields = dict(zip(form.names, form.struct.__struct_fields__, strict=True))
        filled = form.struct(**{fields[name]: value for name, value in arguments.items()})
        payload = self._write(form, filled)
        weigh(payload, limit, f"the payload of {self._name}")
        self._verify(form, filled, payload)
        args, kwargs = self._split(form, arguments)
        payload = write({"*": args, **kwargs} if args else kwargs)
        weigh(payload, limit, f"the payload of {self._name}")
        return payload.decode()

    def _decode_bound(self, form: Form, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            raw = _RAW.decode(text)
            args = _RAW_LIST.decode(raw.pop("*", b"[]"))
        except Exception as error:
            raise ArgumentsError(f"{self._name}: the payload is not a JSON object of arguments: {error}") from error
        arguments = self._bind(form, tuple(args), raw)
        payload = write({form.labels[name]: value for name, value in arguments.items()})
        try:
            filled = form.decoder.decode(payload)
        except Exception as error:
            raise self._misfit(form, payload, error) from error
        return self._split(form, {name: value for name, value in _named(form, filled) if value is not UNSET})

    def _split(self, form: Form, arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What goes by position and what by name. With *args in use, all that stands before them goes by position."""
        kinds = {name: parameter.kind for name, parameter in form.signature.parameters.items()}
        more = next((tuple(arguments[name]) for name in arguments if kinds[name] is VARARGS), ())
        by_position = (POSITIONAL_ONLY, NAMED) if more else (POSITIONAL_ONLY,)
        args = tuple(arguments[name] for name in kinds if name in arguments and kinds[name] in by_position)
        kwargs = {
            name: value
            for name, value in arguments.items()
            if kinds[name] in (NAMED, KEYWORD_ONLY) and kinds[name] not in by_position
        }
        return args + more, kwargs | arguments.get(self._varkw(form), {})

    def _varkw(self, form: Form) -> str:
        return next((name for name, parameter in form.signature.parameters.items() if parameter.kind is VARKW), "")

    def _write(self, form: Form, filled: msgspec.Struct) -> bytes:
        try:
            return write(filled)
        except Exception as error:
            for name, value in _named(form, filled):
                try:
                    write(value)
                except Exception as inner:  # noqa: BLE001  # a value's own code may raise anything
                    raise refusal(value, f"{self._name}: {name}", inner) from error
            raise ArgumentsError(f"{self._name}: the arguments cannot be stored: {error}") from error

    def _verify(self, form: Form, filled: msgspec.Struct, payload: bytes) -> None:
        """Read the payload back and compare: nothing is enqueued that the worker would see otherwise."""
        try:
            back = form.decoder.decode(payload)
        except Exception as error:
            for name, value in _named(form, filled):
                refuse_endless(value, f"{self._name}: {name}")
            raise self._misfit(form, payload, error) from error
        given, got = astuple(filled), astuple(back)
        kinds = tuple(map(type, given))
        if CERTAIN.issuperset(kinds) and kinds == tuple(map(type, got)) and given == got:
            return
        for name, one, other in zip(form.names, given, got, strict=True):
            if loss := find_loss(one, other, f"{self._name}: {name}"):
                raise lossy(loss)

    def _misfit(self, form: Form, payload: bytes, error: Exception) -> ArgumentsError:
        names = {label: name for name, label in form.labels.items()}
        said = misfit(error, payload, form.decoder, "arguments", names)
        return ArgumentsError(f"{self._name}: {said}; pass what the annotation says")


def _named(form: Form, filled: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    return zip(form.names, astuple(filled), strict=True)


_RAW = Decoder(dict[str, Raw])
_RAW_LIST = Decoder(list[Raw])
_STARS: dict[object, str] = {VARARGS: "*", VARKW: "**"}
