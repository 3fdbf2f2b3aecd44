"""Random operations do to every store what they do to the reference."""

import pytest

from rota.stores.base import Store
from rota.testing.limits_machine import keep_limits
from rota.testing.machine import compare


@pytest.mark.timeout(600)  # where stores differ, making the example small takes its time
@pytest.mark.parametrize(("examples", "steps"), [(200, 12), (100, 40)], ids=["short", "long"])
def test_random_operations_do_to_a_store_what_they_do_to_the_reference(store: Store, examples: int, steps: int) -> None:
    compare(store, examples, steps)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("examples", "steps"), [(150, 15), (40, 50)], ids=["short", "long"])
def test_limits_hold_whatever_happens_and_keep_nobody_for_nothing(store: Store, examples: int, steps: int) -> None:
    keep_limits(store, examples, steps)
