"""A worker that sends mail, to be killed: it is told its store and its mail server."""

import sys

from rota import Rota
from rota.mail import Mailer
from rota.worker import Worker

app = Rota(sys.argv[1])
mailer = Mailer(app, sys.argv[2])
Worker(app, concurrency=2, lease=1.0).run()
