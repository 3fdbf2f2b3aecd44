"""The contract that every store keeps, as tests that any store can run: one test a promise of `rota.stores.base`.

A store's author subclasses `StoreContract` where pytest looks for tests and provides a fixture `store`, which
yields an empty store that is open, and closes it afterwards:

    import pytest
    from rota.testing.contract import StoreContract
    from rota_etcd import EtcdStore

    @pytest.fixture
    def store(tmp_path):
        store = EtcdStore(f"etcd://localhost/{tmp_path.name}")
        store.open()
        yield store
        store.close()

    class TestEtcdStore(StoreContract):
        pass

Moments are chosen by the tests, so nothing here waits for time to pass.
"""

from rota.testing.contract.carrying import Carrying
from rota.testing.contract.changes import Changing
from rota.testing.contract.claims import Claiming
from rota.testing.contract.edits import Editing, EditingHeld
from rota.testing.contract.extremes import Extremes
from rota.testing.contract.finishing import FinishingAfter
from rota.testing.contract.inserts import Inserting
from rota.testing.contract.keys import Keys
from rota.testing.contract.leases import Leases
from rota.testing.contract.lifetime import Lifetime
from rota.testing.contract.limit_races import LimitRaces
from rota.testing.contract.limits import Holding, Limiting
from rota.testing.contract.looking import Looking
from rota.testing.contract.moving import Moving
from rota.testing.contract.outcomes import Outcomes
from rota.testing.contract.overview import Overview
from rota.testing.contract.pausing import Pausing
from rota.testing.contract.pruning import Pruning
from rota.testing.contract.races import Races
from rota.testing.contract.sealing import Sealing
from rota.testing.contract.sleeping import Sleeping
from rota.testing.contract.turns import Turns
from rota.testing.contract.workers import Workers

__all__ = ["StoreContract"]


class StoreContract(
    Lifetime,
    Inserting,
    Keys,
    Claiming,
    Outcomes,
    FinishingAfter,
    Carrying,
    Workers,
    Leases,
    Looking,
    Overview,
    Changing,
    Editing,
    EditingHeld,
    Pausing,
    Pruning,
    Extremes,
    Limiting,
    Holding,
    Sleeping,
    Turns,
    Races,
    LimitRaces,
    Sealing,
    Moving,
):
    """All promises together. Each part may also be used alone while a store is being written."""
