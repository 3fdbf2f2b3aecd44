"""The web application: any WSGI server serves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flask import Flask, render_template
from werkzeug.exceptions import HTTPException

from rota.mail import MessageRefused

from . import forms
from .guestbook import Guestbook
from .headers import secure_headers
from .here import database, one_transaction_a_request, take_back_cookie, visitor
from .pages import entries, forgotten, outbox, sign_in, sign_up


def create_app(guestbook: Guestbook) -> Flask:
    """The application over an open guestbook."""
    https = guestbook.settings.https
    web = Flask(__name__)
    web.url_map.merge_slashes = False  # a path with two would be redirected to whatever host the request names
    web.extensions["guestbook"] = guestbook
    web.config.update(
        SECRET_KEY=guestbook.settings.secret,
        SESSION_COOKIE_NAME="__Host-guestbook" if https else "guestbook",  # a browser lets nobody else set the former
        SESSION_COOKIE_SECURE=https,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",  # so that who comes from a letter is still signed in
        PERMANENT_SESSION_LIFETIME=timedelta(days=14),
        MAX_CONTENT_LENGTH=64 * 1024,
    )
    for pages in (entries, sign_up, sign_in, forgotten):
        web.register_blueprint(pages.pages)
    if guestbook.settings.shows_outbox:
        web.register_blueprint(outbox.pages)

    secure_headers(web, https=https)
    one_transaction_a_request(web)
    web.register_error_handler(HTTPException, _error)
    web.register_error_handler(MessageRefused, _no_such_address)
    web.jinja_env.trim_blocks = web.jinja_env.lstrip_blocks = True
    web.add_template_filter(_day, "day")
    web.add_template_filter(_moment, "moment")
    web.context_processor(lambda: {"visitor": visitor, "button": forms.Button, "has_outbox": guestbook.settings.shows_outbox})
    return web


def _error(error: HTTPException) -> tuple[str, int, list[tuple[str, str]]]:
    headers = [(name, value) for name, value in error.get_headers() if name in ("Retry-After", "Allow")]
    code = error.code or 500
    if code >= 500:
        take_back_cookie()
    return render_template("error.html", code=code, name=error.name), code, headers


def _no_such_address(_refused: MessageRefused) -> tuple[str, int]:
    """The letter cannot be written, which is known before it is queued: what was done so far is taken back."""
    database().rollback()
    return render_template("error.html", code=422, name="No letter can go there"), 422


def _day(seconds: int) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
