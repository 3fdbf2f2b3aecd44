"""The tables. Moments are whole seconds since the epoch, which every database keeps alike."""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "accounts"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(320))
    """As its owner wrote it."""
    address: Mapped[str] = mapped_column(String(320), unique=True)
    """The same in lower case, by which the account is found."""
    name: Mapped[str] = mapped_column(String(40))
    password: Mapped[str] = mapped_column(String(200))
    """The digest, never the password."""
    confirmed_at: Mapped[int | None] = mapped_column(BigInteger)
    wrong_passwords: Mapped[int] = mapped_column(default=0)
    """In a row, since the last right one."""
    locked_at: Mapped[int | None] = mapped_column(BigInteger)
    signed_out: Mapped[int] = mapped_column(default=0)
    """How many times. Cookies from before are worth nothing, wherever a copy of one may be."""


class Entry(Base):
    __tablename__ = "entries"

    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), index=True)
    text: Mapped[str] = mapped_column(Text)
    written_at: Mapped[int] = mapped_column(BigInteger)
    account: Mapped[Account] = relationship(lazy="joined", innerjoin=True)


class FormUse(Base):
    """How often somebody sent a form within a stretch of time."""

    __tablename__ = "form_uses"

    form: Mapped[str] = mapped_column(String(40), primary_key=True)
    who: Mapped[str] = mapped_column(String(64), primary_key=True)
    since: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    uses: Mapped[int]
