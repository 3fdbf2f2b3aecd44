"""Rota beside its peers: the same work on the same machine in one run, alternating, with medians and ratios.

`python -m bench --help` says what can be asked for. How a run is made:

* Each contender (Rota too) is an adapter script in `bench/adapters`, run by an interpreter of its own with the peer installed.
* Each run gets a fresh database on one Postgres server, a fresh SQLite file, or a Valkey server of its own; servers have the
  same settings for all.
* Workers are the contenders' real worker commands. Bodies count themselves in shared memory (`adapters/tally.py`).
* Throughput is from the first body's start to the last recorded finish. Once nearly all bodies have run, the bench asks the
  store itself, with one small query of each contender's, whether anything is unfinished, until it says no.
"""
