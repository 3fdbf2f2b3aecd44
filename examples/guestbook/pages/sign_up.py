"""Signing up, and confirming the address."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from flask import session as cookie
from werkzeug import Response

from .. import accounts, forms, passwords
from ..here import database, guestbook, paced, visitor, welcome

pages = Blueprint("sign_up", __name__)


@pages.route("/sign-up", methods=["GET", "POST"])
def sign_up() -> str | Response | tuple[str, int]:
    form = forms.SignUp.here()
    if not form.valid():
        return render_template("sign_up.html", form=form), 422 if form.errors else 200
    name, email, password = form.name.data or "", form.email.data or "", form.password.data or ""
    paced("sign up", email)
    digest = passwords.digest(password)  # which takes a while, and so comes before the transaction begins
    accounts.sign_up(database(), guestbook().letters, name=name, email=email, digest=digest)
    return redirect(url_for("sign_up.sent"), 303)


@pages.get("/sign-up/sent")
def sent() -> str:
    return render_template("sign_up_sent.html")


@pages.route("/confirm/<token>", methods=["GET", "POST"])
def confirm(token: str) -> str | Response | tuple[str, int]:
    """Ask for the password, and confirm the address.

    Whoever reads the letter need not be who signed up: somebody may have given another's address, and a password of their own.
    """
    form, book = forms.Confirm.here(), guestbook()
    checked = None
    if form.valid():
        paced("confirm")
        with book.database.reading() as reading:
            account = accounts.of_token(reading, book.links, "confirm", token)
            checked = accounts.check(reading, account.address if account else "", form.password.data or "")
    account = accounts.of_token(database(), book.links, "confirm", token)
    if account is None:
        return render_template("link.html", what="confirm"), 410
    if checked is None:
        return render_template("confirm.html", form=form, email=account.email), 422 if form.errors else 200
    signed_in = accounts.sign_in(database(), book.letters, email=account.address, checked=checked, now=book.now())
    if signed_in is None:
        form.refuse(accounts.REFUSAL)
        return render_template("confirm.html", form=form, email=account.email), 422
    accounts.confirm(signed_in, book.now())
    welcome(signed_in)
    flash("Your address is confirmed. Welcome!")
    return redirect(url_for("entries.read"), 303)


@pages.post("/confirm")
def again() -> Response:
    """Send the link to confirm once more."""
    if not forms.Button.here().valid():
        abort(400)
    paced("confirm again", f"account {cookie.get('account')}")
    account = visitor()
    if account is None:
        abort(403)
    if account.confirmed_at is None:
        guestbook().letters.confirm(database(), account)
    flash("The letter is on its way.")
    return redirect(url_for("entries.read"), 303)
