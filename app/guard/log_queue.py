"""What waits to be written to the loop guard's log, and what was lost on the way.

One lock, held for a few lines at a time, so that any thread and the event loop may add: nothing here waits for the
database. Closing and the last taking share the lock with adding; so each thing is either taken or counted as lost,
never both and never neither.
"""

import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.guard.log_records import Scan, Trip, TripOutcome
from app.store.loop_guard_log import Loss, LossReason, ScanKey, epoch_day


@dataclass(slots=True)
class Batch:
    """What one transaction writes."""

    trips: list[Trip] = field(default_factory=list[Trip])
    scans: Counter[ScanKey] = field(default_factory=Counter[ScanKey])
    outcomes: dict[Trip, dict[str, object]] = field(default_factory=dict[Trip, "dict[str, object]"])
    tries: int = 0

    def __bool__(self) -> bool:
        return bool(self.trips or self.scans or self.outcomes)


@dataclass(frozen=True, slots=True)
class Lost:
    """How much this process lost for one reason."""

    trips: int = 0
    scans: int = 0


class GuardQueue:
    """The queue.

    Args:
        capacity: How many trips, different scan keys and late outcomes may wait; at least 1.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = max(capacity, 1)
        self._lock = threading.Lock()
        self._trips: deque[Trip] = deque()
        self._scans: Counter[ScanKey] = Counter()
        self._outcomes: dict[Trip, dict[str, object]] = {}
        self._losses: dict[tuple[int, LossReason], Lost] = {}
        self._lost: dict[LossReason, Lost] = {}
        self._is_closed = False

    def add_scan(self, scan: Scan) -> bool:
        """Counts a scanned request; False when it was lost."""
        with self._lock:
            if self._is_closed:
                return self._lose(scan.key.day, "stopped", scans=1)
            if len(self._scans) >= self._capacity and scan.key not in self._scans:
                return self._lose(scan.key.day, "queue_full", scans=1)
            self._scans[scan.key] += 1
            return True

    def add_trip(self, trip: Trip) -> int:
        """Queues a decision and gives how many wait; 0 when it was lost."""
        day = epoch_day(trip.event.recorded_at)
        with self._lock:
            if self._is_closed or len(self._trips) >= self._capacity:
                trip.state = "lost"
                return self._lose(day, "stopped" if self._is_closed else "queue_full", trips=1)
            self._trips.append(trip)
            return len(self._trips)

    def add_outcome(self, trip: Trip, outcome: TripOutcome) -> None:
        """Notes what became of a decision; where there is no room for it, it stays unknown."""
        facts = outcome.facts()
        with self._lock:
            if trip.state == "queued":
                trip.event = replace(trip.event, **facts)  # type: ignore[arg-type]  # facts() gives the fields' types
            elif trip.state != "lost" and (trip in self._outcomes or len(self._outcomes) < self._capacity):
                self._outcomes.setdefault(trip, {}).update(facts)

    def take(self, most: int | None) -> Batch:
        """The oldest `most` trips (None: all), and everything else."""
        with self._lock:
            return self._take(most)

    def close(self) -> Batch | None:
        """Takes everything and lets nothing in any more; None the second time."""
        with self._lock:
            if self._is_closed:
                return None
            self._is_closed = True
            return self._take(None)

    def written(self, batch: Batch, ids: list[int]) -> None:
        """Notes where the trips of a batch stand, for outcomes that come later."""
        with self._lock:
            for trip, row_id in zip(batch.trips, ids, strict=True):
                trip.row_id, trip.state = row_id, "written"

    def give_up(self, batch: Batch) -> None:
        """Counts a batch that could not be written as lost."""
        with self._lock:
            for trip in batch.trips:
                trip.state = "lost"
                self._lose(epoch_day(trip.event.recorded_at), "flush_failed", trips=1)
            for key, count in batch.scans.items():
                self._lose(key.day, "flush_failed", scans=count)

    def take_losses(self) -> list[Loss]:
        """The losses that the log does not hold yet."""
        with self._lock:
            losses, self._losses = self._losses, {}
        return [Loss(day, reason, lost.trips, lost.scans) for (day, reason), lost in losses.items()]

    def give_back(self, losses: list[Loss]) -> None:
        """Keeps losses that could not be written for the next time; they are never lost themselves."""
        with self._lock:
            for loss in losses:
                before = self._losses.get((loss.day, loss.reason), Lost())
                total = Lost(before.trips + loss.trips, before.scans + loss.scans)
                self._losses[loss.day, loss.reason] = total

    @property
    def depth(self) -> int:
        """How many trips wait."""
        return len(self._trips)

    @property
    def has_losses(self) -> bool:
        """Whether there are losses that the log does not hold yet."""
        return bool(self._losses)

    @property
    def lost(self) -> Mapping[LossReason, Lost]:
        """What this process lost so far, by reason."""
        with self._lock:
            return dict(self._lost)

    def _take(self, most: int | None) -> Batch:
        count = len(self._trips) if most is None else min(most, len(self._trips))
        batch = Batch([self._trips.popleft() for _ in range(count)], self._scans, self._outcomes)
        for trip in batch.trips:
            trip.state = "taken"
        self._scans, self._outcomes = Counter(), {}
        return batch

    def _lose(self, day: int, reason: LossReason, *, trips: int = 0, scans: int = 0) -> bool:
        here, ever = self._losses.get((day, reason), Lost()), self._lost.get(reason, Lost())
        self._losses[day, reason] = Lost(here.trips + trips, here.scans + scans)
        self._lost[reason] = Lost(ever.trips + trips, ever.scans + scans)
        return False
