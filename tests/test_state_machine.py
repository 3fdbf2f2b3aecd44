"""Random operations do to every store what they do to the reference."""

from rota.stores.base import Store
from rota.testing.machine import compare


def test_random_operations_do_to_a_store_what_they_do_to_the_reference(store: Store) -> None:
    compare(store)
