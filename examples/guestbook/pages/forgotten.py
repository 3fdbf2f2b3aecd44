"""A password that was forgotten: a link by mail, and another password."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, url_for
from werkzeug import Response

from .. import accounts, forms, passwords
from ..here import database, guestbook, noted, paced, see_out

pages = Blueprint("forgotten", __name__)


@pages.route("/resets", methods=["GET", "POST"])
def ask() -> str | Response | tuple[str, int]:
    form = forms.Forgotten.here()
    if not form.valid():
        return render_template("forgotten.html", form=form), 422 if form.errors else 200
    email = form.email.data or ""
    paced("forgotten", email)
    noted("forgotten password", email)
    accounts.forget(database(), guestbook().letters, email=email)
    return redirect(url_for("forgotten.sent"), 303)


@pages.get("/resets/sent")
def sent() -> str:
    return render_template("forgotten_sent.html")


@pages.route("/resets/<token>/edit", methods=["GET", "POST"])
def reset(token: str) -> str | Response | tuple[str, int]:
    form, book = forms.NewPassword.here(), guestbook()
    digest = None
    if form.valid():
        paced("reset")
        digest = passwords.digest(form.password.data or "")
    account = accounts.of_token(database(), book.links, "reset", token)
    if account is None:
        return render_template("link.html", what="reset"), 410
    if digest is None:
        return render_template("reset.html", form=form), 422 if form.errors else 200
    accounts.reset(database(), book.letters, account, digest=digest, now=book.now())
    see_out()
    flash("You have another password. Sign in with it.")
    return redirect(url_for("sign_in.sign_in"), 303)
