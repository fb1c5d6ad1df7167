"""The one clock: wall time in UTC for rows, monotonic time for durations.

Everything that waits or measures takes a `Clock`, so that tests can scale time. Owns no scheduling.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of the application knows about time."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC. For rows and pages only, never for durations."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes backwards."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return time.monotonic()
