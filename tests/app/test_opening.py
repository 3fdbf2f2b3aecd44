"""Opening a store: what is wrong with a URL is said in words, and nothing waits long for what is not there."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rota import ConfigError, Rota, StoreUnavailable


def refused(url: object, **options: object) -> str:
    with pytest.raises(ConfigError) as said, Rota(url, **options) as app:  # type: ignore[arg-type]
        app.send("t")
    return str(said.value)


def test_nothing_is_opened_before_the_first_use(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with Rota(f"sqlite:///{path}") as app:
        app.task(name="t")(print)
        app.named("t").using(delay=5)
        assert not path.exists()
        app.send("u")
        assert path.exists()


@pytest.mark.parametrize("url", ["mysql://localhost/jobs", "jobs.db", "", "postgress://localhost/jobs"])
def test_an_unknown_scheme_names_those_that_are_known(url: str) -> None:
    said = refused(url)
    assert said.startswith("no store is known for ")
    assert "memory://, postgres://, postgresql://, redis://" in said
    assert "sqlite://" in said


def test_a_url_is_text(tmp_path: Path) -> None:
    assert refused(tmp_path).endswith("pass text, for example 'sqlite:///jobs.db'")


def test_the_url_comes_from_the_environment_where_none_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROTA_URL", f"sqlite:///{tmp_path}/other.db")
    assert Rota().url.endswith("/other.db")
    assert Rota("memory://").url == "memory://"
    monkeypatch.setenv("ROTA_URL", "")
    assert Rota().url == "sqlite:///rota.db"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://jobs.db", "sqlite:///jobs.db?mode=ro", "memory://jobs"])
def test_a_url_that_names_no_place_shows_one_that_does(url: str) -> None:
    assert "write " in refused(url)


def test_an_option_that_the_store_does_not_take_is_named() -> None:
    said = refused("memory://", keep_suceeded=5)
    assert said.startswith("the store memory:// does not take these options (keep_suceeded)")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert f"there is no directory {tmp_path}/no" in refused(f"sqlite:///{tmp_path}/no/jobs.db")


def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    assert refused(f"sqlite:///{tmp_path}").startswith(f"{tmp_path} is a directory: name a file in it")


def test_a_path_that_cannot_be_written_is_named() -> None:
    # Even root may make no file in /proc.
    with (
        Rota("sqlite:////proc/self/jobs.db") as app,
        pytest.raises((ConfigError, StoreUnavailable), match=r"the SQLite file /proc/self/jobs\.db cannot be"),
    ):
        app.send("t")


def test_an_app_that_could_not_open_tries_again_at_the_next_use(tmp_path: Path) -> None:
    with Rota(f"sqlite:///{tmp_path}/later/jobs.db") as app:
        with pytest.raises(ConfigError):
            app.send("t")
        (tmp_path / "later").mkdir()
        assert app.send("t").status == "queued"


@pytest.mark.parametrize("place", ["127.0.0.1:{port}", "no-such-host.invalid"])
def test_an_unreachable_postgres_is_told_fast_and_clearly(place: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening, so nobody else can answer there
        url = f"postgresql://ada:s3cret@{place.format(port=closed.getsockname()[1])}/jobs"
        begun = time.monotonic()
        with Rota(url) as app, pytest.raises(StoreUnavailable) as said:
            app.send("t")
        assert time.monotonic() - begun < 10
    assert "s3cret" not in str(said.value)
    assert str(said.value)


def test_a_postgres_that_accepts_and_never_answers_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with (
            Rota(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/jobs", connect_timeout=2) as app,
            pytest.raises(StoreUnavailable),
        ):
            app.send("t")
        assert time.monotonic() - begun < 10


WITHOUT_DRIVER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("psycopg", "psycopg_pool"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from rota import DriverMissing, Rota
app = Rota("postgresql://localhost/jobs")
try:
    app.send("t")
except DriverMissing as error:
    print(error)
"""


def test_a_missing_driver_names_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_DRIVER], capture_output=True, text=True, check=True)
    assert "pip install 'rota[postgres]'" in done.stdout
