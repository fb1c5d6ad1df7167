"""The chart of the loop guard's panel: scanned requests and trips per day, each on an axis of its own. Pure.

Owns the geometry of an SVG that stretches sideways; text stands beside it in HTML. Days are UTC, as in the log.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from app.catalog import Catalog
from app.store.loop_guard_reading import LoopGuardReading

SLOT, BAR = 12, 9
"""Units across a day, and of its bar."""

HEIGHT = 72
BLOCK, STEP = 8, 10
MOST_BLOCKS = 6
"""Trips that are drawn one by one; a day with more makes all of them bars."""

LOSS = 7

Rect = tuple[float, float, int, float]
"""x, y, width, height."""


@dataclass(frozen=True, slots=True)
class Chart:
    """`scanned`, `lost` and `trips` are rectangles in units of the drawing; `trip_height` is the height of the lower
    one. `top` and `half` label the upper axis, `trip_top` the lower one where blocks can't be counted."""

    width: int
    height: int
    scanned: tuple[Rect, ...]
    lost: tuple[Rect, ...]
    top: str
    half: str
    trips: tuple[Rect, ...]
    trip_height: int
    trip_top: str
    first: str
    last: str
    scanned_words: str
    trips_words: str


def chart(reading: LoopGuardReading, catalog: Catalog) -> Chart:
    """The drawing of a window, with a sentence for each half that says the same."""
    begin = date.fromisoformat(reading.first_day)
    days = [begin + timedelta(days=number) for number in range(reading.since_days)]
    scanned, trips = Counter[str](), Counter[str]()
    for row in reading.days:
        scanned[row.day] += row.scanned
        trips[row.day] += row.trips
    lost = {loss.day for loss in reading.losses}
    top = _round_top(max(scanned.values(), default=0))
    most = max(trips.values(), default=0)
    bars = [HEIGHT * scanned[day.isoformat()] / top for day in days]
    heights = [max(1.0, height) if height else 0.0 for height in bars]
    return Chart(
        width=SLOT * len(days),
        height=HEIGHT,
        scanned=tuple(_bar(at, HEIGHT, height) for at, height in enumerate(heights) if height),
        lost=tuple(_lost(at, heights[at]) for at, day in enumerate(days) if day.isoformat() in lost),
        top=catalog.number(top),
        half=catalog.number(top // 2),
        trips=_trips([trips[day.isoformat()] for day in days], most),
        trip_height=STEP * min(max(most, 1), MOST_BLOCKS),
        trip_top=catalog.number(most) if most > MOST_BLOCKS else "",
        first=_short(days[0], catalog),
        last=_short(days[-1], catalog),
        scanned_words=_words("scanned", scanned, catalog),
        trips_words=_words("trips", trips, catalog),
    )


def _trips(counts: Sequence[int], most: int) -> tuple[Rect, ...]:
    if most > MOST_BLOCKS:
        floor = STEP * MOST_BLOCKS
        return tuple(_bar(at, floor, max(2.0, floor * count / most)) for at, count in enumerate(counts) if count)
    floor = STEP * max(most, 1)
    return tuple(_bar(at, floor - STEP * block, BLOCK) for at, count in enumerate(counts) for block in range(count))


def _bar(day: int, floor: float, height: float) -> Rect:
    return (SLOT * day + (SLOT - BAR) / 2, round(floor - height, 1), BAR, round(height, 1))


def _lost(day: int, height: float) -> Rect:
    """On top of the day's bar, inside the drawing also where that reaches its top."""
    return _bar(day, max(LOSS + 1, HEIGHT - height - 1), LOSS)


def _round_top(most: int) -> int:
    """The end of an axis that holds `most`, of which half is a whole number, too."""
    scale = 1
    while True:
        for step in (2, 4, 6, 10):
            if step * scale >= most:
                return step * scale
        scale *= 10


def _short(day: date, catalog: Catalog) -> str:
    return f"{day.day} {catalog.t(f'dates.month_{day.month}')[:3]}"


def _words(name: str, counts: Counter[str], catalog: Catalog) -> str:
    total = sum(counts.values())
    if not total:
        return catalog.t(f"guard_panel.chart_{name}_none")
    day, most = max(counts.items(), key=lambda item: (item[1], item[0]))
    return catalog.t(f"guard_panel.chart_{name}", n=total, most=most, day=_short(date.fromisoformat(day), catalog))
