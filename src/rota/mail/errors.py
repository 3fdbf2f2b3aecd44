"""What goes wrong with mail.

RotaError
└── MailError
    ├── MessageRefused      the message cannot be sent as it is: nothing was queued, and no server was asked
    └── NotDelivered        nobody got it
        ├── DeliveryFailed    the server refused it for good
        └── DeliveryPutOff    it may work later
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.mail.letter import Delivery


class MailError(RotaError):
    """The base of everything that goes wrong with mail."""


class MessageRefused(MailError, ValueError):
    """A message that cannot be sent as it is: a line break in a header, an address that does not parse, no recipient."""


class NotDelivered(MailError):
    """Nobody got the message. `delivery` has what the server said to each recipient, where it came to that."""

    def __init__(self, message: str, delivery: Delivery | None = None) -> None:
        super().__init__(message)
        self.delivery = delivery


class DeliveryFailed(NotDelivered):
    """The server refused the message for good, in its own words."""


class DeliveryPutOff(NotDelivered):
    """The message was not delivered now and may be later: the server said so, or could not be reached, or fell silent.

    - `busy`: it was a matter of load: the server had no time or closes down (421), or no connection was free.
    - `ambiguous`: the whole message had been sent and no answer came, so that it may have been delivered all the same.
    """

    def __init__(self, message: str, delivery: Delivery | None = None, *, busy: bool = False, ambiguous: bool = False) -> None:
        super().__init__(message, delivery)
        self.busy = busy
        self.ambiguous = ambiguous
