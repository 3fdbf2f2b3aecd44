"""Makes one row of a table into a million, faster than enqueueing them would be."""

from __future__ import annotations

from collections.abc import Mapping

from bench.stores import Place

NUMBERS = {
    "postgres": "select generate_series(1, {n}) as n",
    "sqlite": "with recursive up (n) as (values (1) union all select n + 1 from up where n < {n}) select n from up",
}
IDS = {
    "postgres": "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid",
    "sqlite": "printf('00000000-0000-7000-8000-%012x', n)",
}
"""Ids that rise with the number, as those made one after the other do."""


def multiply(place: Place, store: str, table: str, n: int, changes: Mapping[str, str]) -> None:
    """Copy the one row of the table `n` times, with ids of their own and `changes` (SQL by column, over `n`)."""
    ours = {"id": IDS[store], **changes}
    columns = place.columns(table)
    values = ", ".join(ours.get(column, column) for column in columns)
    numbers = NUMBERS[store].format(n=n)
    source = f"(select * from {table} limit 1) as first, ({numbers}) as many"
    place.run(f"insert into {table} ({', '.join(columns)}) select {values} from {source}")
