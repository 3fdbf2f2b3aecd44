"""A place for one working process."""

from __future__ import annotations

import time

from rota.supervisor.child import Child
from rota.supervisor.plan import STEADY, wait_after


class Slot:
    """Holds the process that works, and while that is being replaced the one that is to work."""

    def __init__(self, number: int, name: str | None, start_at: float) -> None:
        self.number = number
        self.name = name
        self.child: Child | None = None
        self.coming: Child | None = None
        self.start_at: float | None = start_at
        """When a process is to be started; `None` while there is one, or while none is wanted."""
        self.deaths = 0
        """How many processes died in a row soon after they were started."""
        self.calm_until = 0.0
        """Until when its process is not replaced for its jobs or memory: the last attempt failed."""
        self.dead: list[str] = []
        """Ids of workers that died and of which no living process was told yet."""

    @property
    def children(self) -> list[Child]:
        return [child for child in (self.child, self.coming) if child is not None]

    def died(self, child: Child) -> float:
        """Note that a process of this slot died, and answer in how many seconds to start another."""
        now = time.monotonic()
        steady = child.joined_at is not None and now - child.joined_at >= STEADY
        self.deaths = 1 if steady else self.deaths + 1
        return wait_after(self.deaths)
