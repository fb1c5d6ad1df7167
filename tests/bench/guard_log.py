"""What the loop guard's log costs: a request per scan and trip, the database per flush, a reader per window.

A request pays for the puts alone; the writer's thread runs beside them here too, on a real database, so that its part
of the interpreter's time is in the figures.
"""

import tempfile
import time
from pathlib import Path
from statistics import median

from app.clock import SystemClock
from app.guard.log_records import TripOutcome, TripRecord
from app.guard.log_writer import GuardLog, Limits
from app.store.engine import Database
from app.store.loop_guard_reading import read_log
from app.store.migrate import migrate

ROUNDS = 4000
SIGNATURE = "|".join(f"read_document:{number:016x}" for number in range(3))


def main() -> None:
    """Prints the figures; times are CPU where a shared machine would blur them."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'docent.db'}")
        migrate(database)
        lock = Path(folder) / "guard.lock"
        writer = GuardLog(database, SystemClock(), key=b"k" * 32, lock=lock, limits=Limits(capacity=50_000))
        writer.start()
        writer.flush()
        measure_puts(writer)
        writer.flush()
        measure_flush(writer)
        writer.stop()
        measure_reading(database)
        database.close()


def measure_puts(writer: GuardLog) -> None:
    """One request after another: a scan; a scan, its trip and what became of it."""
    scans: list[float] = []
    trips: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        scan = writer.scanned("proxy", "qwen3:14b", "note")
        scanned = time.perf_counter_ns()
        trip = writer.tripped(TripRecord(scan, "loop", "note", signature=SIGNATURE, session="0f" * 16))
        tripped = time.perf_counter_ns()
        scans.append((scanned - begun) / 1000)
        trips.append((tripped - begun) / 1000)
        writer.settled(trip, TripOutcome(outcome="delivered"))
    print(f"guard_log_scan_p50_us {median(scans):.2f} 20")
    print(f"guard_log_scan_p99_us {sorted(scans)[len(scans) * 99 // 100]:.2f} -")
    print(f"guard_log_scan_and_trip_p50_us {median(trips):.2f} 20")
    print(f"guard_log_scan_and_trip_p99_us {sorted(trips)[len(trips) * 99 // 100]:.2f} -", flush=True)


def measure_flush(writer: GuardLog) -> None:
    """A full batch in one transaction, between the other requests of a process."""
    took: list[float] = []
    for _ in range(20):
        for _ in range(255):
            scan = writer.scanned("proxy", "qwen3:14b", "note")
            writer.tripped(TripRecord(scan, "loop", "note", signature=SIGNATURE, session="0f" * 16))
        begun = time.process_time()
        writer.flush()
        took.append((time.process_time() - begun) * 1000)
    print(f"guard_log_flush_of_255_trips_cpu_ms {median(took):.1f} -", flush=True)


def measure_reading(database: Database) -> None:
    """The one query over what the rounds above left."""
    now = int(SystemClock().now().timestamp())
    begun = time.process_time()
    reading = database.read(lambda session: read_log(session, now, 90))
    print(f"guard_log_reading_rows {sum(total.trips for total in reading.totals)} -")
    print(f"guard_log_reading_cpu_ms {(time.process_time() - begun) * 1000:.1f} -")


if __name__ == "__main__":
    main()
