"""What a window of the loop guard's log shows: the one query behind the command, the JSON route and the panel.

Owns the figures and how they are put together; wording and shapes are `app.guard.listing`'s. Everything is read in one
transaction, so that a numerator never comes with another moment's denominator.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app.store.loop_guard_log import (
    LOOP_GUARD_LOG_DEFAULT_DAYS,
    SECS_PER_DAY,
    Environment,
    LoopGuardTripDay,
    clamped_days,
    first_day_of_window,
)
from app.store.models.loop_guard import LoopGuardEnv, LoopGuardLoss, LoopGuardRun, LoopGuardScan, LoopGuardTrip

LARGE_DENOMINATOR = 3000
"""Scanned requests of one path, mode and environment after which zero trips say something: fewer than one in a
thousand, with 95 % confidence (docs/decisions/0012)."""

TOP_SIGNATURES = 20


@dataclass(frozen=True, slots=True)
class Filters:
    """What a reading is kept to; None is everything. Of `env_id` the first digits are enough, as a table shows them."""

    path: str | None = None
    model_name: str | None = None
    mode: str | None = None
    env_id: str | None = None


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class LoopGuardTotal:
    """The window's figures of one path, mode and environment: counts that may be put together. Other modes and
    environments are other populations."""

    path: str
    mode: str
    env_id: str
    app_version: str
    scanned: int
    trips: int
    loops: int
    stagnations: int
    requeries: int
    observed: int
    sessions: int

    @property
    def rate(self) -> float | None:
        """Trips per scanned request; None where nothing was scanned."""
        return self.trips / self.scanned if self.scanned else None

    @property
    def upper_bound(self) -> float | None:
        """At zero trips, the rate that is ruled out with 95 % confidence (about 3/scanned); None otherwise."""
        return upper_bound_at_zero(self.scanned) if not self.trips else None


@dataclass(frozen=True, slots=True)
class LoopGuardLostDay:
    """What one run lost on one day; None is an unknown amount."""

    day: str
    run_id: str
    reason: str
    trips: int | None
    scans: int | None


@dataclass(frozen=True, slots=True)
class LoopGuardSignature:
    """One key and how often it tripped."""

    detector: str
    signature_hash: str
    trips: int
    sessions: int
    last_day: str


@dataclass(frozen=True, slots=True)
class LoopGuardRuns:
    """The writer's lives that reach into the window. `open` ones live, or died and no start has come since."""

    count: int
    clean: int
    unclean: int
    open: int
    last_flush_at: datetime | None


@dataclass(frozen=True, slots=True)
class LoopGuardReading:
    """A window of the log. Losses and runs belong to the whole log, filters or not. `outcomes` counts what became of
    the decisions: `outcome` values, and `next:changed` and the like; what is not known is not counted."""

    since_days: int
    first_day: str
    days: tuple[LoopGuardTripDay, ...]
    totals: tuple[LoopGuardTotal, ...]
    losses: tuple[LoopGuardLostDay, ...]
    runs: LoopGuardRuns
    env: tuple[tuple[str, Environment], ...]
    sessions: int
    signatures: tuple[LoopGuardSignature, ...]
    outcomes: tuple[tuple[str, int], ...]

    @property
    def lost_trips(self) -> int:
        """Decisions known to be lost."""
        return sum(loss.trips or 0 for loss in self.losses)

    @property
    def lost_scans(self) -> int:
        """Scanned requests known to be lost."""
        return sum(loss.scans or 0 for loss in self.losses)

    @property
    def is_complete(self) -> bool:
        """Whether nothing was lost: only then is a zero a zero."""
        return not self.losses


def upper_bound_at_zero(scanned: int) -> float | None:
    """The rate above which zero trips in `scanned` requests would have been a surprise (5 %); None without requests."""
    return 1 - 0.05 ** (1 / scanned) if scanned > 0 else None


def read_log(
    session: Session, now_secs: int, days: int = LOOP_GUARD_LOG_DEFAULT_DAYS, filters: Filters = EVERYTHING
) -> LoopGuardReading:
    """The window of `days` days (clamped to 1..90) that ends with today, UTC."""
    first = first_day_of_window(now_secs, days)
    rows, totals = _days_and_totals(session, first, filters)
    environments = {key.env_id for key in rows} | {total.env_id for total in totals}
    return LoopGuardReading(
        since_days=clamped_days(days),
        first_day=_date(first),
        days=tuple(rows),
        totals=tuple(totals),
        losses=tuple(_losses(session, first)),
        runs=_runs(session, first),
        env=tuple(_environments(session, environments)),
        sessions=session.scalar(select(_SESSIONS).where(*_tripped(first, filters))) or 0,
        signatures=tuple(_signatures(session, first, filters)),
        outcomes=tuple(_outcomes(session, first, filters)),
    )


_DAY = LoopGuardTrip.recorded_at // SECS_PER_DAY
_ACTED = LoopGuardTrip.action != "observed"
_SESSIONS = func.count(case((_ACTED, LoopGuardTrip.session_hash)).distinct())
_COUNTS = (
    *(func.count(case((_ACTED & (LoopGuardTrip.detector == name), 1))) for name in ("loop", "stagnation", "requery")),
    func.count(case((~_ACTED, 1))),
    _SESSIONS,
)
_NO_COUNTS = (0, 0, 0, 0, 0)


def _days_and_totals(
    session: Session, first: int, filters: Filters
) -> tuple[list[LoopGuardTripDay], list[LoopGuardTotal]]:
    """Both from the union of the two tables: a day of scans without trips, and a trip whose scan was lost."""
    trip_key = (LoopGuardTrip.path, LoopGuardTrip.model_name, LoopGuardTrip.app_version, LoopGuardTrip.mode)
    scan_key = (LoopGuardScan.path, LoopGuardScan.model_name, LoopGuardScan.app_version, LoopGuardScan.mode)
    by_day = (_DAY, *trip_key, LoopGuardTrip.env_id)
    in_all = (LoopGuardTrip.path, LoopGuardTrip.mode, LoopGuardTrip.env_id, LoopGuardTrip.app_version)
    kept = _tripped(first, filters)
    tripped = _by_key(session.execute(select(*by_day, *_COUNTS).where(*kept).group_by(*by_day)), 6)
    summed = _by_key(session.execute(select(*in_all, *_COUNTS).where(*kept).group_by(*in_all)), 4)
    columns = (LoopGuardScan.day, *scan_key, LoopGuardScan.env_id, LoopGuardScan.scanned)
    counted = select(*columns).where(LoopGuardScan.day >= first, *_matching(LoopGuardScan, filters))
    scanned = {tuple(row)[:6]: int(row[6]) for row in session.execute(counted)}
    scanned_in_all: Counter[tuple[Any, ...]] = Counter()
    for (_, path, _, version, mode, env_id), count in scanned.items():
        scanned_in_all[path, mode, env_id, version] += count
    days = [_day(key, scanned.get(key, 0), tripped[key]) for key in scanned.keys() | tripped.keys()]
    totals = [_total(key, scanned_in_all[key], summed[key]) for key in scanned_in_all.keys() | summed.keys()]
    days.sort(key=lambda row: (row.model_name, row.app_version, row.mode, row.path, row.env_id))
    days.sort(key=lambda row: row.day, reverse=True)
    return days, sorted(totals, key=lambda row: (row.path, row.mode, row.app_version, row.env_id))


def _by_key(rows: Iterable[Sequence[Any]], width: int) -> "defaultdict[tuple[Any, ...], tuple[int, ...]]":
    """Rows of a key and its counts; a key that is not there has none."""
    found: defaultdict[tuple[Any, ...], tuple[int, ...]] = defaultdict(lambda: _NO_COUNTS)
    found.update((tuple(row)[:width], tuple(row)[width:]) for row in rows)
    return found


def _day(key: tuple[Any, ...], scanned: int, counts: tuple[int, ...]) -> LoopGuardTripDay:
    day, path, model_name, app_version, mode, env_id = key
    loops, stagnations, requeries, _, sessions = counts
    trips = loops + stagnations + requeries
    return LoopGuardTripDay(
        _date(day), path, model_name, app_version, mode, env_id, scanned, trips, loops, stagnations, requeries, sessions
    )


def _total(key: tuple[Any, ...], scanned: int, counts: tuple[int, ...]) -> LoopGuardTotal:
    path, mode, env_id, app_version = key
    loops, stagnations, requeries, observed, sessions = counts
    trips = loops + stagnations + requeries
    return LoopGuardTotal(
        path, mode, env_id, app_version, scanned, trips, loops, stagnations, requeries, observed, sessions
    )


def _losses(session: Session, first: int) -> list[LoopGuardLostDay]:
    rows = session.scalars(
        select(LoopGuardLoss)
        .where(LoopGuardLoss.day >= first)
        .order_by(LoopGuardLoss.day.desc(), LoopGuardLoss.run_id, LoopGuardLoss.reason)
    )
    return [LoopGuardLostDay(_date(row.day), row.run_id, row.reason, row.trips, row.scans) for row in rows]


def _runs(session: Session, first: int) -> LoopGuardRuns:
    """Runs that may have written in the window: the last sign of life of each is not before it."""
    begin = datetime.fromtimestamp(first * SECS_PER_DAY, tz=UTC)
    active = func.coalesce(LoopGuardRun.last_flush_at, LoopGuardRun.started_at)
    query = select(LoopGuardRun.clean_exit, LoopGuardRun.last_flush_at).where(active >= begin)
    rows = session.execute(query).all()
    ends = Counter(row[0] for row in rows)
    flushes = [moment for row in rows if (moment := row[1]) is not None]
    return LoopGuardRuns(len(rows), ends[True], ends[False], ends[None], max(flushes, default=None))


def _environments(session: Session, ids: set[str]) -> list[tuple[str, Environment]]:
    rows = session.scalars(select(LoopGuardEnv).order_by(LoopGuardEnv.app_version, LoopGuardEnv.env_id))
    names = tuple(Environment.__dataclass_fields__)
    return [
        (row.env_id, Environment(**{name: getattr(row, name) for name in names})) for row in rows if row.env_id in ids
    ]


def _signatures(session: Session, first: int, filters: Filters) -> list[LoopGuardSignature]:
    """The keys that tripped most."""
    trips, key = func.count(), (LoopGuardTrip.detector, LoopGuardTrip.signature_hash)
    query = select(*key, trips, _SESSIONS, func.max(_DAY)).where(*_tripped(first, filters))
    kept = query.where(_ACTED, LoopGuardTrip.signature_hash.is_not(None)).group_by(*key)
    rows = session.execute(kept.order_by(trips.desc(), *key).limit(TOP_SIGNATURES)).all()
    return [LoopGuardSignature(row[0], row[1] or "", row[2], row[3], _date(row[4])) for row in rows]


def _outcomes(session: Session, first: int, filters: Filters) -> list[tuple[str, int]]:
    """How many decisions are known to have come to what."""
    found: list[tuple[str, int]] = []
    for column, prefix in ((LoopGuardTrip.outcome, ""), (LoopGuardTrip.next_turn, "next:")):
        query = select(column, func.count()).where(*_tripped(first, filters), _ACTED, column.is_not(None))
        rows = session.execute(query.group_by(column).order_by(column)).all()
        found += [(f"{prefix}{row[0]}", row[1]) for row in rows]
    return found


def _tripped(first: int, filters: Filters) -> list[ColumnElement[bool]]:
    return [LoopGuardTrip.recorded_at >= first * SECS_PER_DAY, *_matching(LoopGuardTrip, filters)]


def _matching(table: type[LoopGuardTrip] | type[LoopGuardScan], filters: Filters) -> list[ColumnElement[bool]]:
    wanted = ((table.path, filters.path), (table.model_name, filters.model_name), (table.mode, filters.mode))
    conditions = [column == value for column, value in wanted if value is not None]
    if filters.env_id is not None:
        conditions.append(table.env_id.startswith(filters.env_id, autoescape=True))
    return conditions


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
