"""What an app can be told besides its store: how long things last and how large they may be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from rota.clock import SECOND, Micros, span
from rota.errors import ConfigError
from rota.model import FINAL, State

DAY = 86_400.0
SHORTEST_LEASE: Micros = SECOND // 2
MAX_PAYLOAD = 16 * 1024 * 1024


class Settings(Struct, frozen=True):
    """Checked settings; see `Rota` for what each means."""

    ages: dict[State, Micros]
    """How long finished jobs stay, by state; a state that is missing stays for ever."""
    kept: frozenset[State]
    """The states whose jobs stay in the history at all."""


def settings(
    keep_succeeded: float | timedelta | None,
    keep_failed: float | timedelta | None,
    keep_cancelled: float | timedelta | None,
    max_payload: int,
) -> Settings:
    """Check what was given. Raises `ConfigError` naming the setting."""
    if isinstance(max_payload, bool) or not isinstance(max_payload, int) or max_payload < 2:
        raise ConfigError(f"max_payload={max_payload!r}: the limit is a number of bytes, for example {MAX_PAYLOAD}")
    given = {State.SUCCEEDED: keep_succeeded, State.FAILED: keep_failed, State.CANCELLED: keep_cancelled}
    keep = {state: span(age, f"keep_{state}") for state, age in given.items() if age is not None}
    return Settings(keep, frozenset(state for state in FINAL if keep.get(state) != 0))


def ages(keep: Mapping[str, float | timedelta | None]) -> dict[State, Micros]:
    """Retention by state, from seconds or a `timedelta` by the state's name; `None` keeps for ever.

    Raises `ConfigError` for a name that is no finished job's state.
    """
    for name in keep:
        if name not in FINAL:
            raise ConfigError(f"no finished job is {name!r}: name {', '.join(sorted(FINAL))}, for example purge(failed=86400)")
    return {State(state): span(age, state) for state, age in keep.items() if age is not None}


def check_lease(lease: float | timedelta) -> Micros:
    """A lease that three beats fit into. Raises `ConfigError` when it is too short."""
    length = span(lease, "lease")
    if length < SHORTEST_LEASE:
        raise ConfigError(
            f"lease={lease!r} is too short: a worker beats three times in a lease, and less than half a second "
            "loses jobs to a short pause; the default is 60 seconds"
        )
    return length
