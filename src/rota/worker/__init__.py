"""The worker: claims jobs, runs them, and writes what became of them."""

from rota.worker.worker import Worker

__all__ = ["Worker"]
