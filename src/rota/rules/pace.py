"""How many jobs a worker has in hand: enough that no slot waits for the store, few enough that no job waits behind another.

Claims and finishes are cheap in batches, so a worker of quick jobs claims ahead; one of slow jobs must not, since
what it claims no other worker can run.
"""

from __future__ import annotations

from msgspec import Struct

AHEAD_SECONDS = 0.02
"""A worker claims ahead as much as it ends in this time, so that is about how long a claimed job waits for a slot."""
MOST_AHEAD = 1_000
WEIGHT_AHEAD = 16 * 1024 * 1024
"""Characters of arguments that a worker claims ahead at the most, about: heavy jobs must not fill its memory."""
STALE_SECONDS = 1.0
"""When no waiting job has got a slot for this long, all that wait are handed back: those before them are slower than before."""


class Pace(Struct, frozen=True):
    """How fast a worker of `slots` ends jobs, learnt as it goes, and what follows from it."""

    slots: int
    rate: float = 0.0
    """Jobs a second, an average in which the latest turn counts half."""
    target: int = 0
    """How many jobs to have in hand; never less than the slots."""
    weight: float = 0.0
    """Characters of a job's arguments, at once as much as in the latest claim, and less by and by."""

    def after(self, ended: int, seconds: float) -> Pace:
        """The pace after a stretch in which `ended` jobs ended. The target grows eightfold at most: a guess stays small."""
        if seconds <= 0:
            return self
        rate = (self.rate + ended / seconds) / 2 if self.rate else ended / seconds
        ahead = min(int(rate * AHEAD_SECONDS), MOST_AHEAD)
        return Pace(self.slots, rate, min(self.slots + ahead, max(self.target, self.slots) * 8), self.weight)

    def weighed(self, weight: int, jobs: int) -> Pace:
        """The pace after a claim of so many jobs, whose arguments have `weight` characters together."""
        if not jobs:
            return self
        return Pace(self.slots, self.rate, self.target, max(self.weight + weight / jobs, weight / jobs * 2) / 2)

    def room(self, in_hand: int, turns: int = 1, most: int | None = None) -> int:
        """How many jobs to claim now: none until much of the target is used up or a slot is free, since small claims cost.

        Where the store works on several `turns` at once, each claims its part. There are never more than `most` in hand.
        """
        target = max(self.target, self.slots)
        if most is not None:
            target = max(self.slots, min(target, most))
        if self.weight > 0:
            target = min(target, self.slots + int(WEIGHT_AHEAD / self.weight))
        room = target - in_hand
        if in_hand >= self.slots and 2 * turns * room < target:
            return 0
        return min(room, max(self.slots, -(-target // turns)))

    def ring_at(self, waiting: int) -> int:
        """After how many ended jobs the store should hear of them: at once when no job waits for a slot, else in batches."""
        return max(1, waiting // 2)
