"""The tool `search`: the same search that the turn began with, with other words."""

from dataclasses import replace

from app.errors import AppError
from app.rag.context import passages_of
from app.rag.tool_calls import ToolResult
from app.rag.tools.arguments import Call
from app.rag.tools.desk import NO_ROOM, QUOTES_LINE, Desk, lay_out, lines_of
from app.rag.tools.names import ASKED_CHARS, one_line
from app.store.engine import StoreError

_TAIL_TOKENS = 60
"""For the first and the last line."""


def search_library(call: Call, desk: Desk) -> ToolResult:
    """The best passages for a query, `k` of them, at most RETRIEVAL_TOP_K."""
    query = call.text("query")
    k = max(1, min(call.number("k") or desk.top_k, desk.top_k))
    try:
        hits = desk.searcher.search(query, user_id=desk.scope.user_id, k=k, filters=desk.filters)
    except (AppError, StoreError, OSError):
        return desk.failed("search_failed", "The search failed. Use grep or find, or answer from what you have read.")
    if not hits:
        text = f"Nothing fits {one_line(query, ASKED_CHARS)!r}. Try other words, or grep for an exact word."
        return ToolResult(text, desk.texts.say("nothing"))
    found = [(lines_of(passage).capitalize(), replace(passage, n=0)) for passage in passages_of(hits)]
    head = f"The passages that fit best. {QUOTES_LINE}"
    laid = lay_out(desk, found, desk.tokens - _TAIL_TOKENS)
    if not laid.blocks:
        return desk.failed("no_room", NO_ROOM)
    tail = [f"{laid.left_out} more found no room; ask for less with k."] if laid.left_out else []
    return ToolResult(
        "\n\n".join([head, *laid.blocks, *tail]), desk.texts.passages(len(laid.blocks)), passages=laid.passages
    )
