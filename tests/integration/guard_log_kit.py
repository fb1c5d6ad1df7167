"""Rows and writers for the loop guard's log, and what the readers say of it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy.exc import OperationalError

from app.clock import Clock, SystemClock
from app.guard.log_records import Trip, TripRecord
from app.guard.log_writer import GuardLog, Limits, Store
from app.store import loop_guard_log as log
from app.store.engine import Database
from app.store.loop_guard_log import Environment, LoopGuardTripEvent, Loss, ScanKey, bounded_model_name, epoch_day
from app.store.loop_guard_reading import EVERYTHING, Filters, LoopGuardReading, read_log

T = TypeVar("T")

NOW = 1_789_732_800
"""A moment of day 20714, which began at 1789689600."""
DAY = log.SECS_PER_DAY
RUN = "run-of-the-tests"
SOME = Environment(strikes=2, observation=15, stagnation=5)

EVENT = LoopGuardTripEvent(
    recorded_at=NOW,
    path="proxy",
    model_name="qwen3:14b",
    app_version=log.APP_VERSION,
    mode="note",
    detector="loop",
    action="note",
    env_id=SOME.env_id,
    signature_hash="f219abe8cefbf0db",
    session_hash="dbe38cf4ae365a2b",
)


def trip(**facts: object) -> LoopGuardTripEvent:
    """One decision, as asked for."""
    return replace(EVENT, **facts)  # type: ignore[arg-type]


def scan_key(secs: int = NOW, model: str = EVENT.model_name, mode: str = "note", path: str = "proxy") -> ScanKey:
    return ScanKey(epoch_day(secs), path, bounded_model_name(model), log.APP_VERSION, mode, SOME.env_id)


def put(
    database: Database,
    *events: LoopGuardTripEvent,
    scans: dict[ScanKey, int] | None = None,
    losses: tuple[Loss, ...] = (),
) -> list[int]:
    """Writes as one flush does."""

    def work(session: log.Session) -> list[int]:
        log.add_environments(session, [SOME])
        ids = log.add_trips(session, events)
        log.add_scans(session, scans or {})
        log.add_losses(session, RUN, losses)
        return ids

    return database.write(work)


def read(database: Database, days: int = 30, now: int = NOW, filters: Filters = EVERYTHING) -> LoopGuardReading:
    return database.read(lambda session: read_log(session, now, days, filters))


def prune(database: Database, now: int = NOW, limit: int = log.TRIP_ROW_LIMIT) -> None:
    database.write(lambda session: log.prune(session, now, RUN, limit=limit))


class Refusing:
    """A database that refuses writes while told to, and counts the ones it took."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.refusals = 0
        self.error: Exception = OperationalError("INSERT", {}, Exception("disk I/O error"))
        self.asked = 0

    def write(self, work: Callable[[log.Session], T]) -> T:
        self.asked += 1
        if self.refusals:
            self.refusals -= 1
            raise self.error
        return self.database.write(work)


class FixedClock:
    """A wall time that stands still until it is set."""

    def __init__(self, secs: float = NOW) -> None:
        self.secs = secs
        self.passed = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.secs, tz=UTC)

    def monotonic(self) -> float:
        return self.passed


def guard_log(store: Store, database: Database, clock: Clock | None = None, **limits: float) -> GuardLog:
    """A writer that is not started: its flushes are the test's, or the last one's."""
    bounds = replace(Limits(period_s=600), **limits)  # type: ignore[arg-type]
    lock = database.path.with_suffix(".guard.lock")
    return GuardLog(store, clock or FixedClock(), key=b"k" * 32, lock=lock, environment=SOME, limits=bounds)


def decide(writer: GuardLog, scans: int = 1, trips: int = 0, **facts: Any) -> list[Trip]:
    """Scans requests and decides about the first ones."""
    scanned = [writer.scanned("proxy", "qwen3:14b", "note") for _ in range(scans)]
    given = {"detector": "loop", "action": "note", "signature": "write_file:1f2e3d4c5b6a7980", "session": "s1"} | facts
    return [writer.tripped(TripRecord(scanned[0], **given)) for _ in range(trips)]


def figures(database: Database) -> tuple[int, int, int, int]:
    """Scans and trips in the log, then those it says were lost."""
    reading = read(database, 90)
    rows = reading.totals
    seen = sum(row.scanned for row in rows), sum(row.trips + row.observed for row in rows)
    return *seen, reading.lost_scans, reading.lost_trips


def now_secs() -> int:
    """The real time."""
    return int(SystemClock().now().timestamp())


def figures_now(database: Database) -> tuple[int, int, int, int]:
    """`figures`, for rows of the real time."""
    reading = read(database, 90, now_secs())
    seen = sum(row.scanned for row in reading.totals), sum(row.trips for row in reading.totals)
    return *seen, reading.lost_scans, reading.lost_trips
