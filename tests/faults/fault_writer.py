"""Write to a table of one's own in the jobs' SQLite file, in transactions of so many seconds, one after the other."""

from __future__ import annotations

import os
import sqlite3
import sys
import time

if __name__ == "__main__":
    path = os.environ["FAULT_URL"].removeprefix("sqlite:///")
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("create table if not exists mine (number integer)")
    while True:
        connection.execute("begin immediate")
        connection.execute("insert into mine values (1)")
        time.sleep(float(sys.argv[1]))
        connection.execute("commit")
        time.sleep(0.2)
