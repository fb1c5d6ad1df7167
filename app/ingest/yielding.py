"""Giving way: background work waits while a turn streams, but no stream starves it."""

import threading
from collections.abc import Callable

from app.clock import Clock

YIELD_MAX_S = 2.0
"""How long a batch waits unless it says otherwise; then one batch goes anyway."""

FIRST_S = 0.5
"""How long a file waits for a turn that has just begun."""

LOOK_S = 0.02

LATELY_S = 10.0
"""For how long after it had to wait background work goes on in small steps: the next question may be near."""


class Yielding:
    """Asked before each batch.

    Args:
        busy: Whether something is going on that may not be slowed down.
        stopping: Set when the process wants to end.
        max_s: How long a batch waits at most: what takes a core for longer waits longer.
        paused: Whether a person wants it to rest.
        behind: Whether other background work goes first.
    """

    def __init__(
        self,
        clock: Clock,
        busy: Callable[[], bool],
        stopping: threading.Event,
        max_s: float = YIELD_MAX_S,
        paused: Callable[[], bool] = lambda: False,
        behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._clock = clock
        self._busy = busy
        self._stopping = stopping
        self._max_s = max_s
        self._paused = paused
        self._behind = behind
        self._waited_at: float | None = None

    def give_way(self) -> bool:
        """Waits its turn; False when the process wants to end, or a person has it rest."""
        now = self._clock.monotonic()
        until = now + self._max_s
        while ((busy := self._busy()) or self._behind()) and now < until and not self._stopping.wait(LOOK_S):
            now = self._clock.monotonic()
            self._waited_at = now if busy else self._waited_at
        return not self.is_stopping and not self._paused()

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
