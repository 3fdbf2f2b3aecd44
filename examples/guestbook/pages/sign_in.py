"""Signing in and out, and unlocking an account."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from werkzeug import Response

from .. import accounts, forms
from ..here import database, guestbook, noted, paced, see_out, welcome

pages = Blueprint("sign_in", __name__)


@pages.route("/sign-in", methods=["GET", "POST"])
def sign_in() -> str | Response | tuple[str, int]:
    form, book = forms.SignIn.here(), guestbook()
    if not form.valid():
        return render_template("sign_in.html", form=form), 422 if form.errors else 200
    email = form.email.data or ""
    paced("sign in")
    with book.database.reading() as reading:
        checked = accounts.check(reading, email, form.password.data or "")
    account = accounts.sign_in(database(), book.letters, email=email, checked=checked, now=book.now())
    if account is None:
        noted("wrong password", email)
        form.refuse(accounts.REFUSAL)
        return render_template("sign_in.html", form=form), 422
    welcome(account)
    flash(f"Welcome, {account.name}.")
    return redirect(url_for("entries.read"), 303)


@pages.post("/sign-out")
def sign_out() -> Response:
    if not forms.Button.here().valid():
        abort(400)
    see_out()
    flash("You are signed out.")
    return redirect(url_for("entries.read"), 303)


@pages.route("/unlock/<token>", methods=["GET", "POST"])
def unlock(token: str) -> str | Response | tuple[str, int]:
    """Unlock the account at the press of a button: programs that look at mail follow links, and press none."""
    form = forms.Button.here()
    account = accounts.of_token(database(), guestbook().links, "unlock", token)
    if account is None:
        return render_template("link.html", what="unlock"), 410
    if not form.valid():
        return render_template("unlock.html", form=form), 422 if form.errors else 200
    accounts.unlock(account)
    flash("Your account is unlocked. Sign in, or choose another password.")
    return redirect(url_for("sign_in.sign_in"), 303)
