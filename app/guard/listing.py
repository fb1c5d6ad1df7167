"""A reading of the loop guard's log as a terminal, a spreadsheet and a JSON client see it.

Owns the shapes of `docent trips` and of `GET /api/proxy/loop-guard-trips`; the figures are
`app.store.loop_guard_reading`'s, the sentences the catalog's. Prints nothing.
"""

import csv
import io
from collections import Counter
from dataclasses import asdict, fields
from typing import Any

from app.catalog import Catalog
from app.store.loop_guard_log import LoopGuardTripDay
from app.store.loop_guard_reading import LARGE_DENOMINATOR, LoopGuardReading, LoopGuardSignature, LoopGuardTotal

COLUMNS = (
    ("day", 10),
    ("path", 5),
    ("model_name", 28),
    ("app_version", 9),
    ("mode", 6),
    ("env_id", 6),
    ("scanned", 7),
    ("trips", 5),
    ("loops", 5),
    ("stagnations", 6),
    ("requeries", 6),
    ("sessions", 8),
)
"""Field and width."""

_NUMBERS = frozenset({"scanned", "trips", "loops", "stagnations", "requeries", "sessions"})
"""Columns that are set to the right."""


def as_fields(reading: LoopGuardReading) -> dict[str, Any]:
    """The JSON of a reading. `rate` and `upper_bound` are shares; a bound is given at zero trips only, and proves
    nothing unless `complete`. `large` is the number of scanned requests that makes a zero say something."""
    last = reading.runs.last_flush_at
    return {
        "since_days": reading.since_days,
        "first_day": reading.first_day,
        "days": [asdict(row) for row in reading.days],
        "totals": [{**asdict(row), "rate": row.rate, "upper_bound": row.upper_bound} for row in reading.totals],
        "losses": [asdict(row) for row in reading.losses],
        "runs": asdict(reading.runs) | {"last_flush_at": last.isoformat() if last else None},
        "env": [{"env_id": env_id, **asdict(facts)} for env_id, facts in reading.env],
        "sessions": reading.sessions,
        "signatures": [asdict(row) for row in reading.signatures],
        "outcomes": dict(reading.outcomes),
        "lost": {"trips": reading.lost_trips, "scans": reading.lost_scans},
        "complete": reading.is_complete,
        "large": LARGE_DENOMINATOR,
    }


def as_csv(reading: LoopGuardReading) -> str:
    """The rows of `days` with a header. A text that a spreadsheet would take for a formula gets a quote in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(LoopGuardTripDay)]
    writer.writerow(names)
    for row in reading.days:
        writer.writerow([_cell(getattr(row, name)) for name in names])
    return out.getvalue()


def as_lines(reading: LoopGuardReading, catalog: Catalog) -> list[str]:
    """Window, table, totals, environments, what came of the decisions, losses, and what a trip is."""
    lines = [catalog.t("guard.window", n=reading.since_days, first=reading.first_day)]
    if not reading.days:
        lines += [catalog.t("guard.empty", n=reading.since_days)]
        return [*lines, *loss_lines(reading, catalog)]
    lines += ["", "  ".join(_head(name, width, catalog) for name, width in COLUMNS)]
    lines += ["  ".join(_padded(getattr(row, name), width) for name, width in COLUMNS) for row in reading.days]
    lines += ["", *(_total_line(total, catalog) for total in reading.totals)]
    lines += [catalog.t("guard.sessions", n=reading.sessions)]
    if reading.signatures:
        lines += ["", catalog.t("guard.signatures")]
        lines += [_signature_line(row, catalog) for row in reading.signatures[:5]]
    if reading.outcomes:
        came = ", ".join(f"{count} {name}" for name, count in reading.outcomes)
        lines += [catalog.t("guard.outcomes", outcomes=_one_line(came))]
    lines += ["", catalog.t("guard.environments")]
    lines += [environment_line(env_id, asdict(facts)) for env_id, facts in reading.env]
    return [*lines, "", *loss_lines(reading, catalog), catalog.t("guard.decision")]


def loss_lines(reading: LoopGuardReading, catalog: Catalog) -> list[str]:
    """What is missing from the figures; a zero is proven only where nothing is."""
    runs = reading.runs
    lines = [catalog.t("guard.runs", n=runs.count, clean=runs.clean, unclean=runs.unclean, open=runs.open)]
    if reading.is_complete:
        return [*lines, catalog.t("guard.nothing_lost")]
    by_reason = Counter[str]()
    for loss in reading.losses:
        by_reason[loss.reason] += (loss.trips or 0) + (loss.scans or 0)
    reasons = ", ".join(
        reason if reason == "unclean_exit" else f"{reason} {catalog.number(count)}"
        for reason, count in sorted(by_reason.items())
    )
    trips, scans = reading.lost_trips, reading.lost_scans
    return [*lines, catalog.t("guard.lost", trips=trips, scans=scans, reasons=reasons), catalog.t("guard.unproven")]


def _total_line(total: LoopGuardTotal, catalog: Catalog) -> str:
    facts = {"path": total.path, "mode": total.mode, "env": total.env_id[:6], "scanned": total.scanned}
    if total.rate is None or total.trips:
        rate = "-" if total.rate is None else percent(total.rate)
        line = catalog.t("guard.total", n=total.trips, rate=rate, **facts)
    else:
        bound = percent(total.upper_bound or 0)
        line = catalog.t("guard.total_zero", bound=bound, large=LARGE_DENOMINATOR, **facts)
    return line + (catalog.t("guard.observed", n=total.observed) if total.observed else "")


def _signature_line(row: LoopGuardSignature, catalog: Catalog) -> str:
    facts = {"detector": row.detector, "key": row.signature_hash, "sessions": row.sessions, "day": row.last_day}
    return catalog.t("guard.signature", n=row.trips, **facts)


def environment_line(env_id: str, facts: dict[str, object]) -> str:
    """An environment's short name and what is known of it."""
    known = " ".join(f"{name}={_one_line(str(value))}" for name, value in facts.items() if value is not None)
    return f"  {env_id[:6]}  {known}"


def _head(name: str, width: int, catalog: Catalog) -> str:
    title = catalog.t(f"guard.column_{name}")
    return title.rjust(width) if name in _NUMBERS else title.ljust(width)


def _padded(value: object, width: int) -> str:
    if isinstance(value, int):
        return str(value).rjust(width)
    text = _one_line(str(value))
    shown = text if len(text) <= width or width == 6 else text[: width - 1] + "…"
    return shown[:width].ljust(width)


def percent(share: float) -> str:
    """A share as words, three digits of it: "0.0364 %"."""
    return f"{100 * share:.3g} %"


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value


def _one_line(text: str) -> str:
    """Without what a terminal would obey: control characters, line ends, reversed writing."""
    return "".join(char if char.isprintable() else " " for char in text).strip()
