"""The forms, and what may be written into them. Each carries a token against forged requests, and is invalid without it."""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from typing import Any, Self

from email_validator import EmailNotValidError, validate_email
from flask import current_app, request
from flask import session as cookie
from wtforms import EmailField, Form, PasswordField, StringField, TextAreaField
from wtforms.csrf.session import SessionCSRF
from wtforms.validators import InputRequired, Length, ValidationError

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
LONGEST_ENTRY = 1000
BLANKS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing."""
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""What has text read in another direction than it is written. Names need none of it, in whatever script they are."""


class SafeForm(Form):
    """A form of a page, with what was sent, if anything was."""

    class Meta:
        csrf = True
        csrf_class = SessionCSRF
        csrf_time_limit = timedelta(hours=4)

        @property
        def csrf_secret(self) -> bytes:
            return str(current_app.secret_key).encode()

        @property
        def csrf_context(self) -> Any:
            return cookie

    @classmethod
    def here(cls) -> Self:
        return cls(request.form if request.method == "POST" else None)

    def valid(self) -> bool:
        """Whether it was sent, from a page of ours, with nothing wrong in it."""
        return request.method == "POST" and self.validate()

    def refuse(self, reason: str) -> None:
        """Say what is wrong with all of it."""
        self.form_errors.append(reason)


def stripped(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n").strip()  # browsers count a line's end as one character, and send two


def no_control_characters(_form: object, field: Any) -> None:
    if any(unicodedata.category(each) == "Cc" and each not in "\r\n\t" for each in field.data or ""):
        raise ValidationError("There is a character in it that cannot be shown.")


def something_to_see(_form: object, field: Any) -> None:
    if not any(_is_seen(each) for each in field.data or ""):
        raise ValidationError("There is nothing in it that can be seen.")


def _is_seen(character: str) -> bool:
    category = unicodedata.category(character)
    return category not in ("Cc", "Cf") and category[0] not in "ZM" and character not in BLANKS


def no_turned_text(_form: object, field: Any) -> None:
    if any(each in TURNING for each in field.data or ""):
        raise ValidationError("There is a character in it that turns text around.")


def of_one_line(_form: object, field: Any) -> None:
    if len((field.data or "").splitlines()) > 1:
        raise ValidationError("Write it on one line.")


def mail_address(_form: object, field: Any) -> None:
    try:
        field.data = validate_email(field.data or "", check_deliverability=False).normalized
    except EmailNotValidError as error:
        raise ValidationError(f"That is no mail address: {error}") from None


def not_the_address(form: Any, field: Any) -> None:
    if "email" in form and field.data and field.data.lower() == stripped(form.email.data).lower():
        raise ValidationError("Choose one that is not your address.")


ADDRESS = [InputRequired("Write your mail address."), Length(max=254, message="That is too long."), mail_address]
NEW_PASSWORD = [
    InputRequired("Choose a password."),
    Length(SHORTEST_PASSWORD, LONGEST_PASSWORD, message=f"It takes %(min)d to {LONGEST_PASSWORD} characters."),
    not_the_address,
]
NAME = [no_control_characters, of_one_line, no_turned_text, something_to_see]
PASSWORD = [InputRequired("Write your password."), Length(max=LONGEST_PASSWORD, message="That is too long.")]


class SignUp(SafeForm):
    name = StringField(
        "Name",
        [InputRequired("Write the name that others will see."), Length(max=40), *NAME],
        filters=[stripped],
        description="Others see it with what you write.",
        render_kw={"autocomplete": "name", "maxlength": 40},
    )
    email = EmailField("Mail address", ADDRESS, filters=[stripped], render_kw={"autocomplete": "email"})
    password = PasswordField(
        "Password",
        NEW_PASSWORD,
        description=f"At least {SHORTEST_PASSWORD} characters. Several words are easy to remember.",
        render_kw={"autocomplete": "new-password", "minlength": SHORTEST_PASSWORD},
    )


class SignIn(SafeForm):
    email = EmailField("Mail address", ADDRESS, filters=[stripped], render_kw={"autocomplete": "username"})
    password = PasswordField("Password", PASSWORD, render_kw={"autocomplete": "current-password"})


class Confirm(SafeForm):
    password = PasswordField("Password", PASSWORD, render_kw={"autocomplete": "current-password"})


class Forgotten(SafeForm):
    email = EmailField("Mail address", ADDRESS, filters=[stripped], render_kw={"autocomplete": "username"})


class NewPassword(SafeForm):
    password = PasswordField(
        "New password",
        NEW_PASSWORD,
        description=f"At least {SHORTEST_PASSWORD} characters. Several words are easy to remember.",
        render_kw={"autocomplete": "new-password", "minlength": SHORTEST_PASSWORD},
    )


class Write(SafeForm):
    text = TextAreaField(
        "Your entry",
        [InputRequired("Write something."), Length(max=LONGEST_ENTRY), no_control_characters, something_to_see],
        filters=[stripped],
        description=f"Up to {LONGEST_ENTRY} characters.",
        render_kw={"rows": 4, "maxlength": LONGEST_ENTRY},
    )


class Button(SafeForm):
    """Nothing but a button."""
