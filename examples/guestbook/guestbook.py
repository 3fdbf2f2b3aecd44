"""What a guestbook is made of, put together from its settings."""

from __future__ import annotations

from dataclasses import dataclass

from rota import Rota
from rota.mail import Mailer

from .database import Database
from .letters import Letters
from .links import Links
from .settings import Settings


@dataclass(frozen=True)
class Guestbook:
    settings: Settings
    database: Database
    jobs: Rota
    mailer: Mailer
    links: Links
    letters: Letters

    @staticmethod
    def of(settings: Settings) -> Guestbook:
        """The guestbook, with its tables and those of its jobs made where they are missing."""
        # The jobs are in the guestbook's own database. A letter that was sent is deleted at once, for it has a link in it.
        jobs = Rota(settings.database, keep_succeeded=0)
        jobs.migrate()
        database = Database(settings.database)
        database.prepare()
        mailer = Mailer(jobs, settings.mail, sender=settings.sender)
        links = Links(settings.secret, settings.clock)
        return Guestbook(settings, database, jobs, mailer, links, Letters(mailer, links, settings.url))

    def now(self) -> int:
        """Whole seconds since the epoch."""
        return int(self.settings.clock())

    def close(self) -> None:
        self.mailer.close()
        self.jobs.close()
        self.database.close()
