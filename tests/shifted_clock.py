"""The machine's clock, moved forward by a test: minutes pass at once, and what is measured goes on."""

from datetime import datetime, timedelta

from app.clock import SystemClock


class ShiftedClock(SystemClock):
    """Both clocks, `shift` seconds ahead of the machine's."""

    def __init__(self) -> None:
        self._by = 0.0

    def shift(self, seconds: float) -> None:
        self._by += seconds

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._by)

    def monotonic(self) -> float:
        return super().monotonic() + self._by
