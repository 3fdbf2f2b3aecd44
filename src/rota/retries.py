"""The retry policies for `@app.task(retry=…)`."""

from rota.rules.retry import ByError, Exponential, Fixed, Never, Polynomial, Waits, never

__all__ = ["ByError", "Exponential", "Fixed", "Never", "Polynomial", "Waits", "never"]
