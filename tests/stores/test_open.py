"""Finding the store for a URL, cheaply and with clear words when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rota.errors import ConfigError
from rota.stores import open_store


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_unknown_scheme_is_refused_naming_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"mysql.*memory://, postgres://, postgresql://, redis://.*sqlite://"):
        open_store("mysql://localhost/jobs")


def test_a_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"jobs\.db"):
        open_store("jobs.db")


def test_a_url_of_sqlalchemys_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"postgresql\+psycopg://.*write postgresql://"):
        open_store("postgresql+psycopg://localhost/jobs")


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="colour"):
        open_store("memory://", colour="red")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/jobs.db", "sqlite:///jobs.db?mode=ro"])
def test_a_sqlite_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"sqlite:///relative\.db"):
        open_store(url)


def test_a_relative_url_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///my%20jobs.db")
    store.open()
    store.close()
    assert (tmp_path / "my jobs.db").is_file()


def test_a_password_is_not_told() -> None:
    store = open_store("postgresql://me:secret@db.example/jobs?password=hidden&schema=s")
    assert store.url == "postgresql://me@db.example/jobs?schema=s"


def test_a_missing_driver_is_named_with_what_to_install() -> None:
    code = """if True:
        import sys
        sys.modules["psycopg"] = None
        from rota.errors import DriverMissing
        from rota.stores import open_store
        try:
            open_store("postgresql://localhost/jobs")
        except DriverMissing as error:
            print(error)
    """
    assert "pip install 'rota[postgres]'" in run(code)


def test_importing_the_stores_imports_no_driver() -> None:
    heavy = "{'sqlite3', 'psycopg', 'importlib.metadata', 'asyncio'}"
    assert run(f"import rota.stores.base, rota.stores, sys; print({heavy} & set(sys.modules))") == "set()"
