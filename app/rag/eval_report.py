"""The scores of `docent eval` as a terminal and a program see them. Pure; wording-free names, as in the JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.rag.evaluation import CurvePoint, Measure, Outcome, curve, groups, measures

_CELL = 20

Runs = Mapping[str, Sequence[Outcome]]
"""Outcomes of the same questions by the name of the settings they were asked with, in order."""


def as_fields(runs: Runs, k: int, with_curve: bool) -> dict[str, Any]:
    """`{settings: {groups: {group: {measure: {value, total, of}}}, curve?}}`."""
    return {
        name: {
            "groups": {
                group: {one.name: {"value": one.value, "total": round(one.total, 4), "of": one.of} for one in scored}
                for group, scored in _scored(outcomes, k).items()
            },
            **({"curve": [_point(point) for point in curve(outcomes)]} if with_curve else {}),
        }
        for name, outcomes in runs.items()
    }


def as_lines(runs: Runs, k: int, with_curve: bool) -> list[str]:
    """A line per measure and group: a column of each setting, then how far the last lies from the first."""
    scored = {name: _scored(outcomes, k) for name, outcomes in runs.items()}
    first, *_ = scored.values()
    width = max(_CELL, *(len(name) for name in runs))
    lines = [" " * 24 + "  ".join(f"{name:<{width}}" for name in runs).rstrip()] if len(runs) > 1 else []
    for group in first:
        lines.append(f"{group} ({len(groups(next(iter(runs.values())))[group])})")
        names = dict.fromkeys(one.name for by_group in scored.values() for one in by_group[group])
        for name in names:
            row = [next((one for one in by_group[group] if one.name == name), None) for by_group in scored.values()]
            lines.append(f"  {name:<22}" + "  ".join(f"{_cell(one):<{width}}" for one in row) + _difference(row))
    if with_curve:
        for name, outcomes in runs.items():
            lines += [f"curve {name}", "  threshold  answerable grounded  unanswerable deflected"]
            lines += [
                f"  {point.threshold:<9.2f}  {_cell(point.grounded):<19}  {_cell(point.deflected)}"
                for point in curve(outcomes)
            ]
    return [line.rstrip() for line in lines]


def _scored(outcomes: Sequence[Outcome], k: int) -> dict[str, list[Measure]]:
    return {name: measures(some, k) for name, some in groups(outcomes).items()}


def _cell(measure: Measure | None) -> str:
    if measure is None or measure.value is None:
        return "-"
    total = f"{measure.total:.0f}" if float(measure.total).is_integer() else f"{measure.total:.2f}"
    return f"{measure.value:.3f} ({total}/{measure.of})"


def _difference(row: Sequence[Measure | None]) -> str:
    values = [one.value for one in row if one is not None and one.value is not None]
    return f"  {values[-1] - values[0]:+.3f}" if len(row) > 1 and len(values) == len(row) else ""


def _point(point: CurvePoint) -> dict[str, Any]:
    return {
        "threshold": point.threshold,
        "answerable_grounded": point.grounded.value,
        "unanswerable_deflected": point.deflected.value,
    }
