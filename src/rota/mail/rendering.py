"""The body of a message as it goes over the wire: lines that are short, of ASCII alone, and ended alike."""

from __future__ import annotations

import re
from base64 import encodebytes
from binascii import b2a_qp
from copy import copy as shallow
from email import policy
from email.generator import BytesGenerator
from email.message import EmailMessage, Message
from io import BytesIO
from typing import TypeVar

from rota.mail.errors import MessageRefused
from rota.mail.words import LONGEST

_WIRE = policy.SMTP.clone(cte_type="7bit", linesep="\n")
_LINE_END = re.compile("\r\n|\r|\n")
M = TypeVar("M", bound=Message)
_PLAIN = ("", "7bit", "8bit", "binary")


def body_of(message: EmailMessage) -> tuple[list[str], str]:
    r"""The lines of its MIME headers, and its body, lines ended by `\n`. Raises `MessageRefused` where there is no body.

    The message stays as it is. Parts that mail cannot carry as they are, with long lines or bytes beyond ASCII, are encoded.
    """
    if not any(_filled(part) for part in message.walk()):
        raise MessageRefused("it has no body: give it text, HTML or an attachment")
    copy = _copied(message)
    for name in {name.lower() for name, _ in copy.raw_items()}:
        if not name.startswith("content-") and name != "mime-version":
            del copy[name]
    if "mime-version" not in copy:
        copy["MIME-Version"] = "1.0"
    _mend(copy)
    written = BytesIO()
    try:
        BytesGenerator(written, mangle_from_=False, policy=_WIRE).flatten(copy)
        text = written.getvalue().decode()
    except Exception as error:  # parts made by hand may be anything
        raise MessageRefused(f"it cannot be written out: {type(error).__name__}: {error}") from error
    head, _, body = _LINE_END.sub("\n", text).partition("\n\n")
    return head.split("\n"), body if body.endswith("\n") else f"{body}\n"


def _filled(part: Message) -> bool:
    content = part.get_payload()
    if part.is_multipart() or not content:
        return False
    return part.get_content_disposition() == "attachment" or bool(str(content).strip())


def _copied(part: M) -> M:
    """The message and its parts anew, with the same headers: to copy what those were parsed into takes longer than all else."""
    made = shallow(part)
    fields = vars(made)
    fields["_headers"] = list(fields["_headers"])
    if isinstance(fields["_payload"], list):
        fields["_payload"] = [_copied(each) for each in fields["_payload"]]
    return made


def _mend(part: Message, signed: bool = False) -> None:
    """Encode what cannot be carried as it is, in the part and those within. Raises `MessageRefused` where it is signed."""
    if part.is_multipart():
        for each in vars(part)["_payload"]:
            _mend(each, signed or part.get_content_type() == "multipart/signed")
        return
    content = vars(part)["_payload"]  # get_payload would put question marks in the place of bytes
    if not isinstance(content, str) or _carried(content):
        return
    if signed:
        raise MessageRefused(
            f"what is signed has bytes beyond ASCII, or a line of more than {LONGEST} of them, and no signature would be "
            "right once that is encoded: encode it before you sign it, with cte='quoted-printable' or 'base64'"
        )
    _encode(part, content)


def _encode(part: Message, content: str) -> None:
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    is_text = part.get_content_maintype() == "text"
    if encoding in _PLAIN:
        # Bytes that were given as such are there as surrogates.
        raw = (_LINE_END.sub("\n", content) if is_text else content).encode("utf-8", "surrogateescape")
        if is_text and not content.isascii() and part.get_content_charset() is None:
            part.set_param("charset", "utf-8")
    else:
        decoded = part.get_payload(decode=True)
        raw = decoded if isinstance(decoded, bytes) else b""
    # Text in base64 may be of a charset whose line ends are none as bytes.
    readable = is_text and encoding != "base64"
    del part["Content-Transfer-Encoding"]
    part["Content-Transfer-Encoding"] = "quoted-printable" if readable else "base64"
    part.set_payload(b2a_qp(raw, istext=True).decode() if readable else encodebytes(raw).decode())


def _carried(content: str) -> bool:
    return content.isascii() and "\0" not in content and all(len(line) <= LONGEST for line in _LINE_END.split(content))
