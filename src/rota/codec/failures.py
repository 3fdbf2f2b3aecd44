"""What went wrong in an attempt, as a record that every store can hold, whatever the exception does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from traceback import StackSummary
from types import FrameType, TracebackType

from rota.codec.text import clean, escape
from rota.model import Failure

MESSAGE = 2_000
TRACE = 16_000
"""How many characters of a failure are kept."""

_TYPE = 200
_HEAD, _TAIL = 20, 40
_LINE = 500
_LINKS, _MEMBERS, _DEPTH, _ALL = 10, 10, 4, 50


def failure_of(error: BaseException) -> Failure:
    """The record of an exception: its type, its message and its trace, each safe to store and cut to a stated size.

    Nothing that the exception brings can raise here, and no local variable is shown. Rota's own frames at the head of the
    trace are left out.

    >>> failure_of(ValueError("no such order")).message
    'no such order'
    """
    message = _message(error)
    return Failure(type=_type(error), message=clean(message, MESSAGE), trace=_middle_cut(_trace(error, message), TRACE))


def _trace(error: BaseException, message: str) -> str:
    try:
        return "\n".join(_told(error, message, set(), 0))
    except BaseException as odd:  # noqa: BLE001  # the exception may have overridden what all exceptions have
        return f"{_type(error)}: {message[:MESSAGE]}\n(its trace cannot be shown: {type(odd).__name__})"


def _told(error: BaseException, message: str | None, seen: set[int], depth: int) -> Iterator[str]:
    """The exception and what led to it, eldest first."""
    links: list[tuple[BaseException, str]] = []
    cause: BaseException | None = error
    said = ""
    while cause is not None and id(cause) not in seen and len(links) < _LINKS and len(seen) < _ALL:
        seen.add(id(cause))
        links.append((cause, said))
        if cause.__cause__ is not None:
            cause, said = cause.__cause__, "The above exception was the direct cause of the following exception:"
        elif cause.__suppress_context__:
            cause = None
        else:
            cause, said = cause.__context__, "During handling of the above exception, another exception occurred:"
    if cause is not None:
        yield "(what was told already, or is too much to tell, is left out)\n"
    for link, led_to in reversed(links):
        yield from _one(link, message if link is error else None, seen, depth)
        if led_to:
            yield f"\n{led_to}\n"


def _one(error: BaseException, message: str | None, seen: set[int], depth: int) -> Iterator[str]:
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):"
        yield from _frames(error.__traceback__)
    text = clean(_message(error) if message is None else message, MESSAGE)
    yield f"{_type(error)}: {text}" if text else _type(error)
    yield from _notes(error)
    if isinstance(error, BaseExceptionGroup):
        members = error.exceptions
        for number, member in enumerate(members[:_MEMBERS], 1):
            yield f"  +---------------- {number} of {len(members)} ----------------"
            if depth >= _DEPTH:
                yield f"  | {_type(member)}"
                continue
            for line in "\n".join(_told(member, None, seen, depth + 1)).split("\n"):
                yield f"  | {line}"
        if len(members) > _MEMBERS:
            yield f"  +---- {len(members) - _MEMBERS} more left out"


def _frames(traceback: TracebackType) -> Iterator[str]:
    """The frames as lines, Rota's own at the head left out, and the middle of a very deep stack as well."""
    frames = _walk(traceback)
    head = list(islice(frames, _HEAD))
    tail: deque[tuple[FrameType, int]] = deque(maxlen=_TAIL)
    total = len(head)
    for frame in frames:
        tail.append(frame)
        total += 1
    yield from _lines(head)
    if left_out := total - len(head) - len(tail):
        yield f"  … {left_out:,} frames left out …"
    yield from _lines(list(tail))


def _walk(traceback: TracebackType) -> Iterator[tuple[FrameType, int]]:
    first: TracebackType | None = traceback
    while first is not None and _ours(first.tb_frame):
        first = first.tb_next
    # Where nothing but Rota's own frames is left, they are the story.
    step: TracebackType | None = first or traceback
    while step is not None:
        yield step.tb_frame, step.tb_lineno
        step = step.tb_next


def _ours(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and (module == "rota" or module.startswith("rota."))


def _lines(frames: list[tuple[FrameType, int]]) -> list[str]:
    try:
        return [line.rstrip("\n")[:_LINE] for line in StackSummary.extract(iter(frames)).format()]
    except Exception:  # noqa: BLE001  # reading source lines runs the loaders of others
        return [f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}' for frame, line in frames]


def _notes(error: BaseException) -> Iterator[str]:
    try:
        notes = error.__notes__
        for note in islice(notes if isinstance(notes, list | tuple) else [notes], _MEMBERS):
            yield clean(str(note), MESSAGE)
    except AttributeError:
        return
    except BaseException as odd:  # noqa: BLE001  # the note's own code may raise anything
        yield f"<a note that cannot be shown: {type(odd).__name__}>"


def _message(error: BaseException) -> str:
    try:
        # The text of a subclass of str might have methods of its own: what is kept is plain.
        return str.__str__(str(error))
    except BaseException as odd:  # noqa: BLE001  # the exception's own code may raise anything
        return f"<its message cannot be shown: str() raised {type(odd).__name__}>"


def _type(error: BaseException) -> str:
    kind = type(error)
    try:
        module, name = kind.__module__, kind.__qualname__
        return clean(name if module in ("builtins", "__main__") else f"{module}.{name}", _TYPE)
    except BaseException:  # noqa: BLE001  # a metaclass may raise anything
        return clean(type.__repr__(kind), _TYPE)


def _middle_cut(text: str, limit: int) -> str:
    """Escaped and cut to `limit` characters in the middle: where it began and what it ended with both count."""
    safe = escape(text)
    if len(safe) <= limit:
        return safe
    cut = len(safe) - limit + 60
    head = (limit - 60) // 3
    return f"{safe[:head]}\n… ({cut:,} characters cut) …\n{safe[head + cut :]}"
