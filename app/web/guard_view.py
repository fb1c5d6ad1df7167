"""What the loop guard's panel says of a reading of its log: totals, table of days, keys, losses. Pure.

The figures are those of `docent trips`: both are made of one `LoopGuardReading`, and what both say is said by
`app.guard.listing`. The chart is `app.web.guard_chart`'s. Used by `app.web.guard_panel`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from app.catalog import Catalog
from app.guard.listing import environment_line, loss_lines, percent
from app.store.loop_guard_log import LoopGuardTripDay
from app.store.loop_guard_reading import LARGE_DENOMINATOR, LoopGuardReading, LoopGuardSignature, LoopGuardTotal
from app.web.guard_chart import Chart, chart

WINDOWS = (7, 30, 90)
MOST_ROWS = 200
"""Rows of the table of days; the command has all of them."""


@dataclass(frozen=True, slots=True)
class Total:
    """One path, mode and environment. `words` says what its denominator is worth; empty where it acted."""

    name: str
    scanned: int
    trips: int
    rate: str
    observed: int
    sessions: int
    words: str


@dataclass(frozen=True, slots=True)
class Losses:
    """The runs, then what is missing from the figures."""

    runs: str
    words: tuple[str, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """A window of the log. `empty` is said in place of the figures where there are none; `figures` are label and value
    over all totals."""

    since_days: int
    windows: tuple[int, ...]
    figures: tuple[tuple[str, str], ...]
    totals: tuple[Total, ...]
    chart: Chart
    days: tuple[LoopGuardTripDay, ...]
    hidden: int
    signatures: tuple[LoopGuardSignature, ...]
    losses: Losses
    environments: tuple[str, ...]
    empty: str


def panel(reading: LoopGuardReading, catalog: Catalog, *, is_off: bool, is_locked: bool) -> Panel:
    """The panel of `reading`. A guard that is off says so, as nothing is counted by it."""
    lines = loss_lines(reading, catalog)
    return Panel(
        since_days=reading.since_days,
        windows=WINDOWS if reading.since_days in WINDOWS else tuple(sorted((*WINDOWS, reading.since_days))),
        figures=_figures(reading, catalog),
        totals=tuple(_total(total, reading, catalog) for total in reading.totals),
        chart=chart(reading, catalog),
        days=reading.days[:MOST_ROWS],
        hidden=max(0, len(reading.days) - MOST_ROWS),
        signatures=reading.signatures,
        losses=Losses(lines[0], tuple(lines[1:]), reading.is_complete),
        environments=tuple(environment_line(env_id, asdict(facts)).strip() for env_id, facts in reading.env),
        empty="" if reading.days else _empty(reading.since_days, catalog, is_off=is_off, is_locked=is_locked),
    )


def _figures(reading: LoopGuardReading, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """A rate over different populations would be nobody's: it is given where there is one only."""
    totals = reading.totals
    values = [
        ("scanned", catalog.number(sum(total.scanned for total in totals))),
        ("trips", catalog.number(sum(total.trips for total in totals))),
    ]
    if len(totals) == 1:
        values.append(("rate", _rate(totals[0], catalog)))
    values.append(("sessions", catalog.number(reading.sessions)))
    outcomes = dict(reading.outcomes)
    changed = outcomes.get("next:changed", 0)
    if known := changed + outcomes.get("next:same", 0):
        values.append(("recovered", catalog.t("guard_panel.recovered_value", changed=changed, known=known)))
    return tuple((catalog.t(f"guard_panel.figure_{name}"), value) for name, value in values)


def _total(total: LoopGuardTotal, reading: LoopGuardReading, catalog: Catalog) -> Total:
    facts = {"path": catalog.t(f"guard_panel.path_{total.path}"), "mode": total.mode, "env": total.env_id[:6]}
    return Total(
        name=catalog.t("guard_panel.total_name", **facts),
        scanned=total.scanned,
        trips=total.trips,
        rate=_rate(total, catalog),
        observed=total.observed,
        sessions=total.sessions,
        words=_worth(total.scanned, catalog, complete=reading.is_complete) if not total.trips else "",
    )


def _rate(total: LoopGuardTotal, catalog: Catalog) -> str:
    if total.rate is None:
        return "–"
    if total.upper_bound is None:
        return percent(total.rate)
    return catalog.t("guard_panel.rate_zero", bound=percent(total.upper_bound))


def _worth(scanned: int, catalog: Catalog, *, complete: bool) -> str:
    """What zero trips in `scanned` requests say."""
    if not complete:
        return catalog.t("guard_panel.worth_unproven")
    size = "large" if scanned >= LARGE_DENOMINATOR else "small"
    return catalog.t(f"guard_panel.worth_{size}", scanned=scanned, large=LARGE_DENOMINATOR)


def _empty(days: int, catalog: Catalog, *, is_off: bool, is_locked: bool) -> str:
    said: Sequence[str] = ("empty_off_locked",) if is_off and is_locked else ("empty_off",) if is_off else ("empty_on",)
    return " ".join(catalog.t(f"guard_panel.{key}", n=days) for key in ("empty", *said))
