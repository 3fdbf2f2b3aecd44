"""Letters that are queued: with the caller's transaction, beside a program, and whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import aiosqlite
import pytest
from msgspec.structs import replace

from mail.conftest import MakeMailer, letter
from mail.sinks import HANG, odd
from rota import ConfigError, Rota, State
from rota.mail import Mailer, MessageRefused, read_folder
from rota.mail.places import Server, place_of
from working import eventually, working


def test_a_letter_goes_out_if_the_transaction_is_committed(tmp_path: Path, mailer: MakeMailer) -> None:
    with Rota(f"sqlite:///{tmp_path / 'shop.db'}") as app, odd() as server:
        mine = mailer(server.url, app=app)
        app.migrate()
        shop = sqlite3.connect(tmp_path / "shop.db")
        with shop:
            mine.deliver_later(letter("kept@example.org"), connection=shop, priority=1)
        with pytest.raises(ZeroDivisionError), shop, app.within(shop):
            mine.deliver_later(letter("lost@example.org"))
            raise ZeroDivisionError
        shop.close()
        app.drain()
        assert [taken.recipients[0] for taken in server.letters] == ["kept@example.org"]


def test_a_letter_of_a_coroutine_goes_with_its_transaction(tmp_path: Path, mailer: MakeMailer) -> None:
    async def sign_up(shop: Mailer, path: Path) -> None:
        async with aiosqlite.connect(path) as connection:
            await shop.adeliver_later(letter("kept@example.org"), connection=connection)
            await connection.commit()
            async with shop._app.within(connection):
                await shop.adeliver_later(letter("lost@example.org"))
            await connection.rollback()

    with Rota(f"sqlite:///{tmp_path / 'shop.db'}") as app, odd() as server:
        app.migrate()
        asyncio.run(sign_up(mailer(server.url, app=app), tmp_path / "shop.db"))
        app.drain()
        assert [taken.recipients[0] for taken in server.letters] == ["kept@example.org"]


def test_a_worker_beside_a_program_waits_for_a_server_that_is_down(mailer: MakeMailer) -> None:
    with Rota("memory://") as app, odd({"greeting": ["421 down"]}) as server, app.beside(queues=["mail"]):
        job = mailer(server.url, app=app).deliver_later(letter()).wait(timeout=30)
        assert (job.status, job.attempt, len(server.letters)) == (State.SUCCEEDED, 1, 1)


def test_letters_leave_in_the_order_in_which_they_were_queued(app: Rota, mailer: MakeMailer) -> None:
    with odd() as server:
        mine = mailer(server.url)
        for number in range(20):
            mine.deliver_later(letter(f"{number}@example.org"))
        with working(app, concurrency=1):
            eventually(lambda: len(server.letters) == 20)
        assert [taken.recipients[0] for taken in server.letters] == [f"{number}@example.org" for number in range(20)]


def test_a_worker_that_is_killed_in_the_middle_loses_no_letter(tmp_path: Path, mailer: MakeMailer) -> None:
    """One letter is on its way in, the other has arrived and is not answered: that one may come twice, and be recognised."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with Rota(url) as app, odd({"DATA": [HANG]}, hold=threading.Event()) as server:
        mine = mailer(server.url, app=app)
        first, second = (mine.deliver_later(letter(f"{name}@example.org")) for name in ("ada", "bo"))
        worker = subprocess.Popen([sys.executable, str(Path(__file__).with_name("mail_worker.py")), url, server.url])
        try:
            assert server.holding.acquire(timeout=30)
            eventually(lambda: server.commands.count("DATA") == 2)
        finally:
            worker.kill()
            assert worker.wait(30) == -signal.SIGKILL
        assert server.hold is not None
        server.hold.set()
        with working(app, lease=1.0):
            first.wait(timeout=30)
            second.wait(timeout=30)
    assert (first.status, second.status) == (State.SUCCEEDED, State.SUCCEEDED)
    copies = {job.result().message_id: 0 for job in (first, second)}
    for taken in server.letters:
        copies[taken.message_id.decode().partition(": ")[2]] += 1
    assert sorted(copies.values()) in ([1, 1], [1, 2])
    assert len({taken.content for taken in server.letters}) == 2


def test_eager_mode_sends_at_once(mailer: MakeMailer) -> None:
    with Rota("memory://", eager=True) as app, odd() as server:
        job = mailer(server.url, app=app).deliver_later(letter())
        assert job.result().accepted == ("ada@example.org",)


def test_an_app_has_a_mailer_for_each_name(app: Rota, mailer: MakeMailer) -> None:
    with odd() as one, odd() as two:
        mailer(one.url).deliver_later(letter())
        mailer(two.url, name="newsletter", queue="bulk").deliver_later(letter())
        with pytest.raises(ConfigError, match="has a task named deliver already"):
            mailer(one.url)
        assert sorted(str(event) for event in app.drain()) == ["ran deliver", "ran newsletter"]
        assert (len(one.letters), len(two.letters)) == (1, 1)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "a mailer needs a URL"),
        ("", "a mailer needs a URL"),
        ("http://example.org", "leads nowhere"),
        ("smtp://", "names no server"),
        ("smtp://host/path", "names no server"),
        ("smtp://user:sec#ret@host", "cannot be read|names no server"),
        ("smtp://user:sec@ret:x@host:port", "cannot be read"),
        ("smtp://user@host", "a user or a password without the other"),
        ("smtp://host?ssl=yes", "has the option ssl"),
        ("smtp://user:1?secret@host", "has an option that is none"),
        ("smtp://host?hello=a%0D%0Ab", "hello="),
        ("smtp://host?tls=yes", "it is starttls, tls or none"),
        ("smtps://host?tls=none", "smtps is tls=tls"),
        ("smtp://host?cafile=/nowhere.pem", "no such file"),
        ("file://host/mail", "three slashes"),
    ],
)
def test_a_url_that_cannot_be_right_is_refused_and_shows_no_password(app: Rota, url: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        Mailer(app, url)
    assert "sec" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "option",
    [
        {"sender": "nobody"},
        {"sender": "a@b.de\nBcc: c@d.de"},
        {"timeout": 0},
        {"total_timeout": -1},
        {"connections": 0},
        {"idle": -1},
        {"max_size": 0.5},
        {"queue": ""},
        {"rate": "often"},
    ],
    ids=str,
)
def test_an_option_that_cannot_be_right_is_refused(app: Rota, option: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Mailer(app, "console:", **option)  # type: ignore[arg-type]


def test_a_password_shows_nowhere_where_variables_are_shown() -> None:
    place = place_of("smtp://shop:sesame@smtp.example.com?cafile=/etc/hosts")
    assert isinstance(place, Server)
    assert place.password == "sesame"
    assert "sesame" not in f"{place} {place!r} {list(place.__rich_repr__())}"


def test_the_environment_says_where_mail_goes(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_MAIL_URL", "smtp://shop:sesame@smtp.example.com")
    assert repr(Mailer(app)) == "<Mailer deliver to smtp.example.com:587>"


# -- for development ----------------------------------------------------------------------------


def test_a_folder_has_each_letter_as_a_file_in_order(app: Rota, tmp_path: Path, mailer: MakeMailer) -> None:
    mine = mailer(f"file://{tmp_path}/out%20box")
    queued = [mine.letter(letter(subject=str(number), bcc="bo@example.org")) for number in range(3)]
    for each in queued:
        mine.deliver(each)
    files = sorted((tmp_path / "out box").iterdir())
    assert [file.suffix for file in files] == [".eml"] * 3
    for file, each in zip(files, queued, strict=True):
        envelope = b"X-Envelope-From: shop@example.org\r\nX-Envelope-To: ada@example.org,\r\n bo@example.org\r\n"
        assert file.read_bytes() == envelope + each.wire()
    assert [message["Subject"] for message in read_folder(tmp_path / "out box")] == ["0", "1", "2"]
    assert read_folder(tmp_path / "none yet") == []


def test_a_folder_that_cannot_be_written_to_is_tried_again(app: Rota, tmp_path: Path, mailer: MakeMailer) -> None:
    (tmp_path / "file").touch()
    mailer(f"file://{tmp_path}/file/mail").deliver_later(letter())
    assert "cannot be written to" in str(app.run_one())


def test_the_console_shows_a_letter_as_people_read_it(capsys: pytest.CaptureFixture[str], mailer: MakeMailer) -> None:
    link = f"https://example.org/confirm?token={'x' * 200}"
    text = f"Grüße!\n{link}\n\x1b[2J"
    mailer("console:").deliver(letter(subject="Grüße", text=text, bcc="bo@example.org", attachments=[("ä.txt", b"x")]))
    said = capsys.readouterr().out
    assert "Subject: Grüße\n" in said
    assert f"\nGrüße!\n{link}\n" in said
    assert "\x1b" not in said
    assert "(goes to ada@example.org, bo@example.org)" in said
    assert "(attached: ä.txt, text/plain)" in said


def test_the_console_shows_letters_of_charsets_that_python_has_not(
    capsys: pytest.CaptureFixture[str], mailer: MakeMailer
) -> None:
    message = letter(text="Good to have you.")
    message.set_param("charset", "x-foreign")
    mailer("console:").deliver(message)
    assert "\nGood to have you.\n" in capsys.readouterr().out


def test_a_letter_that_is_signed_as_it_will_go_over_the_wire_goes_so(app: Rota, mailer: MakeMailer) -> None:
    with odd() as server:
        mine = mailer(server.url)
        made = mine.letter(letter(subject="Grüße " * 30, text=".\n..\nGrüße"))
        signature = b"DKIM-Signature: v=1; h=from:to:subject;\r\n b=" + sha256(made.wire()).hexdigest().encode() + b"\r\n"
        mine.deliver_later(replace(made, content=signature.decode() + made.content))
        app.drain()
        assert [taken.content for taken in server.letters] == [signature + made.wire()]


def test_a_letter_of_ones_own_making_ends_its_last_line(mailer: MakeMailer) -> None:
    with odd() as server:
        mine = mailer(server.url)
        made = mine.letter(letter())
        mine.deliver(replace(made, content=made.content.rstrip("\n")))
        assert [taken.content for taken in server.letters] == [made.wire()]


def test_what_was_checked_once_is_taken_as_it_is(app: Rota, mailer: MakeMailer) -> None:
    with odd() as server:
        mine = mailer(server.url)
        made = mine.letter(letter())
        mine.deliver(made)
        mine.deliver_later(made)
        app.drain()
        assert [taken.content for taken in server.letters] == [made.wire()] * 2


def test_what_is_refused_says_so_from_a_coroutine_too(app: Rota, mailer: MakeMailer) -> None:
    with pytest.raises(MessageRefused):
        asyncio.run(mailer("console:").adeliver_later(letter("nobody")))
    assert app.jobs() == []


@pytest.mark.parametrize("sender", [None, "shop@example.org"])
def test_what_mail_needs_and_is_not_installed_is_named(sender: str | None) -> None:
    program = f"""
import sys
sys.modules["email_validator"] = None
from rota import DriverMissing, Rota
from rota.mail import Mailer, compose
try:
    mailer = Mailer(Rota("memory://"), "console:", sender={sender!r})
    mailer.letter(compose(sender="shop@example.org", to="ada@example.org", subject="x", text="y"))
except DriverMissing as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "mail needs email-validator: pip install 'rota[mail]'\n"


def test_importing_rota_loads_nothing_of_mail_and_the_console_no_smtp() -> None:
    def loaded(code: str) -> set[str]:
        program = f"{code}\nimport sys\nprint(*sys.modules)"
        return set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())

    assert not loaded("import rota") & {"rota.mail", "email_validator", "smtplib", "email.message"}
    assert not loaded("import rota, rota.mail; rota.mail.Mailer(rota.Rota('memory://'), 'console:')") & {
        "asyncio",
        "django",
        "email_validator",
        "smtplib",
        "ssl",
    }
