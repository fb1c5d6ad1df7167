"""Where the time of a turn went, as a waterfall: computed from what the turn recorded. Pure.

Used by `app.web.receipt_view`. A stretch that was not recorded is not drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.catalog import Catalog

BAR_WIDTH = 1000
"""Units across a bar or waterfall; its SVG stretches."""

MIN_BAR = 4
"""Narrowest bar in those units, about two pixels at the width of the page."""

Kind = Literal["wait", "stream", "work"]


@dataclass(frozen=True, slots=True)
class Span:
    """One row of the waterfall: `bars` are (x, width) in units of `BAR_WIDTH`, `time` is all of them together, as
    words."""

    label: str
    kind: Kind
    bars: tuple[tuple[int, int], ...]
    time: str


def waterfall(numbers: Mapping[str, Any], catalog: Catalog) -> tuple[Span, ...]:
    """Search, the wait for the first word, the tool calls, the answer. Empty when no total was recorded."""
    total, search, first = (int(numbers.get(key) or 0) for key in ("total_ms", "retrieval_ms", "first_ms"))
    if total <= 0:
        return ()
    rows: list[tuple[str, Kind, Sequence[tuple[int, int]]]] = []
    if search:
        rows.append(("time_search", "work", [(0, search)]))
    if first:
        rows.append(("time_wait", "wait", [(min(search, first), first)]))
    else:
        rows.append(("time_other", "wait", [(min(search, total), total)]))
    calls = [(row["at_ms"], row["at_ms"] + row["ms"]) for row in numbers.get("tools") or () if "at_ms" in row]
    if calls:
        rows.append(("time_tools", "work", calls))
    if first:
        rows.append(("time_answer", "stream", [(first, max(first, total))]))
    spans: list[Span] = []
    for label, kind, stretches in rows:
        ms = sum(end - start for start, end in stretches)
        time = catalog.seconds(ms)
        if label == "time_answer" and not calls:  # the tokens of calls came before the answer's
            time = _with_rate(time, numbers.get("completion_tokens"), ms, catalog)
        bars = tuple(_bar(start, end, total) for start, end in stretches)
        spans.append(Span(catalog.t(f"receipt.{label}"), kind, bars, time))
    return tuple(spans)


def _bar(start: int, end: int, total: int) -> tuple[int, int]:
    width = max(MIN_BAR, round((end - start) / total * BAR_WIDTH))
    x = min(round(start / total * BAR_WIDTH), BAR_WIDTH - MIN_BAR)
    return x, min(width, BAR_WIDTH - x)


def _with_rate(time: str, tokens: object, ms: int, catalog: Catalog) -> str:
    if not isinstance(tokens, int) or tokens <= 0 or ms <= 0:
        return time
    return catalog.t("receipt.tokens_rate", time=time, rate=round(tokens * 1000 / ms))
