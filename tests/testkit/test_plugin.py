"""The plugin for pytest, as projects use it: each test here runs pytest on a small project."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

import pytest

import rota
from rota import Rota
from rota.testing import assert_enqueued, fresh_store

pytest_plugins = ["pytester"]

GUIDE = Path(__file__).parents[2] / "docs" / "testing.md"
TASKS = """
from rota import Rota

app = Rota("postgresql://production.invalid/shop")

@app.task
def send_receipt(order_id: int) -> None: ...
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(tasks=TASKS)
    pytester.makeini("[pytest]\nrota_app = tasks:app\npythonpath = .\nfilterwarnings = error")
    return pytester


ALONE = ("--disable-plugin-autoload", "-p", "rota.testing.pytest_plugin", "-p", "no:cacheprovider")
"""Without the other plugins that are installed here, which take most of the time."""


def run(project: pytest.Pytester, code: str) -> pytest.RunResult:
    project.makepyfile(test_shop=code)
    return project.runpytest_inprocess(*ALONE)


def test_each_test_has_an_empty_store_and_a_clock(project: pytest.Pytester) -> None:
    code = """
import pytest
from tasks import app, send_receipt
from rota.testing import assert_enqueued, assert_nothing_enqueued

@pytest.mark.parametrize("number", [1, 2])
def test_receipt(rota_app, rota_clock, number):
    assert rota_app is app
    assert_nothing_enqueued(app)
    send_receipt.using(delay=60).enqueue(42)
    assert_enqueued(send_receipt, 42)
    assert app.run_one() is None
    rota_clock.move(minutes=1)
    assert [str(event) for event in app.drain()] == ["ran tasks.send_receipt"]

def test_afterwards():
    assert (app.url, app.clock) == ("postgresql://production.invalid/shop", None)
"""
    run(project, code).assert_outcomes(passed=3)


def test_a_failure_shows_what_is_there_and_nothing_of_rota(project: pytest.Pytester) -> None:
    code = """
from tasks import send_receipt
from rota.testing import assert_enqueued

def test_receipt(rota_app):
    send_receipt.enqueue(41)
    assert_enqueued(send_receipt, 42)
"""
    result = run(project, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no such job was enqueued: tasks.send_receipt(order_id=42)*", "*order_id: 41, expected 42*"])
    result.stdout.no_fnmatch_line("*asserting.py*")


def test_a_store_in_memory_says_what_a_test_with_a_connection_of_its_own_needs(project: pytest.Pytester) -> None:
    code = """
import sqlite3
from tasks import send_receipt

def test_receipt(rota_app):
    connection = sqlite3.connect(":memory:")
    try:
        send_receipt.using(connection=connection).enqueue(42)
    finally:
        connection.close()
"""
    result = run(project, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*for the pytest fixture rota_app, override rota_url*"])


def test_every_test_may_be_had_ask_for_it_those_of_unittest_too(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nrota_app = tasks:app\npythonpath = .\nusefixtures = rota_app")
    code = """
import unittest
from tasks import app, send_receipt
from rota.testing import aassert_enqueued, assert_enqueued, enqueued

def test_function():
    send_receipt.enqueue(1)
    assert len(enqueued(app)) == 1

class Methods(unittest.TestCase):
    def test_method(self):
        send_receipt.enqueue(2)
        assert len(enqueued(app)) == 1

class Coroutines(unittest.IsolatedAsyncioTestCase):
    async def test_method(self):
        await send_receipt.aenqueue(3)
        await aassert_enqueued(send_receipt, 3)
        assert [str(event) for event in await app.adrain()] == ["ran tasks.send_receipt"]
"""
    run(project, code).assert_outcomes(passed=3)


def test_one_test_may_be_about_two_apps_and_run_for_each_of_many(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(tasks=f"{TASKS}\nother = Rota('postgresql://production.invalid/other')")
    code = """
import pytest
import tasks
from rota.testing import enqueued, fresh_store

@pytest.fixture(params=["app", "other"])
def rota_under_test(request):
    return getattr(tasks, request.param)

@pytest.fixture
def second(rota_app, rota_clock):
    with fresh_store(tasks.app if rota_app is tasks.other else tasks.other, clock=rota_clock) as app:
        yield app

def test_both(rota_app, second):
    rota_app.send("elsewhere")
    assert (len(enqueued(rota_app)), enqueued(second)) == (1, [])
"""
    run(pytester, code).assert_outcomes(passed=2)


def test_the_app_and_its_store_may_be_named_in_code(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(tasks=TASKS)
    code = """
import pytest
import tasks

@pytest.fixture
def rota_under_test():
    return tasks.app

@pytest.fixture
def rota_url(tmp_path):
    return f"sqlite:///{tmp_path}/jobs.db"

def test_receipt(rota_app, tmp_path):
    tasks.send_receipt.enqueue(42)
    assert (tmp_path / "jobs.db").exists()
"""
    run(pytester, code).assert_outcomes(passed=1)


def test_without_a_setting_it_is_said_how_to_name_the_app(pytester: pytest.Pytester) -> None:
    # An app of its own would have the test's jobs go to the store that the app under test was declared on.
    pytester.makepyfile(tasks=TASKS)
    result = run(pytester, "import tasks\ndef test_it(rota_app): tasks.send_receipt.enqueue(42)")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*set rota_app = module:attribute*override the fixture rota_under_test*"])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("tasks", "name your app as module:attribute"),
        ("src/tasks.py:app", "name your app as module:attribute"),
        ("nowhere:app", "there is no module 'nowhere' on Python's path"),
        ("tasks:send_receipt", "'send_receipt' is no Rota app, but of type Task; the Rota apps there: tasks:app"),
        ("tasks:nope", "tasks has no attribute 'nope'; the Rota apps there: tasks:app"),
        ("tasks:make", "override the fixture rota_under_test with one that calls it"),
        ("os:path", "'path' is no Rota app, but of type module; there is no Rota app at the top of os"),
    ],
)
def test_a_setting_that_leads_nowhere_says_so(pytester: pytest.Pytester, named: str, said: str) -> None:
    pytester.makepyfile(tasks=f"{TASKS}\ndef make(): ...")
    pytester.makeini(f"[pytest]\nrota_app = {named}\npythonpath = .")
    result = run(pytester, "def test_it(rota_app): ...")
    assert said in result.stdout.str()
    result.assert_outcomes(errors=1)


def test_who_does_not_use_it_pays_nothing_but_its_import(pytester: pytest.Pytester) -> None:
    code = """
import sys

def test_nothing_is_loaded():
    assert not {"asyncio", "sqlite3", "rota.worker", "rota.testing.asserting"} & set(sys.modules)
"""
    pytester.makepyfile(test_shop=code)
    result = pytester.runpytest_subprocess("-W", "error", "-p", "no:anyio", "-p", "no:valkey")
    result.assert_outcomes(passed=1)


def test_pytest_is_told_that_rota_may_have_been_imported_before_it() -> None:
    # It would warn of that for each package that comes along with a plugin, once that is installed from a wheel.
    assert "PYTEST_DONT_REWRITE" in (rota.__doc__ or "")


def test_the_tests_in_the_guide_pass_as_written(pytester: pytest.Pytester) -> None:
    blocks = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL))
    settings, *_ = re.findall(r"```ini\n(\[pytest\].*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    for name, code in blocks.items():
        pytester.path.joinpath(name).write_text(code)
    pytester.makeini(settings)
    result = pytester.runpytest_inprocess(*ALONE, "-W", "error", *blocks)
    result.assert_outcomes(passed=3)


# -- without pytest -----------------------------------------------------------------------------


class Receipts(unittest.TestCase):
    """What the guide says of unittest."""

    app = Rota("postgresql://production.invalid/shop")

    def setUp(self) -> None:
        self.enterContext(fresh_store(self.app))

    def test_functions_are_all_that_is_needed(self) -> None:
        job = self.app.send("shop.send_receipt", 42)
        assert assert_enqueued(self.app.named("shop.send_receipt"), 42) == job
        with pytest.raises(AssertionError):
            assert_enqueued(self.app.named("shop.send_receipt"), 43)

    def test_a_failure_shows_nothing_of_rota(self) -> None:
        class Failing(unittest.TestCase):
            def test_it(self) -> None:
                assert_enqueued(Receipts.app.named("shop.send_receipt"), 42)

        result = unittest.TestResult()
        Failing("test_it").run(result)
        [(_, told)] = result.failures
        assert "nothing was enqueued at all" in told
        assert "asserting.py" not in told
