"""The results as markdown tables: one of the figures and one of the targets for each store."""

from __future__ import annotations

import json
import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import Results
from bench.targets import Verdict, judge

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- bench:start -->", "<!-- bench:end -->"
TITLES = {"postgres": "Postgres", "sqlite": "SQLite", "redis": "Redis"}

COLUMNS = (
    ("1 worker", "throughput 5000 x1", "{:,.0f}"),
    ("2 workers", "throughput 5000 x2", "{:,.0f}"),
    ("20,000: 1", "throughput 20000 x1", "{:,.0f}"),
    ("20,000: 2", "throughput 20000 x2", "{:,.0f}"),
    ("enqueue", "enqueue", "{:,.0f}"),
    ("32 async", "enqueue async", "{:,.0f}"),
    ("bulk", "bulk", "{:,.0f}"),
    ("latency p50", "latency call p50", "{:.2f}"),
    ("p95", "latency call p95", "{:.2f}"),
    ("(call)", "latency enqueue p50", "({:.2f})"),
    ("cold", "cold", "{:.2f}"),
    ("import", "import", "{:.3f}"),
    ("idle %", "idle cpu", "{:.2f}"),
    ("MB", "memory", "{:.0f}"),
    ("commands/s", "idle commands", "{:.2f}"),
    ("bytes a job", "bytes a job", "{:,.0f}"),
)

LEGEND = (
    "Jobs of an empty body drained a second by one and by two worker processes (5,000 and 20,000 queued beforehand); "
    "jobs enqueued a second one by one, by 32 coroutines at once and in bulk; milliseconds from the call of enqueue to the "
    "body's first line on an idle worker, with the call's own median in brackets; seconds from starting the worker command to "
    "the first body; seconds that the import adds; an idle worker's share of a core, its memory, and the commands it sends "
    "to Redis a second; bytes of Redis's memory that a queued job takes. "
    "Medians over the rounds, in which the contenders took turns. "
    "Those that are slow had fewer jobs to do and sat out some rounds: rates are compared, not totals."
)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figures_table(results: Results, store: str) -> str:
    """One row a contender; columns that nobody has are left out."""
    names = results.contenders(store)
    columns = [column for column in COLUMNS if any(results.get(store, column[1], name) is not None for name in names)]
    rows = []
    for name in names:
        values = [(results.get(store, figure, name), form) for _, figure, form in columns]
        rows.append([name, *("" if value is None else form.format(value) for value, form in values)])
    return table(["", *(title for title, _, _ in columns)], rows)


def more_figures(results: Results, store: str) -> str:
    """Rota's figures that no column shows."""
    shown = {figure for _, figure, _ in COLUMNS}
    rows = [
        [figure, short(results.get(store, figure, "rota") or 0)]
        for where, figure, name in results.samples
        if where == store and name == "rota" and figure not in shown and not figure.startswith("latency")
    ]
    return table(["more of Rota", ""], rows) if rows else ""


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def verdicts_table(verdicts: list[Verdict]) -> str:
    rows = []
    for verdict in verdicts:
        target = verdict.target
        bound = f"≥ {target.at_least:g}" if target.at_least is not None else f"≤ {target.at_most:g}"
        rows.append([target.says, bound, f"{verdict.value:.3g}", "met" if verdict.met else "**missed**"])
    return table(["target", "bound", "seen", ""], rows) if rows else ""


def write_up(results: Results, facts: dict[str, str], troubles: list[str]) -> str:
    """The whole page."""
    parts = ["# Rota and its peers", "\n".join(f"- {name}: {fact}" for name, fact in facts.items()), LEGEND]
    verdicts = judge(results)
    for store in sorted(results.stores()):
        parts += [f"## {TITLES[store]}", figures_table(results, store), more_figures(results, store)]
        parts.append(verdicts_table([verdict for verdict in verdicts if verdict.target.store == store]))
    if troubles:
        parts += ["## Not measured", "\n".join(f"- {trouble.splitlines()[0]}" for trouble in troubles)]
    return "\n\n".join(part for part in parts if part) + "\n"


def into_readme(results: Results, facts: dict[str, str]) -> None:
    """Replace what stands between the README's markers, if it has them."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    if START not in text or END not in text:
        return
    tables = [f"**{TITLES[store]}**\n\n{figures_table(results, store)}" for store in sorted(results.stores())]
    inside = "\n\n".join([*tables, LEGEND, f"Measured {facts['when']} on {facts['machine']}."])
    found = re.compile(re.escape(START) + ".*?" + re.escape(END), re.DOTALL)
    readme.write_text(found.sub(lambda _: f"{START}\n{inside}\n{END}", text))


def raw(results: Results, facts: dict[str, str], troubles: list[str]) -> str:
    """Every sample, as JSON."""
    samples = [
        {"store": store, "figure": figure, "contender": name, "samples": list(values)}
        for (store, figure, name), values in results.samples.items()
    ]
    return json.dumps({"facts": facts, "samples": samples, "troubles": troubles}, indent=1)


def machine_facts() -> dict[str, str]:
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{os.cpu_count()} cores, {gigabytes:.0f} GiB, Python {platform.python_version()}, {platform.system()}",
    }
