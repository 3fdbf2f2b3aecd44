"""The demo on a terminal: drawn over and over in place, in colour where there is any."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rota.demo.play import Scene
from rota.demo.sums import Sum
from rota.model import State

STYLES = {
    State.SCHEDULED: "cyan",
    State.QUEUED: "blue",
    State.HELD: "magenta",
    State.RUNNING: "yellow",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "bright_black",
}
_KINDS = {"succeeded": "green", "again": "yellow", "failed": "red", "lost": "magenta", "cancelled": "bright_black"}
_LATEST = 12
_RAN = 3
"""How many successes of a scene are told, so that they do not hide the rest."""


class Screen:
    """Draws each scene over the last one."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)
        utf8 = self._console.encoding.startswith("utf")
        self._full, self._good, self._bad = ("█", "✓", "✗") if utf8 else ("#", "ok", "WRONG")
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._latest: deque[Text] = deque(maxlen=_LATEST)
        self._where = ""

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def begin(self, where: str) -> None:
        self._where = where

    def show(self, scene: Scene) -> None:
        self._note(scene)
        wide = self._console.width >= 84
        states, workers = self._states(scene), self._workers(scene)
        middle: RenderableType
        if wide:
            middle = Table.grid(expand=True, padding=(0, 1, 0, 0))
            middle.add_column(ratio=3)
            middle.add_column(ratio=2)
            middle.add_row(states, workers)
        else:
            middle = Group(states, workers)
        parts = [self._head(scene), middle]
        room = min(_LATEST, self._console.height - (12 if wide else 21) - 3)
        if room > 1:
            latest = list(self._latest)[-room:]
            parts.append(
                Panel(Group(*latest), title="latest", title_align="left", border_style="bright_black", height=room + 2)
            )
        self._live.update(Group(*parts), refresh=True)

    def end(self, checked: Sequence[Sum], took: float, next_steps: Sequence[str]) -> None:
        self._live.stop()
        good = all(each.holds for each in checked)
        rows = Table.grid(padding=(0, 1))
        for each in checked:
            mark = Text(self._good, "bold green") if each.holds else Text(self._bad, "bold red")
            rows.add_row(mark, Text(each.says, "" if each.holds else "bold red"))
        title = f"everything adds up ({took:.1f} s)" if good else "something does not add up"
        self._console.print(Panel(rows, title=title, title_align="left", border_style="green" if good else "red"))
        self._console.print("Next:", style="bold")
        for step in next_steps:
            command, gap, why = step.partition("    ")
            self._console.print(Text.assemble("  ", (command, "cyan"), gap, why))

    # -- parts ----------------------------------------------------------------------------------

    def _head(self, scene: Scene) -> RenderableType:
        bar = Table.grid(expand=True, padding=(0, 1, 0, 0))
        bar.add_column()
        bar.add_column(ratio=1)
        bar.add_column(justify="right", no_wrap=True)
        told = Text(f"{scene.done} of {scene.total} jobs   {scene.passed:4.1f} s", "bold")
        bar.add_row(Text("a shop's afternoon", "bold"), ProgressBar(total=max(scene.total, 1), completed=scene.done), told)
        return Panel(
            bar,
            title=Text(f"rota demo on {self._where}", no_wrap=True, overflow="ellipsis"),
            title_align="left",
            border_style="blue",
        )

    def _states(self, scene: Scene) -> RenderableType:
        rows = Table.grid(expand=True, padding=(0, 1, 0, 0))
        rows.add_column(width=9)
        rows.add_column(justify="right", width=5)
        rows.add_column(ratio=1, no_wrap=True)
        most = max(1, *scene.states.values())
        room = max(10, (self._console.width * 3 // 5 if self._console.width >= 84 else self._console.width) - 26)
        for state, number in scene.states.items():
            if state is State.HELD and not number:
                continue
            length = 0 if not number else max(1, round(room * number / most))
            rows.add_row(Text(state, STYLES[state]), Text(str(number), "bold"), Text(self._full * length, STYLES[state]))
        return Panel(rows, title="jobs", title_align="left", border_style="bright_black", height=9)

    def _workers(self, scene: Scene) -> RenderableType:
        rows = Table.grid(expand=True, padding=(0, 1, 0, 0))
        rows.add_column(no_wrap=True)
        rows.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for place in scene.workers:
            again = f", restarted {place.restarts}x" if place.restarts else ""
            if place.died_at is not None:
                rows.add_row(Text(place.name, "bold"), Text(place.how, "bold red"))
            elif place.process is not None:
                rows.add_row(Text(place.name, "bold"), Text(f"pid {place.process.pid}{again}", "green"))
        for name, part in scene.reports[: 7 - len(scene.workers)]:
            rows.add_row(Text(name, "yellow"), ProgressBar(total=1.0, completed=part))
        return Panel(rows, title="workers and reports", title_align="left", border_style="bright_black", height=9)

    def _note(self, scene: Scene) -> None:
        ran = [told for told in scene.told if told.get("event") == "succeeded"]
        unsaid = {id(told) for told in ran[:-_RAN]}
        for told in scene.told:
            if id(told) not in unsaid and (kind := told.get("event")):
                line = Text(f"{told['worker']:7}", "bright_black", no_wrap=True, overflow="ellipsis")
                line.append(told["message"], _KINDS.get(kind, ""))
                line.append(f"  {told['took'] * 1000:.0f} ms" if kind == "succeeded" else "", "bright_black")
                self._latest.append(line)
        for place in scene.changed:
            if place.died_at is not None:
                self._latest.append(
                    Text(f"{place.name:7}the process {place.how}", "bold red", no_wrap=True, overflow="ellipsis")
                )
            else:
                self._latest.append(Text(f"{place.name:7}was started again", "bold green", no_wrap=True, overflow="ellipsis"))
