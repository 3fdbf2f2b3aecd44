"""Passwords, of which only an argon2 digest is kept."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

# What OWASP asks for at the least: some 20 ms and 19 MiB each time, which a small server bears when several sign in at once.
_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
NOBODYS = _hasher.hash("the password of no account")
"""A digest to compare with where there is no account, so that the answer takes as long as if there were."""


def digest(password: str) -> str:
    return _hasher.hash(password)


def is_right(password: str, kept: str) -> bool:
    try:
        return _hasher.verify(kept, password)
    except (VerificationError, InvalidHashError):
        return False
