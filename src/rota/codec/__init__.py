"""Arguments, results and failures as text that every store can hold, and back.

Payloads are JSON and nothing but data. What goes in comes back equal and of the same type, or is refused when it is enqueued:
annotations carry what JSON cannot (dates, UUIDs, enums, dataclasses, …). Accepted and not exact:

* a tuple comes back as a list where the annotation does not say `tuple`;
* an `int` given for a `float` comes back as a `float`, a `bytearray` given for `bytes` as `bytes`;
* an aware `datetime` comes back as the same moment with a fixed offset; the name of its zone is lost.
"""

from rota.codec.failures import failure_of
from rota.codec.signature import Signature
from rota.codec.text import clean, show
from rota.codec.untyped import encode_untyped

__all__ = ["Signature", "clean", "encode_untyped", "failure_of", "show"]
