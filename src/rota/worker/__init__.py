"""The worker: claims jobs, runs them, and writes what became of them.

- `worker`: starts and stops the rest.
- `ledger`: the thread that writes outcomes and claims jobs in one round trip.
- `lookout`: when the ledger looks for work, and under which queues.
- `pulse`: the thread that keeps the lease, reaps and prunes.
- `listening`: the thread that hears the store ring.
- `threads`, `coroutines`: what runs bodies (the runners).
- `crew`: the jobs in hand: who has a slot, who waits, what ended.
- `bell`: what the ledger sleeps on, and anything may ring.
- `identity`: the worker's row in the store.
- `backoff`: the waits while the store is away.
- `ending`: the end of the process.
"""

from rota.worker.worker import Worker

__all__ = ["Worker"]
