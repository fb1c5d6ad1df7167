"""What a page shows of what a turn looked up: a line per search and tool call, from what the turn stored. Pure.

For `app.web.chat_view` (over the answer) and `app.web.receipt_view`. js/live-steps.js makes the same lines from `tool`
frames while they come; both are worded by `app.edge.looked_up`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog import Catalog
from app.edge.looked_up import asked_for, first_look
from app.render.names import plain_name


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One look-up: the verb, what it was asked for, what came of it in a few words, and how long it took."""

    name: str
    asked: str
    summary: str
    time: str
    is_wrong: bool = False


def first_line(catalog: Catalog, numbers: Mapping[str, Any], sources: int | None) -> list[ToolLine]:
    """The search before the answer, or what stood for it; none where nothing was looked up. `sources`: None if nothing
    was close."""
    look = first_look(catalog, numbers, sources)
    if look is None:
        return []
    time = catalog.seconds(look.ms) if look.ms else ""
    return [ToolLine(look.name, look.asked, look.summary, time, is_wrong=look.status == "error")]


def tool_lines(catalog: Catalog, numbers: Mapping[str, Any]) -> list[ToolLine]:
    """The tool calls that ended, in their order."""
    return [
        ToolLine(
            name=str(row["name"]),
            asked=asked_for(catalog, str(row["name"]), row.get("args") or {}),
            summary=plain_name(str(row.get("summary") or "")),
            time=catalog.seconds(int(row.get("ms") or 0)),
            is_wrong=row.get("status") == "error",
        )
        for row in numbers.get("tools") or ()
    ]
