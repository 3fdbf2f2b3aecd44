"""Which processes are to be replaced while they work, and why: one at a time, in the order in which they came due."""

from __future__ import annotations

from rota.supervisor.memory import resident
from rota.supervisor.slot import Slot


class Turnover:
    """A slot's turn lasts until the new process works or has failed to start."""

    def __init__(self) -> None:
        self._due: dict[Slot, str] = {}
        self._rolling: set[Slot] = set()
        self.turning: Slot | None = None
        """The slot whose new process is starting."""

    def roll(self, slots: list[Slot]) -> None:
        """Replace all of these, those included that were replaced since the last call."""
        self._rolling = set(slots)
        for slot in slots:
            self._due[slot] = "rolling restart"

    def next(self) -> tuple[Slot, str] | None:
        """The slot whose turn it is now, and why, if none has its turn."""
        if self.turning is not None or not self._due:
            return None
        self.turning = next(iter(self._due))
        return self.turning, self._due.pop(self.turning)

    def done(self, slot: Slot) -> bool:
        """A new process works in this slot. Answers whether that completes a rolling restart."""
        if self.turning is slot:
            self.turning = None
        if slot in self._due and slot not in self._rolling:
            del self._due[slot]  # the process that was to be replaced has died
        if slot in self._due or slot not in self._rolling:
            return False
        self._rolling.discard(slot)
        return not self._rolling

    def fail(self, slot: Slot) -> bool:
        """The new process of this slot did not start. Answers whether that ends a rolling restart."""
        if self.turning is slot:
            self.turning = None
        if slot not in self._rolling:
            return False
        self._due = {each: why for each, why in self._due.items() if each not in self._rolling}
        self._rolling.clear()
        return True

    def recycle(self, slot: Slot, now: float) -> None:
        """Note the slot as due where its process has ended its share of jobs or grown too large."""
        child = slot.child
        if child is None or child.joined_at is None or slot is self.turning or slot in self._due or now < slot.calm_until:
            return
        if child.most_jobs is not None and child.jobs >= child.most_jobs:
            self._due[slot] = f"it has ended {child.jobs} jobs"
        elif child.most_memory is not None and (size := resident(child.pid) or 0) > child.most_memory:
            self._due[slot] = f"it has {size // 1_000_000} MB in memory"
