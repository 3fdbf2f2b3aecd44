"""What a service manager hears, over a real socket of the kind that it listens on."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rota import Rota
from rota.supervisor.systemd import Notifier
from supervisor.conftest import Yard
from working import eventually


class Manager:
    """Listens as systemd does."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.setblocking(False)
        self._heard: list[str] = []

    @property
    def heard(self) -> list[str]:
        """Every message so far."""
        with suppress(BlockingIOError):
            while True:
                self._heard.append(self._socket.recv(4096).decode())
        return self._heard

    def hears(self, beginning: str, times: int = 1) -> None:
        eventually(lambda: sum(message.startswith(beginning) for message in self.heard) >= times)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["file"])
def manager(request: pytest.FixtureRequest) -> Iterator[Manager]:
    with TemporaryDirectory() as folder:  # an address has room for about a hundred characters
        manager = Manager(f"{folder}/notify" if request.param == "file" else f"@rota-test-{Path(folder).name}")
        yield manager
        manager.close()


def test_a_supervisor_tells_that_it_is_ready_well_restarting_and_stopping(yard: Yard, app: Rota, manager: Manager) -> None:
    parent = yard.start("--processes", "2", NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="2000000")
    manager.hears("READY=1\nSTATUS=2 workers")
    assert len(parent.processes()) == 2
    manager.hears("WATCHDOG=1", times=2)
    yard.working(2)
    parent.send(signal.SIGHUP)
    manager.hears("RELOADING=1\nMONOTONIC_USEC=")
    manager.hears("READY=1", times=2)
    parent.said("rolling restart: done")
    (yard.folder / "shop.py").write_text("this is no Python")
    parent.send(signal.SIGHUP)
    manager.hears("READY=1\nSTATUS=rolling restart failed: a new worker did not start")
    assert parent.stopped() == 0
    told = [message for message in manager.heard if message != "WATCHDOG=1"]
    assert told[-1] == "STOPPING=1\nSTATUS=waiting for running jobs"


def test_it_is_not_ready_while_a_process_cannot_load_the_app(yard: Yard, manager: Manager, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_dependency\n")
    parent = yard.start("--processes", "2", app="broken:app", NOTIFY_SOCKET=manager.address)
    assert parent.wait() == 1
    assert not any(message.startswith("READY") for message in manager.heard)


def test_a_worker_without_a_supervisor_tells_the_same(yard: Yard, app: Rota, manager: Manager) -> None:
    worker = yard.start(NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="1000000")
    manager.hears("READY=1")
    manager.hears("STATUS=working")
    manager.hears("WATCHDOG=1", times=2)
    assert worker.processes() == []
    assert worker.stopped() == 0
    assert "STOPPING=1\nSTATUS=waiting for running jobs" in manager.heard


@pytest.mark.parametrize("manager", ["file", "abstract"], indirect=True)
def test_a_watchdog_that_is_meant_for_another_process_is_not_fed(monkeypatch: pytest.MonkeyPatch, manager: Manager) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    monkeypatch.setenv("WATCHDOG_USEC", "1000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    notifier = Notifier()
    assert notifier.feed_every == float("inf")
    notifier.status("well")
    notifier.status("well")
    assert manager.heard == ["STATUS=well"]


def test_nobody_listening_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    Notifier().ready("well")
    monkeypatch.delenv("NOTIFY_SOCKET")
    Notifier().ready("well")
