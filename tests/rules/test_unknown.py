"""A job whose task a worker does not know is looked at again, but not for ever."""

from rota.clock import SECOND
from rota.rules.unknown import LOOKS, look_again


def test_the_waits_double_up_to_a_quarter_of_an_hour_and_end() -> None:
    waits = [look_again(excused) for excused in range(LOOKS + 1)]
    assert waits == [seconds * SECOND for seconds in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900)] + [None]


def test_a_job_that_was_handed_back_often_for_other_reasons_is_not_waited_for() -> None:
    assert look_again(10**9) is None
