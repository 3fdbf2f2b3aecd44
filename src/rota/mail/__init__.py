"""Mail that is sent now, or later by a worker.

>>> from rota import Rota
>>> from rota.mail import Mailer, compose
>>> app = Rota("memory://")
>>> mailer = Mailer(app, url="file:outbox", sender="The shop <shop@example.org>")
>>> job = mailer.deliver_later(compose(to="ada@example.org", subject="Welcome", text="Good to have you."))
>>> str(app.run_one())
'ran deliver'
>>> job.result().accepted
('ada@example.org',)
>>> app.close()
"""

from rota.mail.composing import compose
from rota.mail.errors import DeliveryFailed, DeliveryPutOff, MailError, MessageRefused, NotDelivered
from rota.mail.folder import read_folder
from rota.mail.letter import Delivery, Letter
from rota.mail.mailer import Mailer

__all__ = [
    "Delivery",
    "DeliveryFailed",
    "DeliveryPutOff",
    "Letter",
    "MailError",
    "Mailer",
    "MessageRefused",
    "NotDelivered",
    "compose",
    "read_folder",
]
