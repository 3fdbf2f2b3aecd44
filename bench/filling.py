"""Makes one job into a million, faster than enqueueing them would be."""

from __future__ import annotations

from collections.abc import Mapping

from bench.stores import Tables
from bench.valkey import RedisPlace

NUMBERS = {
    "postgres": "select generate_series(1, {n}) as n",
    "sqlite": "with recursive up (n) as (values (1) union all select n + 1 from up where n < {n}) select n from up",
}
IDS = {
    "postgres": "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid",
    "sqlite": "printf('00000000-0000-7000-8000-%012x', n)",
}
"""Ids that rise with the number, as those made one after the other do."""


def multiply(place: Tables, store: str, table: str, n: int, changes: Mapping[str, str]) -> None:
    """Copy the one row of the table `n` times, with ids of their own and `changes` (SQL by column, over `n`)."""
    ours = {"id": IDS[store], **changes}
    columns = place.columns(table)
    values = ", ".join(ours.get(column, column) for column in columns)
    numbers = NUMBERS[store].format(n=n)
    source = f"(select * from {table} limit 1) as first, ({numbers}) as many"
    place.run(f"insert into {table} ({', '.join(columns)}) select {values} from {source}")


COPIES = """
local job, own = redis.call('get', KEYS[1]), string.sub(KEYS[1], 1, -#ARGV[1] - 1)
local jobs, scores, members = {}, {}, {}
for at = 2, #KEYS do scores[at], members[at] = tonumber(redis.call('zscore', KEYS[at], ARGV[1])), {} end
for n = 1, ARGV[3] do
    local id = string.format('00000000000070008000%012x', ARGV[2] + n)
    jobs[2 * n - 1], jobs[2 * n] = own .. id, job
    for at = 2, #KEYS do
        members[at][2 * n - 1] = scores[at] == 0 and 0 or scores[at] - 1000000 + ARGV[2] + n
        members[at][2 * n] = id
    end
end
redis.call('mset', unpack(jobs))
for at = 2, #KEYS do redis.call('zadd', KEYS[at], unpack(members[at])) end
"""
STEP = 2_000
"""About as many as Lua's stack has room for."""


def multiply_in_redis(place: RedisPlace, n: int) -> None:
    """Copy the one job there is `n` times: its own key, its places in sorted sets, where times differ, and what is counted."""
    client = place.client
    (own,) = client.keys("{rota}:job:*")
    id = own.rpartition(b":")[2]
    found_in = [key for key in client.scan_iter() if client.type(key) == b"zset" and client.zscore(key, id) is not None]
    for start in range(0, n, STEP):
        client.eval(COPIES, 1 + len(found_in), own, *found_in, id, start, min(STEP, n - start))
    for name, jobs in client.hgetall("{rota}:counts").items():
        client.hincrby("{rota}:counts", name, n * int(jobs))
