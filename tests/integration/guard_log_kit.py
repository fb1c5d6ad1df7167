"""Rows for the loop guard's log, and what the readers say of it."""

from dataclasses import replace

from app.store import loop_guard_log as log
from app.store.engine import Database
from app.store.loop_guard_log import Environment, LoopGuardTripEvent, Loss, ScanKey, bounded_model_name, epoch_day
from app.store.loop_guard_reading import EVERYTHING, Filters, LoopGuardReading, read_log

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
