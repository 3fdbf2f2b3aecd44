"""`rota worker`: runs an app's jobs until it is stopped."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import click

from rota.cli.durations import duration
from rota.cli.early import release
from rota.cli.place import load, names_app
from rota.cli.sizes import size

if TYPE_CHECKING:
    from rota.supervisor.link import Link
    from rota.worker import Worker


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
@click.option("--name", help="What people call it; host and process id by default. Several are NAME-1, NAME-2 and so on.")
@click.option(
    "--processes",
    type=click.IntRange(min=1, max=512),
    help="So many processes, each with its own --concurrency, under one that replaces those that die; none is used by default.",
)
@click.option("--max-jobs", type=click.IntRange(min=1), metavar="N", help="Replace a process after about so many jobs.")
@click.option("--max-memory", type=size, metavar="SIZE", help="Replace a process that has more in memory, such as 512MB.")
@click.option(
    "--wedged-after",
    type=duration,
    metavar="DURATION",
    help="Kill and replace a process that gives no sign of life for so long; twice the lease by default.",
)
@click.option("--reload", is_flag=True, help="For development: start anew when a Python file of the app changes.")
@click.option(
    "--reload-dir",
    "reload_dirs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIRECTORY",
    help="With --reload, what to watch instead of the app's own package; may be given several times.",
)
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
    processes: int | None,
    max_jobs: int | None,
    max_memory: int | None,
    wedged_after: float | None,
    reload: bool,
    reload_dirs: tuple[str, ...],
    log_level: str,
    log_format: str,
) -> None:
    """Run the jobs of an app in this process, until SIGTERM or Ctrl+C.

    The first signal stops claiming and waits for what runs, the second hands it back at once; a job that is handed back
    does not lose an attempt. Log lines go to the standard error stream.

    With --processes, --max-jobs, --max-memory, --wedged-after or --reload this process runs no jobs, but starts others that
    do and looks after them. SIGHUP then replaces them one by one, so that they run new code.

    \b
    Examples:
      rota worker --app shop.tasks:app
      rota worker --app shop.tasks:app --queues mail,reports --concurrency 4
      rota worker --app src/shop/tasks.py --log-format json
      rota worker --app shop.tasks:app --processes 4 --max-jobs 10000 --max-memory 512MB
      rota worker --app shop.tasks:app --reload
    """
    from rota.cli.logs import writing_logs

    link = _link()
    watches = any(given is not None for given in (processes, max_jobs, max_memory, wedged_after)) or reload
    if link is not None or not watches:
        release()  # a supervisor does it as soon as it can heed what comes
    with writing_logs(log_level, log_format, None if link is None else link.called) as log:
        if link is None and watches:
            from rota.cli.supervising import supervise

            ctx.exit(
                supervise(
                    ctx,
                    processes=processes,
                    name=name,
                    lease=lease,
                    shutdown_timeout=shutdown_timeout,
                    wedged_after=wedged_after,
                    max_jobs=max_jobs,
                    max_memory=max_memory,
                    reload=reload,
                    reload_dirs=reload_dirs,
                )
            )
        from rota.worker import Worker

        app = load(ctx)
        log.disabled = False  # as `logging.config` leaves loggers that were there before, if the app's code sets up its own
        if app.url.startswith("memory:"):
            log.warning("memory:// is this process's own: only jobs that are enqueued in it are ever seen here")
        made = Worker(
            app,
            queues=None if queues is None else [each.strip() for each in queues.split(",") if each.strip()],
            concurrency=concurrency,
            lease=lease,
            poll=poll,
            shutdown_timeout=shutdown_timeout,
            name=name if link is None else link.name,
        )
        status = _run(made, link)
    ctx.exit(status)


def _link() -> Link | None:
    """The link to the supervisor that started this process, if one did; made first, so that a stop is heard from here on."""
    if "ROTA_SUPERVISED" not in os.environ:
        return None
    from rota.supervisor.link import Link

    return Link.inherited()


def _run(worker: Worker, link: Link | None) -> int:
    """Work until stopped, watched over by a supervisor or by systemd, where there is one."""
    from rota.worker.ending import see_to_the_end

    if link is not None:
        worker.signs = link
        link.lead(worker, worker.bury)
    elif "NOTIFY_SOCKET" in os.environ:
        from rota.supervisor.systemd import Announcer, Notifier

        worker.signs = Announcer(Notifier())
    known = threading.enumerate()
    status = worker.run()
    see_to_the_end(status, known)
    return status
