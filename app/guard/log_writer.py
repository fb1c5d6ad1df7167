"""The loop guard's log, from the side of those who decide: count a scan, record a trip, say what became of it.

Owns when something is written: a thread flushes every few seconds, when a batch is full, and at the end, each time in
one transaction. A request never waits for it. What can't be kept is counted as lost, by reason, and that count reaches
the log with the next flush that works. A process that is killed loses what came since its last flush; the next start
marks its run. `app.main` starts and stops it; it outlives whatever is scanned.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from app.clock import Clock
from app.guard.log_files import RunLock, load_key
from app.guard.log_queue import Batch, GuardQueue, Lost
from app.guard.log_records import Scan, Trip, TripOutcome, TripRecord, event_of
from app.logs import kv
from app.metrics import Metrics
from app.store import loop_guard_log
from app.store.engine import Database, Session, StoreError
from app.store.loop_guard_log import Environment, LossReason, Mode, ScanKey, bounded_model_name, epoch_day
from app.store.loop_guard_log import Path as GuardPath

WARN_EVERY_S = 60.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Store(Protocol):
    """The part of `Database` that the log needs."""

    def write(self, work: Callable[[Session], T]) -> T:
        """Runs `work` in one write transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """How much waits and how long. A capacity or batch below 1 works as 1; a batch that was refused `tries` times, one
    period apart, is lost. `rows` is the most trips that the log keeps."""

    capacity: int = 1024
    batch: int = 256
    period_s: float = 5.0
    tries: int = 3
    rows: int = loop_guard_log.TRIP_ROW_LIMIT


class GuardLog:
    """The log's writer.

    Args:
        key: Turns signatures and sessions into keys.
        lock: The file that processes writing this log share.
        environment: What a scan is counted under that names no other.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        key: bytes,
        lock: Path,
        environment: Environment | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._key = key
        self._lock = RunLock(lock)
        self._environment = environment or Environment()
        self._limits = limits or Limits()
        self._queue = GuardQueue(self._limits.capacity)
        self._env_ids: dict[Environment, str] = {}
        self._environments: dict[str, Environment] = {}
        self._flushing = threading.Lock()
        self._held: Batch | None = None
        self._woken, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="docent-guard-log", daemon=True)
        self._warned_at: float | None = None
        self._warned_of = 0
        self.run_id = secrets.token_hex(8)
        self.metrics = Metrics()
        """Where scans and decisions are counted as well, for this process; `open_guard_log` sets it."""
        self._is_open = False

    def start(self) -> None:
        """Begins to write; the run's row and pruning come first, on the log's own thread."""
        self._thread.start()

    def stop(self) -> None:
        """Writes what is left and ends; what comes later is counted as lost. Blocks. A second call does nothing."""
        rest = self._queue.close()
        if rest is None:
            return
        self._ending.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join()
        with self._flushing:
            self._write(_joined(self._held, rest), last=True)
        self._lock.close()
        self._warn(total=True)

    def scanned(self, path: GuardPath, model_name: str, mode: Mode, environment: Environment | None = None) -> Scan:
        """Counts a request that the guard looks at; to be called before it decides. From any thread; never blocks."""
        at = int(self._clock.now().timestamp())
        facts = environment or self._environment
        name = bounded_model_name(model_name)
        scan = Scan(at, ScanKey(epoch_day(at), path, name, facts.app_version, mode, self._env_id(facts)))
        if not self._queue.add_scan(scan):
            self._after_loss()
        self.metrics.guard_scanned(path, mode)
        return scan

    def tripped(self, record: TripRecord) -> Trip:
        """Records a decision, before it is acted on. From any thread; never blocks. The result is for `settled`."""
        trip = Trip(event_of(record, self._key))
        waiting = self._queue.add_trip(trip)
        if not waiting:
            self._after_loss()
        elif waiting == max(self._limits.batch, 1):
            self._woken.set()
        self.metrics.guard_tripped(record.detector, record.scan.key.path, record.action)
        return trip

    def settled(self, trip: Trip, outcome: TripOutcome) -> None:
        """Adds what became of a decision; may be called again as more is known. From any thread; never blocks."""
        self._queue.add_outcome(trip, outcome)

    def flush(self) -> bool:
        """Writes what waits now, at most a batch at a time; whether the database took it. Blocks."""
        with self._flushing:
            # What arrives meanwhile is left for the next time: under load this would not end.
            size = max(self._limits.batch, 1)
            for _ in range(1 + bool(self._held) + self._queue.depth // size):
                batch = self._held or self._queue.take(size)
                if not batch and self._is_open and not self._queue.has_losses:
                    break
                if not self._write(batch):
                    return False
            return True

    @property
    def depth(self) -> int:
        """How many decisions wait to be written."""
        return self._queue.depth

    @property
    def lost(self) -> Mapping[LossReason, Lost]:
        """What this process lost so far, by reason."""
        return self._queue.lost

    def _run(self) -> None:
        refused = not self.flush()
        while not self._ending.is_set():
            # After a refusal a full queue must not use up the tries: only the end cuts the rest short.
            (self._ending if refused else self._woken).wait(self._limits.period_s)
            self._woken.clear()
            if not self._ending.is_set():
                refused = not self.flush()
            self._warn()

    def _write(self, batch: Batch, *, last: bool = False) -> bool:
        """One transaction for a batch and the losses; whether the database took it."""
        losses = self._queue.take_losses()
        begins = not self._is_open
        alone = begins and self._lock.try_alone()
        dead = 0

        def work(session: Session) -> list[int]:
            nonlocal dead
            now = self._clock.now()
            if begins:
                dead = loop_guard_log.open_run(session, self.run_id, now, alone=alone)
            used = {event.event.env_id for event in batch.trips} | {key.env_id for key in batch.scans}
            loop_guard_log.add_environments(session, [self._environments[env_id] for env_id in sorted(used)])
            ids = loop_guard_log.add_trips(session, [trip.event for trip in batch.trips])
            loop_guard_log.add_scans(session, batch.scans)
            loop_guard_log.add_losses(session, self.run_id, losses)
            rows = dict(zip(batch.trips, ids, strict=True))
            for trip, facts in batch.outcomes.items():
                row_id = rows.get(trip, trip.row_id)
                if row_id is not None and facts:
                    loop_guard_log.update_trip(session, row_id, facts)
            loop_guard_log.prune(session, int(now.timestamp()), self.run_id, limit=self._limits.rows)
            loop_guard_log.touch_run(session, self.run_id, now, ended=last)
            return ids

        try:
            ids = self._store.write(work)
        except Exception as error:  # noqa: BLE001 - worker edge: the log outlives whatever one flush met
            self._queue.give_back(losses)
            self._refused(batch, error, last=last)
            return False
        finally:
            if begins:
                self._lock.share()
        self._is_open, self._held = True, None
        self._queue.written(batch, ids)
        if dead:
            _log.warning(kv("guard_log_unclean", runs=dead))
        return True

    def _refused(self, batch: Batch, error: Exception, *, last: bool) -> None:
        """Keeps the batch for the next try, or counts it as lost."""
        batch.tries += 1
        known = isinstance(error, StoreError)
        _log.warning(
            kv("guard_log_refused", error=type(error).__name__, tries=batch.tries), exc_info=None if known else error
        )
        if last or batch.tries >= self._limits.tries:
            self._queue.give_up(batch)
            self._held = None
        elif batch:
            self._held = batch

    def _env_id(self, environment: Environment) -> str:
        env_id = self._env_ids.get(environment)
        if env_id is None:
            env_id = self._env_ids[environment] = environment.env_id
            self._environments[env_id] = environment
        return env_id

    def _after_loss(self) -> None:
        """Once the thread is gone, whoever meets a loss says so."""
        if self._ending.is_set():
            self._warn()

    def _warn(self, *, total: bool = False) -> None:
        """One line about new losses, at most every minute; `total` says it again at the end."""
        lost = self._queue.lost
        count = sum(one.trips + one.scans for one in lost.values())
        now = self._clock.monotonic()
        is_due = self._warned_at is None or now - self._warned_at >= WARN_EVERY_S
        if not count or not (total or (count > self._warned_of and is_due)):
            return
        self._warned_at, self._warned_of = now, count
        trips, scans = sum(one.trips for one in lost.values()), sum(one.scans for one in lost.values())
        _log.warning(kv("guard_log_lost", trips=trips, scans=scans, reasons=",".join(sorted(lost))))


def open_guard_log(
    database: Database, data_dir: Path, clock: Clock, environment: Environment | None = None, *, metrics: Metrics
) -> GuardLog:
    """The log of an installation: its key in the data folder, its lock beside the database."""
    lock = database.path.with_suffix(".guard.lock")
    key = load_key(data_dir)
    log = GuardLog(database, clock, key=key, lock=lock, environment=environment)
    log.metrics = metrics
    return log


def _joined(first: Batch | None, rest: Batch) -> Batch:
    if first is None:
        return rest
    return Batch(first.trips + rest.trips, first.scans + rest.scans, {**first.outcomes, **rest.outcomes})
