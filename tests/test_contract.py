"""Every store keeps the contract. The fixture `store` brings them one by one."""

from rota.testing.contract import StoreContract


class TestStores(StoreContract):
    pass
