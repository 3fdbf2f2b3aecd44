"""The demo as plain lines, where the output is a file or a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.demo.play import Scene
from rota.demo.sums import Sum
from rota.model import State

_EVERY = 1.0


class Lines:
    """One line a second, and one for whatever someone would want to know of."""

    def __init__(self) -> None:
        self._next = 0.0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, where: str) -> None:
        click.echo(f"A shop's afternoon on {where}, with three worker processes.")

    def show(self, scene: Scene) -> None:
        for told in scene.told:
            if told["level"] in ("warning", "error", "critical"):
                because = f" ({told['trace'].splitlines()[-1]})" if told.get("trace") else ""
                click.echo(f"{scene.passed:5.1f} s  {told['worker']}: {told['message']}{because}")
        for place in scene.changed:
            did = f"worker {place.name} {place.how}" if place.died_at is not None else f"worker {place.name} was started again"
            click.echo(f"{scene.passed:5.1f} s  {did}")
        if scene.passed >= self._next:
            self._next = scene.passed + _EVERY
            states = ", ".join(f"{scene.states[state]} {state}" for state in State if scene.states[state])
            click.echo(f"{scene.passed:5.1f} s  {states}")

    def end(self, checked: Sequence[Sum], took: float, next_steps: Sequence[str]) -> None:
        click.echo("")
        for each in checked:
            click.echo(f"{'ok' if each.holds else 'WRONG':5} {each.says}")
        good = all(each.holds for each in checked)
        click.echo(f"\n{'Everything adds up' if good else 'Something does not add up'} ({took:.1f} s).\n\nNext:")
        for step in next_steps:
            click.echo(f"  {step}")
