"""The worker: claims jobs, runs them, and writes what became of them.

- `worker`: starts and stops the rest.
- `ledger`: the thread that writes outcomes and claims jobs in one round trip.
- `within`: jobs that their bodies finished within transactions of their own.
- `recorder`: outcomes, as the store is given them and as people are told.
- `restraint`: how far ahead jobs under limits are claimed.
- `tally`: the places of limits that the worker counts itself.
- `lookout`: when the ledger looks for work, and under which queues.
- `pulse`: the thread that keeps the lease, reaps and prunes.
- `threads`, `coroutines`: what runs bodies (the runners).
- `loop`, `culprit`: one event loop in a thread of its own, and who blocks it.
- `crew`: the jobs in hand: who has a slot, who waits, what ended.
- `hooks`: the thread that tells hooks of ends.
- `overtime`: bodies whose time is up.
- `identity`: the worker's row in the store.
- `backoff`, `doubt`: the waits while the store is away, and what a lost reply leaves open.
- `thrift`: memory that goes back to the system once the worker is idle.
- `signs`: signs of life, for whoever watches over the process.
- `stopping`, `ending`: the stop of the worker, step by step, and the end of the process.
"""

from rota.worker.worker import Worker

__all__ = ["Worker"]
