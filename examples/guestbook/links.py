"""Signed links: what a letter carries, so that who follows it is known to have read the letter."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from itsdangerous import BadData, TimestampSigner, URLSafeTimedSerializer

from .models import Account

HOUR = 3600
DAY = 24 * HOUR
LIFETIMES = {"confirm": 3 * DAY, "reset": HOUR, "unlock": DAY}
"""For how many seconds a link of each purpose works."""


class Links:
    """Makes and reads tokens. One made for a purpose is of no use for another."""

    def __init__(self, secret: str, clock: Callable[[], float]) -> None:
        self._secret = secret

        class Signer(TimestampSigner):
            def get_timestamp(self) -> int:
                return int(clock())

        self._signer = Signer

    def token(self, purpose: str, account: Account) -> str:
        """A token that works while what it is bound to is what it is now."""
        return str(self._serializer(purpose).dumps([account.id, self.fingerprint(bound_to(account, purpose))]))

    def account(self, purpose: str, token: str) -> tuple[int, str] | None:
        """An account's id, and the fingerprint of what the token is bound to; `None` for one that is forged, misused or old."""
        try:
            account, bound = self._serializer(purpose).loads(token, max_age=LIFETIMES[purpose])
        except BadData:
            return None
        return int(account), str(bound)

    def fingerprint(self, text: str) -> str:
        """What shows that the text is the same, and nothing else of it."""
        return hmac.digest(self._secret.encode(), text.encode(), "sha256").hex()[:32]

    def _serializer(self, purpose: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret, salt=f"guestbook {purpose}", signer=self._signer)


def bound_to(account: Account, purpose: str) -> str:
    """What ends an account's links of this purpose when it changes: one to reset works once, and one to unlock for one lock."""
    return {"confirm": account.address, "reset": account.password, "unlock": str(account.locked_at)}[purpose]
