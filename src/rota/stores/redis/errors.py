"""Redis's errors in Rota's words: what happened, what was said, and what to do about it."""

from __future__ import annotations

import re

import redis
from msgspec import Struct

from rota.errors import StoreError, StoreUnavailable


class Known(Struct, frozen=True):
    """An error that is known by the words of the server or the driver."""

    words: re.Pattern[str]
    told: str
    """With `{place}` and `{said}`."""
    away: bool = True
    """Whether it may be over in a while, as of a store that is away."""


def _known(words: str, told: str, away: bool = True) -> Known:
    return Known(re.compile(words), told, away)


_KNOWN = (
    _known(
        r"\bOOM\b|used memory >",
        "Redis at {place} has no memory left ({said}): raise its maxmemory, or delete old jobs, as `rota purge` does",
    ),
    _known(
        r"\bREADONLY\b",
        "the Redis at {place} is a replica and takes no writes ({said}): point the URL at the primary, or at its Sentinels "
        "with redis+sentinel://",
    ),
    _known(
        r"No matching script|\bNOSCRIPT\b",
        "somebody had Redis at {place} forget its scripts just as one was to run ({said}): it changed nothing, try again",
    ),
    _known(r"\bLOADING\b|is loading the dataset", "Redis at {place} is still reading its data ({said}): wait"),
    _known(
        r"\bMISCONF\b",
        "Redis at {place} cannot write to its disk and so takes no changes ({said}): free disk, or look at its log",
    ),
    _known(r"\bMASTERDOWN\b", "the Redis at {place} is a replica that has lost its primary ({said}): wait, or see to that"),
    _known(
        r"\bNOREPLICAS\b",
        "Redis at {place} takes no writes while too few replicas follow it ({said}): see to these, or to min-replicas-to-write",
    ),
    _known(
        r"\b(MOVED|ASK|CROSSSLOT)\b",
        "the node of the cluster at {place} is not the one that has the jobs ({said}): point the URL at the one that it names; "
        "all keys of a prefix are on one",
        away=False,
    ),
    _known(
        r"\b(CLUSTERDOWN|TRYAGAIN)\b|[Cc]luster is down|Hash slot not served",
        "the cluster at {place} cannot serve the jobs now ({said}): wait, or see to its nodes",
    ),
    _known(
        r"\bNOPERM\b|has no permissions",
        "this user lacks a right in Redis at {place} ({said}): let it run all commands of @read, @write, @scripting, "
        "@transaction, @pubsub, @connection, TIME and INFO on the keys and channels that begin with the prefix",
        away=False,
    ),
    _known(
        r"\b(NOAUTH|WRONGPASS)\b|[Aa]uthentication required|invalid (username|password)|without any password configured",
        "Redis at {place} refuses this user ({said}): check user and password in the URL",
    ),
    _known(
        r"\bBUSY\b|busy running a script",
        "Redis at {place} is kept busy by a script of somebody's ({said}): wait, or end it with SCRIPT KILL",
    ),
    _known(
        r"\bUNKILLABLE\b|Script killed",
        "somebody ended a script in Redis at {place} ({said}): it changed nothing, and is tried again",
    ),
    _known(
        r"max number of clients",
        "Redis at {place} has no room for another connection ({said}): raise maxclients, or run fewer processes",
    ),
    _known(
        r"DB index is out of range|invalid DB index|SELECT is not allowed",
        "Redis at {place} has no such database ({said}): correct its number in the URL",
        away=False,
    ),
    _known(
        r"\bDENIED\b",
        "Redis at {place} lets in nobody from another machine ({said}): set a password for it, and the address to bind to",
    ),
    _known(
        r"(?i)\bSSL:|\[SSL|certificate verify|wrong version number|certificate is not valid",
        "the connection to Redis at {place} cannot be made as secure as it must be ({said}): see whether the server has TLS on "
        "this port, and to ssl_ca_certs in the URL",
    ),
    _known(
        r"No master found|no sentinel",
        "none of the Sentinels at {place} names a server that takes writes ({said}): see that they run, and watch the "
        "service in the URL",
    ),
    _known(
        r"Name or service not known|name resolution|nodename nor servname|No address associated",
        "the host of Redis at {place} is not known here ({said}): correct its name in the URL, or see whether this machine's "
        "name server answers",
    ),
    _known(
        r"\bOLD\b",
        "the server at {place} is older than Redis 6.2 ({said}): Rota works with that and newer ones, and with every Valkey",
        away=False,
    ),
    _known(
        r"WRONGTYPE|Error running script|@user_script|unpack|attempt to",
        "what is in Redis at {place} is not as Rota left it ({said}): see who else writes keys under this prefix",
        away=False,
    ),
)
"""The first of these that fits is what matters most."""


_SEALED = "SEALED "
"""What a script answers where the store is sealed, with the words of the seal."""


def meaning(error: Exception, place: str) -> StoreError:
    """What a driver's error means to whoever runs jobs, in one line."""
    said = " ".join(str(error).split()) or type(error).__name__
    if said.startswith(_SEALED):
        return StoreError(said.removeprefix(_SEALED))
    for each in _KNOWN:
        if each.words.search(f"{_code(error)}{said}"):
            return (StoreUnavailable if each.away else StoreError)(each.told.format(place=place, said=said))
    if isinstance(error, redis.TimeoutError):
        return StoreUnavailable(
            f"Redis at {place} does not answer ({said}): see that it runs, that it has TLS where the URL asks for that, that "
            "no firewall is between, and that nothing keeps it busy for so long"
        )
    if isinstance(error, redis.ConnectionError | OSError):
        return StoreUnavailable(f"Redis at {place} cannot be reached ({said}): see that it runs and that the URL is right")
    return StoreError(f"Redis at {place} refused a command: {said}")


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (redis.exceptions.OutOfMemoryError, "OOM"),
    (redis.exceptions.ReadOnlyError, "READONLY"),
    (redis.exceptions.BusyLoadingError, "LOADING"),
    (redis.exceptions.NoPermissionError, "NOPERM"),
    (redis.exceptions.AuthenticationError, "NOAUTH"),
    (redis.exceptions.MasterDownError, "MASTERDOWN"),
    (redis.exceptions.MovedError, "MOVED"),
    (redis.exceptions.AskError, "ASK"),
    (redis.exceptions.TryAgainError, "TRYAGAIN"),
    (redis.exceptions.ClusterDownError, "CLUSTERDOWN"),
    (redis.exceptions.ClusterCrossSlotError, "CROSSSLOT"),
)


def _code(error: Exception) -> str:
    """The server's own word for an error, which the driver takes off where it has a class for it."""
    return next((f"{code} " for kind, code in _CODES if isinstance(error, kind)), "")
