"""Giving way: background work waits while a turn begins or streams, but no turn starves it.

Owns how long. `app.ingest.worker` makes one `TurnsFirst` for all its lanes and a `Yielding` for each kind of work.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from app.clock import Clock

YIELD_MAX_S = 2.0
"""How long a batch waits for a turn that streams, or for work that goes first, unless it says otherwise; then one batch
goes anyway."""

HELD_S = 2.0
SLICE_S = 0.1
"""Where one turn begins after the other, background work goes on for a tenth of a second every two."""

LOOK_S = 0.02

LATELY_S = 10.0
"""For how long after it had to wait background work goes on in small steps: the next question may be near."""


class TurnsFirst:
    """Whether a turn that has just begun goes first, for all background work together: two lanes that took turns in
    passing it would slow down twice as many. Thread-safe.

    Args:
        starting: Whether a turn has just begun.
    """

    def __init__(self, clock: Clock, starting: Callable[[], bool]) -> None:
        self._clock = clock
        self._starting = starting
        self._lock = threading.Lock()
        self._held_since: float | None = None

    def __call__(self) -> bool:
        """Whether a step that would begin now has to wait."""
        with self._lock:
            if not self._starting():
                self._held_since = None
                return False
            now = self._clock.monotonic()
            if self._held_since is None or now - self._held_since >= HELD_S + SLICE_S:
                self._held_since = now
            return now - self._held_since < HELD_S


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Ahead:
    """What goes before a batch, beside a turn that streams."""

    turns: Callable[[], bool] = _never
    """Whether a turn goes first, for as long as it says so: `TurnsFirst`."""

    work: Callable[[], bool] = _never
    """Whether other background work does, for `YIELD_MAX_S` at most."""


class Yielding:
    """Asked before each batch.

    Args:
        busy: Whether a turn streams that should not be slowed down.
        stopping: Set when the process wants to end.
        max_s: How long a batch waits for it at most: what takes a core for longer waits longer.
        paused: Whether a person wants it to rest.
        ahead: What else goes first.
    """

    def __init__(
        self,
        clock: Clock,
        busy: Callable[[], bool],
        stopping: threading.Event,
        max_s: float = YIELD_MAX_S,
        paused: Callable[[], bool] = _never,
        ahead: Ahead = Ahead(),
    ) -> None:
        self._clock = clock
        self._busy = busy
        self._stopping = stopping
        self._max_s = max_s
        self._paused = paused
        self._ahead = ahead
        self._waited_at: float | None = None

    def give_way(self) -> bool:
        """Waits its turn; False when the process wants to end, or a person has it rest."""
        began = now = self._clock.monotonic()
        while not self.is_stopping and self._is_to_wait(now, now - began):
            self._stopping.wait(LOOK_S)
            now = self._clock.monotonic()
        return not self.is_stopping and not self._paused()

    def _is_to_wait(self, now: float, waited: float) -> bool:
        if self._ahead.turns() or (waited < self._max_s and self._busy()):
            self._waited_at = now
            return True
        return waited < YIELD_MAX_S and self._ahead.work()

    def rest(self, seconds: float) -> bool:
        """Waits so long; False when the process wants to end."""
        return not self._stopping.wait(seconds)

    @property
    def has_waited(self) -> bool:
        """Whether it had to wait for a turn within the last `LATELY_S`."""
        return self._waited_at is not None and self._clock.monotonic() - self._waited_at < LATELY_S

    @property
    def is_stopping(self) -> bool:
        """Whether the process wants to end."""
        return self._stopping.is_set()
