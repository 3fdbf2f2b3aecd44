"""A Postgres URL means what it means to libpq, and what cannot be meant is refused without a word of its password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rota import Rota
from rota.errors import ConfigError
from rota.stores import open_store
from rota.stores.postgres_url import read_url
from servers import PostgresServer

SECRET = "S3cr3t"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that says nothing of a database."""
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE", "PGSERVICEFILE", "PGCONNECT_TIMEOUT", "PGAPPNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql:///shop",
        "postgresql:///shop?host=/run/postgresql",
        "postgresql://?service=shop",
        "postgresql://me@/shop?host=/a,/b&port=1,2",
        "postgresql://me:pass#word?%2F%40@db1:5432,db2,[::1]:6432/shop?application_name=a+b",
        "postgres://me@%2Frun%2Fpostgresql:5433/shop?options=-c%20search_path%3Dx",
        "postgresql://:secret@db/shop?ssl=true",
    ],
)
def test_what_is_not_rotas_own_reaches_the_driver_as_it_is_written(url: str) -> None:
    meant = conninfo_to_dict(url)
    assert conninfo_to_dict(read_url(url).conninfo) == meant
    more = f"{url}{'&' if '?' in url else '?'}schema=My+%22Jobs%22&pooler=true"
    read = read_url(more)
    assert conninfo_to_dict(read.conninfo) == meant
    assert read.own == {"schema": 'My+"Jobs"', "pooler": "true"}
    assert "secret" not in read.shown


def test_what_people_write_unescaped_in_options_is_taken() -> None:
    assert conninfo_to_dict(read_url("postgresql://h/d?options=-c a=1 -c b=2").conninfo)["options"] == "-c a=1 -c b=2"
    assert read_url(" POSTGRESQL://h/d\n").conninfo == "postgresql://h/d"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}/x@db/shop",
        f"postgresql://me:{SECRET}@x@db/shop",
        f"postgresql://me:%{SECRET}@db/shop",
        f"postgresql://me:{SECRET}@db:port/shop",
        f"postgresql://me:{SECRET}@db:0/shop",
        f"postgresql://me:{SECRET}@db:99999/shop",
        f"postgresql://me:{SECRET}@[::1/shop",
        f"postgresql://me:{SECRET}@db/shop?colour=red",
        f"postgresql://me:{SECRET}@db/shop?pooler=maybe",
        f"postgresql://db/shop?password=%{SECRET}",
        f"postgresql://db/shop?password={SECRET}&nonsense",
        f"postgresql:me:{SECRET}@db/shop",
    ],
)
def test_a_url_that_cannot_be_right_is_refused_and_its_password_is_not_told(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(url)
    told = [str(refused.value), str(refused.value.__cause__ or "")]
    assert not [text for text in told if SECRET in text]
    assert "URL" in told[0]


@pytest.mark.parametrize("url", ["sqlite://[/jobs.db", "sqlite://[x]y/jobs.db"])
def test_brackets_where_none_can_be_are_refused_in_words(url: str) -> None:
    with pytest.raises(ConfigError, match=r"names no file: write sqlite:///relative\.db"):
        open_store(url)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("pooler", "false"),
        ("pooler", 0),
        ("migrate", "false"),
        ("max_size", "4"),
        ("max_size", 0),
        ("connect_timeout", "5"),
        ("connect_timeout", 0),
        ("schema", 3),
        ("schema", "a\0b"),
        ("schema", "pg_jobs"),
        ("schema", "x" * 64),
    ],
)
def test_an_option_of_another_kind_is_refused_by_name(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{option}="):
        open_store("postgresql://db/shop", **{option: value})


@pytest.mark.parametrize(("option", "value"), [("migrate", "false"), ("patience", "30"), ("patience", -1), ("patience", None)])
def test_so_is_one_of_sqlite(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{option}="):
        open_store("sqlite:///jobs.db", **{option: value})


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me@db1:5432,db2/shop", "db1:5432,db2/shop"),
        ("postgresql://me@db1,db2/shop?port=5433", "db1:5433,db2:5433/shop"),
        ("postgresql:///shop", "localhost/shop"),
        ("postgresql://me@db", "db/me"),
        ("postgresql://[::1]:5433/shop", "[::1]:5433/shop"),
    ],
)
def test_messages_name_the_place(url: str, place: str) -> None:
    assert read_url(url).place == place


@pytest.fixture
def odd(postgres_server: PostgresServer) -> Iterator[str]:
    """A user's password, which a server that asks for it knows."""
    password = "p@s:s/w#o?r%d+ \"x'\\&=é"
    with postgres_server.connect() as admin:
        admin.execute("create role odd login superuser")
        admin.execute(psycopg.sql.SQL("alter role odd password {}").format(password))
        rules = postgres_server.data / "pg_hba.conf"
        before = rules.read_text()
        rules.write_text(f"local all odd scram-sha-256\n{before}")
        admin.execute("select pg_reload_conf()")
        try:
            yield password
        finally:
            rules.write_text(before)
            admin.execute("select pg_reload_conf()")
            admin.execute("drop role odd")


def test_a_password_of_odd_characters_is_that_password(postgres_server: PostgresServer, odd: str) -> None:
    with postgres_server.schema() as url:
        for escaped in (quote(odd, safe=""), quote(odd, safe="+#?")):
            with Rota(url.replace("postgres@", f"odd:{escaped}@")) as app:
                app.send("x")
        with Rota(f"{url.replace('postgres@', 'odd@')}&password={quote(odd, safe='+')}") as app:
            app.send("x")


def test_a_service_file_counts_and_what_it_says_is_not_overruled(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text(
        f"# ours\n[shop]\nhost=/nowhere,{postgres_server.directory}\nuser=postgres\ndbname=postgres\napplication_name=till\n"
        "connect_timeout=7\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    with postgres_server.schema() as direct:
        schema = urlsplit(direct).query.rpartition("schema=")[2]
        with Rota(f"postgresql://?service=shop&schema={schema}") as app:
            app.send("x")
            assert any(" till: " in said for said in postgres_server.backends().values())
        read = read_url("postgresql://?service=shop")
        assert read.place == f"/nowhere,{postgres_server.directory}/postgres"
        assert read.known["connect_timeout"] == "7"
    monkeypatch.setenv("PGSERVICE", "shop")
    assert read_url("postgresql://").hosts == ["/nowhere", str(postgres_server.directory)]


def test_the_environment_counts_where_the_url_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db1,db2")
    monkeypatch.setenv("PGDATABASE", "shop")
    assert read_url("postgresql://").place == "db1,db2/shop"
    assert read_url("postgresql://db3/").place == "db3/shop"
