"""An app in memory, mailers that are closed again, and certificates."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import trustme

from rota import Rota
from rota.mail import Mailer, compose

MakeMailer = Callable[..., Mailer]


@pytest.fixture
def app() -> Iterator[Rota]:
    with Rota("memory://") as app:
        yield app


@pytest.fixture
def mailer(app: Rota) -> Iterator[MakeMailer]:
    """Makes mailers of the app that are quick to lose their patience, and closes them at the end."""
    made: list[Mailer] = []

    def make(url: str, **options: Any) -> Mailer:
        told = {"sender": "shop@example.org", "timeout": 5.0, "total_timeout": 10.0} | options
        made.append(Mailer(told.pop("app", app), url, **told))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """A server's TLS, with a certificate for localhost."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture(scope="session")
def cafile(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def letter(to: str | list[str] = "ada@example.org", **fields: Any) -> EmailMessage:
    """A message that nothing is wrong with, or only what is told."""
    return compose(**({"to": to, "subject": "Welcome", "text": "Good to have you."} | fields))
