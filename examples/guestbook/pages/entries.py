"""The guestbook itself: anybody reads, and who has confirmed their address writes."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from sqlalchemy import func, select
from werkzeug import Response

from .. import forms
from ..here import database, guestbook, paced, visitor
from ..models import Entry

A_PAGE = 10
"""Entries on a page."""

pages = Blueprint("entries", __name__)


@pages.get("/")
def read() -> str:
    return _page(forms.Write.here())


@pages.post("/")
def write() -> Response | tuple[str, int]:
    form = forms.Write.here()
    if form.valid():
        paced("write")
    author = visitor()
    if author is None or author.confirmed_at is None:
        abort(403)
    if not form.valid():
        return _page(form), 422
    database().add(Entry(account=author, text=form.text.data or "", written_at=guestbook().now()))
    flash("Your entry is in the guestbook.")
    return redirect(url_for("entries.read"), 303)


def _page(form: forms.Write) -> str:
    number = max(1, request.args.get("page", 1, type=int))
    total = database().scalar(select(func.count()).select_from(Entry)) or 0
    last = max(1, -(-total // A_PAGE))
    if number > last:
        abort(404)
    chosen = select(Entry).order_by(Entry.id.desc()).offset((number - 1) * A_PAGE).limit(A_PAGE)
    return render_template("entries.html", form=form, entries=database().scalars(chosen).all(), number=number, last=last)
