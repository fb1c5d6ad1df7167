"""What a page shows of what a turn looked up: a line per search and tool call, from what the turn stored. Pure.

For `app.web.chat_view` (over the answer) and `app.web.receipt_view`. js/live-steps.js makes the same lines from `tool`
frames while they come; what a call asks for is worded by `app.edge.looked_up` for both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog import Catalog
from app.edge.looked_up import asked_for
from app.render.names import plain_name


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One look-up: the verb, what it was asked for, what came of it in a few words, and how long it took."""

    name: str
    asked: str
    summary: str
    time: str
    is_wrong: bool = False


def search_line(catalog: Catalog, numbers: Mapping[str, Any], sources: int | None) -> list[ToolLine]:
    """The search before the answer; none where nothing was searched. `sources`: None if nothing was close."""
    query = str(numbers.get("searched") or "")
    if not query:
        return []
    summary = catalog.t("chat.nothing_close")
    if sources is not None:
        summary = catalog.t("chat.passages", n=int(numbers.get("given", sources)))
    time = catalog.seconds(int(numbers.get("retrieval_ms") or 0))
    return [ToolLine("search", asked_for(catalog, "search", {"query": query}), summary, time)]


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
