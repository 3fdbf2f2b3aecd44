"""Postgres's errors in Rota's words."""

from __future__ import annotations

import psycopg

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable

READ_ONLY = "25006"
"""What a server that became a standby says to a write."""


def meaning(error: psycopg.Error, place: str) -> StoreError:
    """What a driver's error means to whoever runs jobs, in one line."""
    said = " ".join(str(error).split())
    state = error.sqlstate or ""
    if not state and (found := _of_connecting(said, place)):
        return found
    match state[:2]:
        case "40":
            return StoreUnavailable(f"Postgres at {place} ended the transaction to resolve a conflict with others: {said}")
        case "53":
            return StoreUnavailable(f"Postgres at {place} is out of room ({said}): free disk, memory or connections")
        case "25" if state == READ_ONLY:
            return StoreUnavailable(
                f"Postgres at {place} takes no writes ({said}): point the URL at the primary, or name all hosts in it"
            )
        case "25" if state in {"25P03", "25P04"}:
            return StoreUnavailable(
                f"Postgres at {place} ended a transaction that was open for too long ({said}): this process was held up, or a "
                "limit's key function takes long"
            )
        case "08" | "57" | "55" | "58":
            return StoreUnavailable(f"Postgres at {place} cannot serve now ({said}): wait, or look at its log")
        case "28":
            return StoreUnavailable(f"Postgres at {place} refuses this user ({said}): check user and password in the URL")
        case "3D":
            return StoreUnavailable(f"Postgres at {place} has no such database ({said}): create it, or correct the URL")
        case _ if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return SchemaMismatch(f"the tables in Postgres at {place} are not those of this Rota ({said}): run `rota migrate`")
        case "26" | "42" if state in {"26000", "42P05"}:
            return StoreError(
                f"Postgres at {place} lost or mixed up prepared statements ({said}), for a pooler lends the connection to "
                "others between transactions: say pooler=True, or ?pooler=true in the URL"
            )
        case "42" if state == "42501":
            return StoreError(f"this user lacks a right in Postgres at {place} ({said}): have it granted")
        case "" if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreUnavailable(
                f"Postgres at {place} cannot be reached ({said}): see that it runs and that the URL is right"
            )
        case _:
            return StoreError(f"Postgres at {place} refused a query: {said}")


def _of_connecting(said: str, place: str) -> StoreError | None:
    """An error met while connecting has no code, so it is known by its words; others are taken for a server that is away."""
    if "unsupported startup parameter" in said:
        return StoreError(
            f"the pooler at {place} refuses a parameter of the connection ({said}): leave it out of the URL, or name it in the "
            "pooler's ignore_startup_parameters"
        )
    if any(words in said for words in ("too many clients", "connection slots are reserved", "no more connections allowed")):
        return StoreUnavailable(
            f"Postgres at {place} has no room for another connection ({said}): raise max_connections, run fewer processes, or "
            "put a pooler in front"
        )
    if "session is read-only" in said or "server is in hot standby mode" in said:
        return StoreUnavailable(
            f"no server of {place} takes writes now ({said}): wait until one is promoted, or correct the hosts in the URL"
        )
    return None
