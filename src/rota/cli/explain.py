"""`rota jobs explain`: why a job is not running."""

from __future__ import annotations

import click

from rota.cli.filters import whole_id
from rota.cli.place import reach_existing, reaches_app
from rota.cli.records import explanation_record, write_json
from rota.cli.saying import say, styled
from rota.cli.tables import paragraph
from rota.cli.words import COLOURS
from rota.codec.text import clean


@click.command(short_help="Why a job is not running.")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def explain(ctx: click.Context, id: str, as_json: bool) -> None:
    """Say why a job is not running: when it is due, which limit holds it and who fills that, whether a worker would take it.

    ID is the job's id, or at least the last four characters of it. Name your app with --app where you can: which jobs fill a
    limit is known by the tasks' code.

    \b
    Examples:
      rota jobs explain 0198c0de-0000-7000-8000-000000000000
      rota jobs explain 9f3a61 --app shop.tasks:app --json
    """
    app = reach_existing(ctx)
    found = app.explain(whole_id(app, id))
    if as_json:
        write_json(explanation_record(found))
        return
    say(styled(found.task, bold=True), "  ", styled(found.status, fg=COLOURS[found.status], bold=True))
    for sentence in found.sentences:
        for line in paragraph(clean(sentence, 4_000), first="  "):
            say(line)
