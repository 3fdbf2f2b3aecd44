"""`rota worker`: runs an app's jobs until it is stopped."""

from __future__ import annotations

import threading

import click

from rota.cli.durations import duration
from rota.cli.place import load, names_app


@click.command(short_help="Run jobs until stopped.")
@names_app
@click.option("--queues", metavar="A,B", help="The queues to serve, by commas; all that there are by default.")
@click.option("--concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="How many jobs run at once.")
@click.option(
    "--lease",
    type=duration,
    default="60s",
    show_default=True,
    help="How long its jobs stay its own after it was last heard of; it is heard of three times in that.",
)
@click.option("--poll", type=duration, default="5s", show_default=True, help="The longest time between looks for work.")
@click.option(
    "--shutdown-timeout",
    type=duration,
    default="30s",
    show_default=True,
    help="How long a stop waits for running jobs before they are handed back.",
)
@click.option("--name", help="What people call it; host and process id by default.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="The least grave lines to write.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"], case_sensitive=False),
    default="text",
    show_default=True,
    help="Lines for people, or one JSON object a line.",
)
@click.pass_context
def worker(
    ctx: click.Context,
    queues: str | None,
    concurrency: int,
    lease: float,
    poll: float,
    shutdown_timeout: float,
    name: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Run the jobs of an app in this process, until SIGTERM or Ctrl+C.

    The first signal stops claiming and waits for what runs, the second hands it back at once; a job that is handed back
    does not lose an attempt. Log lines go to the standard error stream.

    \b
    Examples:
      rota worker --app shop.tasks:app
      rota worker --app shop.tasks:app --queues mail,reports --concurrency 4
      rota worker --app src/shop/tasks.py --log-format json
    """
    from rota.cli.logs import writing_logs
    from rota.worker import Worker
    from rota.worker.ending import see_to_the_end

    names = None if queues is None else [name.strip() for name in queues.split(",") if name.strip()]
    with writing_logs(log_level, log_format) as log:
        app = load(ctx)
        if app.url.startswith("memory:"):
            log.warning("memory:// is this process's own: only jobs that are enqueued in it are ever seen here")
        made = Worker(
            app,
            queues=names,
            concurrency=concurrency,
            lease=lease,
            poll=poll,
            shutdown_timeout=shutdown_timeout,
            name=name,
        )
        known = threading.enumerate()
        status = made.run()
        see_to_the_end(status, known)
    ctx.exit(status)
