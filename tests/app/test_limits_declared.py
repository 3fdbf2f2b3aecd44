"""Limits as tasks declare them: what may be written, what is refused where the task is declared, and what a claim asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from rota import ConfigError, Limit, Rota
from rota.limiting import _REMEMBERED, Limiting
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency, Rate
from rota.task import Task

MINUTE = 60_000_000


@pytest.fixture
def here() -> Iterator[Rota]:
    """An app whose store is never needed."""
    with Rota("memory://") as app:
        yield app


def repr_of(value: object) -> str:
    """A name for a case, the same in each process of the tests."""
    return re.sub(r"<function .*? at \w+>", "...", repr(value))


def declared(app: Rota, **options: Any) -> Task[..., Any, Any]:
    @app.task(name="build", **options)
    def build(tenant: str, report: int = 1) -> None: ...

    return build


def limits(task: Task[..., Any, Any]) -> dict[str, object]:
    return {limit.name: limit.size for limit in task.limits}


def limiting(app: Rota) -> Limiting:
    assert app.limiting is not None
    return app.limiting


def test_a_task_without_limits_has_none(here: Rota) -> None:
    assert declared(here).limits == ()
    assert here.limiting is None


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"concurrency": 2}, {"concurrency of build": Concurrency(2)}),
        ({"rate": "10/m"}, {"rate of build": Rate(10, MINUTE)}),
        ({"rate": "10/M", "concurrency": 2}, {"concurrency of build": Concurrency(2), "rate of build": Rate(10, MINUTE)}),
        (
            {"rate": ["10/s", Limit("1000/day", name="daily")]},
            {"rate of build": Rate(10, 1_000_000), "daily": Rate(1000, 1440 * MINUTE)},
        ),
        (
            {"concurrency": (Limit(2, key=lambda tenant: tenant), 20)},
            {"concurrency of build by tenant": Concurrency(2), "concurrency of build": Concurrency(20)},
        ),
    ],
    ids=repr_of,
)
def test_limits_are_declared_alone_together_and_several_at_once(here: Rota, options: Any, found: dict[str, object]) -> None:
    assert limits(declared(here, **options)) == found
    assert limiting(here).sizes({}) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"concurrency": 0}, "concurrency=0: from 1 to"),
        ({"concurrency": -1}, "concurrency=-1: from 1 to"),
        ({"concurrency": True}, "concurrency=True: how many"),
        ({"concurrency": "10/m"}, "concurrency='10/m' is a rate"),
        ({"concurrency": []}, "concurrency=[]: a list"),
        ({"rate": "often"}, "rate='often' is no rate"),
        ({"rate": "0/m"}, "rate='0/m': both numbers"),
        ({"rate": "-1/m"}, "rate='-1/m' is no rate"),
        ({"rate": "10/fortnight"}, "rate='10/fortnight' is no rate"),
        ({"rate": "2000000/s"}, "rate='2000000/s' is faster than the clock"),
        ({"rate": 10}, "rate=10 does not say in how long"),
        ({"rate": Limit(2)}, "rate=2 does not say in how long"),
        ({"concurrency": [Limit(1, name="x"), Limit(2, name="x")]}, "two limits named 'x'"),
        ({"concurrency": Limit(1, key=lambda shop: shop)}, "'shop', which is no argument of task build: it has tenant, report"),
    ],
    ids=repr_of,
)
def test_what_cannot_be_a_limit_is_refused_where_the_task_is_declared(here: Rota, options: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        declared(here, **options)
    assert said in str(refused.value)
    assert here.tasks == {}
    assert here.limiting is None


def test_tasks_that_share_a_name_share_the_limit(here: Rota) -> None:
    here.task(name="one", rate=Limit("10/m", name="partner"))(lambda: None)
    here.task(name="two", rate=Limit("1/6s", name="partner"))(lambda: None)
    assert limiting(here).tasks_of("partner") == ["one", "two"]
    assert limiting(here).instances("id", "one", "{}") == limiting(here).instances("id", "two", "{}") == (Instance("partner"),)


def test_tasks_that_share_a_name_must_agree(here: Rota) -> None:
    here.task(name="one", rate=Limit("10/m", name="partner"))(lambda: None)
    with pytest.raises(ConfigError, match=r"limit 'partner' is 10/m for task one and 11/m for task two"):
        here.task(name="two", rate=Limit("11/m", name="partner"))(lambda: None)
    with pytest.raises(ConfigError, match=r"limit 'partner' is 10/m for task one and 2 at once for task three"):
        here.task(name="three", concurrency=Limit(2, name="partner"))(lambda: None)
    assert list(here.tasks) == ["one"]
    assert limiting(here).tasks_of("partner") == ["one"]


# -- what a claim asks --------------------------------------------------------------------------


def test_a_size_that_was_set_outweighs_the_declared_one(here: Rota) -> None:
    declared(here, concurrency=2, rate="10/m")
    name = "concurrency of build"
    assert limiting(here).sizes({name: Concurrency(5)})[name] == Concurrency(5)
    assert limiting(here).sizes({})[name] == Concurrency(2)
    assert limiting(here).sizes({name: Rate(1, MINUTE)})[name] == Concurrency(2)


def test_a_job_is_in_the_room_of_its_key_however_its_arguments_were_given(here: Rota) -> None:
    declared(here, concurrency=[Limit(2, key=lambda tenant, report: (tenant, report)), 20])
    room = Instance("concurrency of build by tenant, report", '["acme",1]')
    for args in ('{"tenant":"acme"}', '{"*":["acme"]}', '{"*":["acme",1]}', '{"report":1,"tenant":"acme"}'):
        assert limiting(here).instances("id", "build", args) == (room, Instance("concurrency of build"))


@pytest.mark.parametrize("args", ["{}", '{"shop":1}', '{"tenant":7}', "[]", "no json", ""])
def test_a_job_whose_arguments_do_not_fit_is_in_no_room(here: Rota, args: str) -> None:
    declared(here, concurrency=Limit(2, key=lambda tenant: tenant))
    assert limiting(here).instances("id", "build", args) == ()
    assert limiting(here).bad == {}


def test_a_task_that_is_unknown_or_has_no_limits_is_in_no_room(here: Rota) -> None:
    declared(here, concurrency=2)
    here.task(name="free")(lambda: None)
    assert limiting(here).instances("id", "free", "{}") == limiting(here).instances("id", "elsewhere", "{}") == ()


def test_a_job_without_a_usable_key_is_remembered_for_whoever_claims_it(here: Rota) -> None:
    declared(here, concurrency=Limit(2, key=lambda tenant: {"a": 1}[tenant]))
    assert limiting(here).instances("id", "build", '{"tenant":"b"}') == ()
    assert "the key of limit 'concurrency of build by tenant' raised KeyError" in str(limiting(here).bad.pop("id"))


def test_only_so_many_jobs_without_a_key_are_remembered(here: Rota) -> None:
    declared(here, concurrency=Limit(2, key=lambda tenant: object()))
    for number in range(_REMEMBERED + 5):
        limiting(here).instances(f"{number}", "build", '{"tenant":"b"}')
    assert len(limiting(here).bad) == _REMEMBERED
    assert f"{_REMEMBERED + 4}" in limiting(here).bad
