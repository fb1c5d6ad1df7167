"""The loop guard's log: its names, its day arithmetic, and everything that is written to it.

Outlives the process, for one reader: a person who asks whether the guard still earns its keep. A trip is a decision,
not the proof that its note arrived. What a window shows is `app.store.loop_guard_reading`'s; when something is written,
and what is counted as lost, is `app.guard.log_writer`'s.

No message, tool name, argument or result is stored. Signatures and sessions are kept as cut HMACs under a key that lies
outside the database file.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Literal, cast

from sqlalchemy import Table, delete, exists, func, insert, or_, select, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.orm import Session

from app import __version__
from app.store.models.loop_guard import LoopGuardEnv, LoopGuardLoss, LoopGuardRun, LoopGuardScan, LoopGuardTrip

_ENV, _TRIPS, _SCANS, _LOSSES = (
    cast("Table", model.__table__) for model in (LoopGuardEnv, LoopGuardTrip, LoopGuardScan, LoopGuardLoss)
)

APP_VERSION = __version__
"""What every row is stamped with."""
LOOP_GUARD_LOG_DEFAULT_DAYS = 30
LOOP_GUARD_LOG_RETENTION_DAYS = 90
"""How many days the log keeps, and so the widest window a reader can ask for."""
MODEL_NAME_LIMIT = 256
"""Code points of a model's name that are kept."""
TRIP_ROW_LIMIT = 50_000
SECS_PER_DAY = 86_400

Path = Literal["agent", "proxy"]
Mode = Literal["note", "refuse"]
Detector = Literal["loop", "stagnation", "requery", "cycle"]
Action = Literal["note", "final", "abort", "refuse", "observed"]
NextTurn = Literal["changed", "same", "none"]
LossReason = Literal["queue_full", "stopped", "flush_failed", "unclean_exit", "row_limit"]


@dataclass(frozen=True, slots=True)
class Environment:
    """What decisions are made with; None is not known, never guessed. Numbers are the guard's thresholds."""

    app_version: str = APP_VERSION
    git_sha: str | None = None
    backend: str | None = None
    backend_build: str | None = None
    model_digest: str | None = None
    quant: str | None = None
    template_hash: str | None = None
    rules_version: str | None = None
    strikes: int | None = None
    observation: int | None = None
    stagnation: int | None = None

    @property
    def env_id(self) -> str:
        """16 hex digits that stand for exactly these facts."""
        facts = json.dumps(_columns(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ScanKey:
    """What scanned requests are counted under."""

    day: int
    path: str
    model_name: str
    app_version: str
    mode: str
    env_id: str


@dataclass(frozen=True, slots=True)
class LoopGuardTripEvent:
    """One decision the loop guard took about one request. `recorded_at` is in seconds since the epoch, keys are 16 hex
    digits; what is None is not known, or not kept for this detector."""

    recorded_at: int
    path: str
    model_name: str
    app_version: str
    mode: str
    detector: str
    action: str
    env_id: str
    signature_hash: str | None = None
    session_hash: str | None = None
    repeat_count: int | None = None
    threshold: int | None = None
    outcome: str | None = None
    next_turn: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """What was lost on one day for one reason."""

    day: int
    reason: LossReason
    trips: int
    scans: int


@dataclass(frozen=True, slots=True)
class LoopGuardTripDay:
    """One day of the log under one key: how many requests were scanned and how many of them the guard acted on (a trip
    whose scan was lost has none). `trips` = loops + stagnations + requeries; what was only observed is not counted.
    `sessions` is how many different ones had a trip."""

    day: str
    path: str
    model_name: str
    app_version: str
    mode: str
    env_id: str
    scanned: int
    trips: int
    loops: int
    stagnations: int
    requeries: int
    sessions: int


def epoch_day(secs: int) -> int:
    """The UTC day that `secs` falls on, counted from the epoch."""
    return secs // SECS_PER_DAY


def clamped_days(days: int) -> int:
    """`days` within what the log keeps: 1 to 90."""
    return min(max(days, 1), LOOP_GUARD_LOG_RETENTION_DAYS)


def first_day_of_window(now_secs: int, days: int) -> int:
    """The first day of a window of `days` days (clamped to 1..90) that ends with today."""
    return epoch_day(now_secs) - clamped_days(days) + 1


def bounded_model_name(name: str) -> str:
    """The name a row keeps: the client's, cut at `MODEL_NAME_LIMIT` code points; half surrogates become `?`."""
    return name[:MODEL_NAME_LIMIT].encode("utf-8", "replace").decode()


def short_hash(key: bytes, text: str) -> str:
    """The first 16 hex digits of the text's HMAC-SHA-256: a stable key to tell one loop from another."""
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")[:8].hex()


def add_environments(session: Session, environments: Iterable[Environment]) -> None:
    """Makes the rows that are not there yet."""
    rows = [{"env_id": environment.env_id, **_columns(environment)} for environment in environments]
    if rows:
        session.execute(upsert(_ENV).on_conflict_do_nothing(), rows)


def add_trips(session: Session, events: Sequence[LoopGuardTripEvent]) -> list[int]:
    """Stores decisions and gives their ids, in order. The ids are chosen here, in the one transaction that writes:
    having the database return them takes several times as long."""
    if not events:
        return []
    first = (session.scalar(select(func.max(LoopGuardTrip.id))) or 0) + 1
    ids = list(range(first, first + len(events)))
    session.execute(insert(_TRIPS), [{"id": row, **_columns(event)} for row, event in zip(ids, events, strict=True)])
    return ids


def update_trip(session: Session, trip_id: int, facts: Mapping[str, object]) -> None:
    """Fills in what became of a decision; one that the log no longer keeps is passed over."""
    session.execute(update(LoopGuardTrip).where(LoopGuardTrip.id == trip_id).values(dict(facts)))


def add_scans(session: Session, scans: Mapping[ScanKey, int]) -> None:
    """Adds to the counts per day and key."""
    if not scans:
        return
    statement = upsert(_SCANS)
    added = {"scanned": LoopGuardScan.scanned + statement.excluded.scanned}
    rows = [{**_columns(key), "scanned": count} for key, count in scans.items()]
    session.execute(statement.on_conflict_do_update(set_=added), rows)


def add_losses(session: Session, run_id: str, losses: Sequence[Loss]) -> None:
    """Adds to what a run lost."""
    if not losses:
        return
    statement = upsert(_LOSSES)
    more = statement.excluded
    added = {"trips": LoopGuardLoss.trips + more.trips, "scans": LoopGuardLoss.scans + more.scans}
    session.execute(
        statement.on_conflict_do_update(set_=added), [{**_columns(one), "run_id": run_id} for one in losses]
    )


def open_run(session: Session, run_id: str, now: datetime, *, alone: bool) -> int:
    """Begins a run. `alone` says that no other process writes: then every run still open died, and is marked so.

    Returns how many were found dead.
    """
    dead: list[LoopGuardRun] = []
    if alone:
        dead = list(session.scalars(select(LoopGuardRun).where(LoopGuardRun.clean_exit.is_(None))))
    for run in dead:
        run.clean_exit = False
        day = epoch_day(int((run.last_flush_at or run.started_at).timestamp()))
        session.merge(LoopGuardLoss(day=day, run_id=run.run_id, reason="unclean_exit", trips=None, scans=None))
    session.add(LoopGuardRun(run_id=run_id, started_at=now, last_flush_at=None, clean_exit=None))
    session.flush()
    return len(dead)


def touch_run(session: Session, run_id: str, now: datetime, *, ended: bool) -> None:
    """Notes a flush; `ended` says that it was the last and nothing is left behind."""
    values: dict[str, object] = {"last_flush_at": now}
    if ended:
        values["clean_exit"] = True
    session.execute(update(LoopGuardRun).where(LoopGuardRun.run_id == run_id).values(values))


def prune(session: Session, now_secs: int, run_id: str, *, limit: int = TRIP_ROW_LIMIT) -> None:
    """Deletes whole days: those past retention, then, above `limit` trip rows, the oldest, numerator and denominator
    together. Today stays whatever its size. What goes for the limit is counted as this run's loss on its day."""
    first = first_day_of_window(now_secs, LOOP_GUARD_LOG_RETENTION_DAYS)
    _delete_before(session, first)
    session.execute(delete(LoopGuardLoss).where(LoopGuardLoss.day < first))
    oldest = datetime.fromtimestamp(first * SECS_PER_DAY, tz=UTC)
    active = func.coalesce(LoopGuardRun.last_flush_at, LoopGuardRun.started_at)
    session.execute(delete(LoopGuardRun).where(active < oldest, LoopGuardRun.run_id != run_id))
    newest = select(LoopGuardTrip.recorded_at).order_by(LoopGuardTrip.recorded_at.desc())
    over = session.scalar(newest.offset(limit).limit(1))
    if over is None:
        return
    end = min(epoch_day(over), epoch_day(now_secs) - 1) + 1
    add_losses(session, run_id, _what_goes(session, end))
    _delete_before(session, end)


def _columns(values: Environment | ScanKey | LoopGuardTripEvent | Loss) -> dict[str, object]:
    """A flat dataclass as a row; `asdict` would copy every value deeply, at ten times the cost."""
    return {field.name: getattr(values, field.name) for field in fields(values)}


def _what_goes(session: Session, end: int) -> list[Loss]:
    """Trips and scans of each day before `end`."""
    day = LoopGuardTrip.recorded_at // SECS_PER_DAY
    trips = select(day, func.count()).where(LoopGuardTrip.recorded_at < end * SECS_PER_DAY).group_by(day)
    scanned = func.sum(LoopGuardScan.scanned)
    scans = select(LoopGuardScan.day, scanned).where(LoopGuardScan.day < end).group_by(LoopGuardScan.day)
    gone_trips, gone_scans = (dict(session.execute(query).all()) for query in (trips, scans))
    days = sorted(gone_trips.keys() | gone_scans.keys())
    return [Loss(one, "row_limit", gone_trips.get(one, 0), gone_scans.get(one, 0)) for one in days]


def _delete_before(session: Session, day: int) -> None:
    """Deletes the days before `day` from both tables, and the environments that nothing refers to any more."""
    old_trips = exists().where(LoopGuardTrip.recorded_at < day * SECS_PER_DAY)
    if not session.scalar(select(or_(old_trips, exists().where(LoopGuardScan.day < day)))):
        return
    session.execute(delete(LoopGuardTrip).where(LoopGuardTrip.recorded_at < day * SECS_PER_DAY))
    session.execute(delete(LoopGuardScan).where(LoopGuardScan.day < day))
    used = or_(
        exists().where(LoopGuardTrip.env_id == LoopGuardEnv.env_id),
        exists().where(LoopGuardScan.env_id == LoopGuardEnv.env_id),
    )
    session.execute(delete(LoopGuardEnv).where(~used))
