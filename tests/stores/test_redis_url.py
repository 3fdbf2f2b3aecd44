"""A Redis URL leads where it says, and what cannot be meant is refused without a word of its password."""

from __future__ import annotations

import pytest

from rota.errors import ConfigError
from rota.stores import open_store
from rota.stores.redis.url import Address, Sentinel, read_url

SECRET = "S3cr3t"


def address(**fields: object) -> Address:
    usual = {"shown": "", "hosts": (), "path": "", "db": 0, "username": None, "password": None, "tls": None}
    return Address(**usual | {"sentinel": None, "prefix": None} | fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("redis://", address(shown="redis://", hosts=(("localhost", 6379),))),
        (" REDIS://db \n", address(shown="redis://db", hosts=(("db", 6379),))),
        ("redis://db:7000/3", address(shown="redis://db:7000/3", hosts=(("db", 7000),), db=3)),
        (
            "redis://db?db=4&prefix=shop",
            address(shown="redis://db?db=4&prefix=shop", hosts=(("db", 6379),), db=4, prefix="shop"),
        ),
        ("redis://[::1]:7000", address(shown="redis://[::1]:7000", hosts=(("::1", 7000),))),
        ("redis://:S3cr3t@db", address(shown="redis://db", hosts=(("db", 6379),), password=SECRET)),
        ("redis://me:%40%2F%3A@db", address(shown="redis://me@db", hosts=(("db", 6379),), username="me", password="@/:")),
        ("unix:///run/redis.sock", address(shown="unix:///run/redis.sock", path="/run/redis.sock")),
        (
            "unix://me:S3cr3t@/run/a%20b?db=2",
            address(shown="unix://me@/run/a%20b?db=2", path="/run/a b", db=2, username="me", password=SECRET),
        ),
        ("rediss://db", address(shown="rediss://db", hosts=(("db", 6379),), tls={})),
        (
            "rediss://db?ssl_ca_certs=/a&ssl_check_hostname=false",
            address(
                shown="rediss://db?ssl_ca_certs=/a&ssl_check_hostname=false",
                hosts=(("db", 6379),),
                tls={"ssl_ca_certs": "/a", "ssl_check_hostname": False},
            ),
        ),
        (
            "redis+sentinel://me:S3cr3t@one,two:7000/jobs/1?sentinel_username=s&sentinel_password=S3cr3t",
            address(
                shown="redis+sentinel://me@one,two:7000/jobs/1?sentinel_username=s",
                hosts=(("one", 26379), ("two", 7000)),
                db=1,
                username="me",
                password=SECRET,
                sentinel=Sentinel("jobs", "s", SECRET),
            ),
        ),
        (
            "rediss+sentinel://one/jobs",
            address(
                shown="rediss+sentinel://one/jobs",
                hosts=(("one", 26379),),
                tls={},
                sentinel=Sentinel("jobs", None, None),
            ),
        ),
    ],
)
def test_a_url_means_what_it_says(url: str, meant: Address) -> None:
    assert read_url(url) == meant
    assert SECRET not in read_url(url).shown


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis:db", "cannot be read"),
        (f"redis://me:{SECRET}/@db", "cannot be read"),
        (f"redis://me:{SECRET}@db:port", "cannot be read"),
        ("redis://db:0", "cannot be read"),
        ("redis://db:65536", "cannot be read"),
        ("redis://db#x", "cannot be read"),
        ("redis://db/jobs", "the database 'jobs' .* is no number"),
        ("redis://db?prefix", "'prefix' .* says nothing; after the . may stand prefix, db"),
        ("redis://db?schema=x", "'schema' .* is not known"),
        ("redis://db?ssl_ca_certs=/a", "without TLS there is nothing to check; write rediss://"),
        ("rediss://db?ssl_check_hostname=1", "neither true nor false"),
        ("rediss://db?ssl_cert_reqs=some", "none of none, optional, required"),
        ("unix://run/redis.sock", "unix:///path/to/socket"),
        ("redis+sentinel://one,two", "names no service: it is written redis"),
        ("redis://db?prefix=a{b", "braces"),
    ],
)
def test_what_cannot_be_meant_is_refused(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        open_store(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"prefix": 1}, "prefix=1"),
        ({"prefix": "a}"}, "braces"),
        ({"migrate": "no"}, "migrate='no' is neither True nor False"),
        ({"max_size": 0}, "max_size=0"),
        ({"timeout": 0}, "timeout=0"),
        ({"schema": "x"}, "does not take these options"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_store("redis://db", **options)


def test_a_driver_in_the_scheme_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match="write redis://"):
        open_store("redis+hiredis://db")
