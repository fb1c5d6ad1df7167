"""A process that does nothing but decide and log, to be killed. Its counter lives in memory shared with the test."""

import threading
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from app.clock import SystemClock
from app.guard.log_records import TripRecord
from app.guard.log_writer import GuardLog, Limits
from app.store.engine import Database

PERIOD_S = 0.05
PAUSE_S = 0.002
BURST = 40
"""Every so often more trips at once than the queue holds: so there are losses to be found again."""


def decide_until_killed(url: str, decided: "Synchronized[int]") -> None:
    """Two decisions at a time: a scan and its trip. The counter goes up once the log has been told."""
    database = Database(url)
    limits = Limits(capacity=16, batch=8, period_s=PERIOD_S)
    lock = Path(database.path).with_suffix(".guard.lock")
    writer = GuardLog(database, SystemClock(), key=b"k" * 32, lock=lock, limits=limits)
    writer.start()
    pace = threading.Event()
    number = 0
    while True:
        for _ in range(BURST if number % 100 == 99 else 1):
            scan = writer.scanned("agent", "builtin", "note")
            writer.tripped(TripRecord(scan, "loop", "note", signature=str(number % 7), session="s"))
            decided.value += 2
        number += 1
        pace.wait(PAUSE_S)
