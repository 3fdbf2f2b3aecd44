"""What the server says of itself, and what of that its users should read."""

from __future__ import annotations

from collections.abc import Mapping

from rota.errors import StoreError
from rota.model import Vitals
from rota.stores.redis import moving, schema
from rota.stores.redis.client import Client

_CROWDED = 0.9
"""The share of the memory from which on it is told that it is taken."""


def vitals(client: Client) -> Vitals:
    time = client.send(b"TIME")
    assert isinstance(time, list)
    info = _info(client)
    jobs = client.send(b"ZCARD", client.key("all"))
    facts: dict[str, str | int | float] = {
        "store": "redis",
        "server": _server(info),
        "prefix": client.prefix,
        "jobs": int(jobs) if isinstance(jobs, int) else 0,
        "memory_bytes": int(info.get("used_memory", 0)),
        "most_memory_bytes": int(info.get("maxmemory", 0)),
        "layout": schema.VERSION,
    }
    seal = moving.sealed(client)
    warnings = ([] if seal is None else [seal.words]) + _warnings(client, info)
    return Vitals(int(time[0]) * 1_000_000 + int(time[1]), warnings, facts)


def _warnings(client: Client, info: Mapping[str, str]) -> list[str]:
    warnings = []
    policy, most = info.get("maxmemory_policy", "noeviction"), int(info.get("maxmemory", 0))
    if policy != "noeviction":
        warnings.append(
            f"maxmemory-policy is {policy}: when memory runs out the server throws jobs away without a word; "
            "set it to noeviction, so that they are refused instead"
        )
    if most and int(info.get("used_memory", 0)) >= most * _CROWDED:
        warnings.append(
            f"{_CROWDED:.0%} of the {most} bytes of memory that the server may use are taken, and beyond them jobs are "
            "refused: raise maxmemory, or delete old jobs"
        )
    if info.get("aof_enabled") == "0":
        if _saves(client):
            warnings.append(
                "there is no append-only file: a crash of the server loses the jobs since its last snapshot; set appendonly yes"
            )
        else:
            warnings.append(
                "the server keeps nothing on disk: a restart loses every job; set appendonly yes, unless replicas do for you"
            )
    if info.get("role") == "slave":
        warnings.append("this server is a replica and takes no writes: point the URL at the primary, or at its Sentinels")
    return warnings


def _saves(client: Client) -> bool:
    """Whether the server writes snapshots; so it is taken where it does not say."""
    try:
        found = client.send(b"CONFIG", b"GET", b"save")
    except StoreError:
        return True  # a hosted server keeps its settings to itself
    return not (isinstance(found, list) and len(found) == 2 and not found[1])


def _server(info: Mapping[str, str]) -> str:
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info.get('redis_version', '')}".strip()


def _info(client: Client) -> dict[str, str]:
    said = client.send(b"INFO")
    assert isinstance(said, bytes)
    lines = (line.partition(":") for line in said.decode("utf-8", "replace").splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
