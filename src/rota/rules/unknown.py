"""How long a job waits whose task the worker that claimed it does not know.

Workers of several releases, or of several programs, may share a queue: another one may know the task, or this one after its
next deploy. So the job is handed back and looked at again, a bounded number of times.
"""

from __future__ import annotations

from rota.clock import SECOND, Micros

LOOKS = 12
_LONGEST_WAIT = 900 * SECOND


def look_again(looks: int) -> Micros | None:
    """The wait before the next look, after so many looks in a row; `None` when it was looked at often enough.

    One second, doubling up to a quarter of an hour: about three quarters of an hour in all.

    >>> look_again(0), look_again(11), look_again(12)
    (1000000, 900000000, None)
    """
    if looks >= LOOKS:
        return None
    return min(SECOND << looks, _LONGEST_WAIT)
