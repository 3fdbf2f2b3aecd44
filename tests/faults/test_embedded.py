"""A worker inside another program does its host no harm."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from kit import PATIENCE, Fleet, Program

from rota import Rota
from rota.model import State
from servers import PostgresServer
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


def test_a_web_server_goes_on_answering_while_its_workers_store_is_away(
    frail: PostgresServer, tmp_path: Path, ledger: Path
) -> None:
    with Rota(frail.url()) as app:
        fleet = Fleet(tmp_path, frail.url(), ledger)
        try:
            web = fleet.program("fault_web")
            assert app.get(answer(web, "/enqueue")).wait(PATIENCE).status is State.SUCCEEDED
            frail.stop("immediate")
            eventually(lambda: web.log.count("the store is away") >= 3)
            assert answer(web, "/") == "here"
            with pytest.raises(HTTPError, match="503"):
                answer(web, "/enqueue")
            assert answer(web, "/") == "here"
            frail.start()
            assert app.get(eventually(lambda: answer(web, "/enqueue"))).wait(PATIENCE).status is State.SUCCEEDED
            assert web.alive
        finally:
            fleet.close()


def answer(web: Program, path: str) -> str:
    port = eventually(lambda: re.search(r"port=(\d+)", web.log))[1]
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as page:
        return str(page.read().decode())
