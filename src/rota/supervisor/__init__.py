"""Many worker processes under one that looks after them. It runs none of the app's code and knows no store."""

from __future__ import annotations

from rota.supervisor.plan import Plan
from rota.supervisor.supervisor import Supervisor

__all__ = ["Plan", "Supervisor"]
