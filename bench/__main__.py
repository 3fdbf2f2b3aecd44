"""`python -m bench`: measure and print the tables.

A whole run is kept in `bench/RESULTS.md` and in the README between its markers; the samples of every run are in `.bench/`.
"""

from __future__ import annotations

import argparse
import fcntl
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import report
from bench.contenders import CONTENDERS, Contender
from bench.environments import WORK, Unavailable, programs, version
from bench.figures import Results
from bench.measures import MEASURES, NAMES
from bench.session import Session, say
from bench.stores import Stores
from bench.workers import Broken


def main() -> None:
    options = parse()
    # A stop ends workers and server too, as an interrupt does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with alone():
        compare(options)


@contextmanager
def alone() -> Iterator[None]:
    """Refuse to run beside another run: both would measure each other."""
    WORK.mkdir(exist_ok=True)
    with (WORK / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another run of the bench is at work here: wait for its end")
        yield


def compare(options: argparse.Namespace) -> None:
    contenders = available(chosen(options))
    stores = Stores()
    session = Session(stores, options.quick)
    try:
        measure(session, contenders, options)
        facts = facts_of(contenders, stores)
    finally:
        stores.close()
    results = Results(session.samples)
    page = report.write_up(results, facts, session.troubles)
    print(page)
    stamp = facts["when"].replace(" ", "-").replace(":", "")
    (WORK / f"samples-{stamp}.json").write_text(report.raw(results, facts, session.troubles))
    if whole(options):
        (Path(__file__).parent / "RESULTS.md").write_text(page)
        report.into_readme(results, facts)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=names_of(NAMES), default=NAMES, metavar="A,B", help="of " + ", ".join(NAMES))
    parser.add_argument("--store", choices=("postgres", "sqlite", "redis", "all"), default="all")
    everyone = tuple(dict.fromkeys(contender.name for contender in CONTENDERS))
    parser.add_argument("--who", type=names_of(everyone), default=everyone, metavar="A,B", help="of " + ", ".join(everyone))
    parser.add_argument("--rounds", type=int, help="3, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="fewer jobs and one round: a smoke test, not a result")
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md and the README as they are")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def whole(options: argparse.Namespace) -> bool:
    """Whether this run's tables may replace those that are kept: a part of them may not."""
    complete = options.only == NAMES and options.store == "all" and len(chosen(options)) == len(CONTENDERS)
    return complete and not options.quick and not options.no_write


def names_of(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """An argument type: some of the known names, with commas between."""

    def some(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return names

    return some


def chosen(options: argparse.Namespace) -> list[Contender]:
    return [
        contender for contender in CONTENDERS if options.store in (contender.store, "all") and contender.name in options.who
    ]


def available(contenders: list[Contender]) -> list[Contender]:
    """Those whose environment can be made."""
    ready = []
    for contender in contenders:
        try:
            programs(contender)
        except Unavailable as why:
            say(f"! {why}")
        else:
            ready.append(contender)
    return ready


def measure(session: Session, contenders: list[Contender], options: argparse.Namespace) -> None:
    """Each measure in turn, in rounds; within a round the contenders take turns, in opposite order every other round."""
    for store in dict.fromkeys(contender.store for contender in contenders):
        for step in MEASURES:
            if step.name not in options.only:
                continue
            for number in range(min(options.rounds, step.rounds or options.rounds)):
                turns = [c for c in contenders if c.store == store and number < c.rounds and step.who(c)]
                for contender in turns if number % 2 == 0 else reversed(turns):
                    try:
                        step.act(session, contender)
                    except Broken as why:
                        session.trouble(contender, step.name, why)


def facts_of(contenders: list[Contender], stores: Stores) -> dict[str, str]:
    facts = report.machine_facts()
    if any(contender.store == "postgres" for contender in contenders):
        facts["Postgres"] = f"{stores.server_version()}, fsync and synchronous_commit on"
    if any(contender.store == "redis" for contender in contenders):
        facts["Redis"] = f"{stores.redis_version()}, appendonly yes, appendfsync everysec, no snapshots, over TCP"
    facts["SQLite"] = sqlite3.sqlite_version
    for contender in contenders:
        known = version(contender.package, programs(contender))
        facts[f"{contender.name} on {report.TITLES[contender.store]}"] = f"{known}, {contender.settings}"
    return facts


if __name__ == "__main__":
    main()
