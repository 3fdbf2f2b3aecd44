"""An app that is declared once, as users have it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rota import Rota


class Shop:
    def __init__(self, url: str) -> None:
        self.app = Rota(url)

        @self.app.task(name="shop.send_receipt", queue="mail")
        def send_receipt(order_id: int, lang: str = "en") -> None: ...

        @self.app.task(name="shop.close_order")
        def close_order(order_id: int) -> None:
            send_receipt.enqueue(order_id)

        @self.app.task(name="shop.index")
        def index(document: dict[str, list[int]]) -> None: ...

        self.send_receipt, self.close_order, self.index = send_receipt, close_order, index


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop("memory://")
    yield made
    made.app.close()


@pytest.fixture
def shop_anywhere(store_url: str) -> Iterator[Shop]:
    """The same on each store."""
    made = Shop(store_url)
    yield made
    made.app.close()
