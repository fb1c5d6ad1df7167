"""The tools of one turn, over the library of the person who asks: runs calls, numbers passages, keeps the budget.

Owns what holds for every tool: a call is read leniently, runs in a worker thread, sees only what the person may see and
the turn's filters let through, says no more than its share of the budget, and ends in a result whatever goes wrong.
What each tool does is `app.rag.tools`'. Made once per grounded turn by `app.api`, called by the agent.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from anyio import to_thread

from app.clock import Clock
from app.rag.context import estimate_tokens
from app.rag.gate import Search
from app.rag.pieces import Passage, ToolCallPiece
from app.rag.tool_calls import ToolResult, Tools
from app.rag.tools.arguments import ArgumentsError, Call, UnknownToolError, parse_call
from app.rag.tools.budget import Budget, bounded
from app.rag.tools.definitions import DEFINITIONS
from app.rag.tools.desk import NO_ROOM, Desk
from app.rag.tools.grep import grep_documents
from app.rag.tools.ledger import Ledger
from app.rag.tools.listing import find_documents, list_place
from app.rag.tools.paths import PathError
from app.rag.tools.read import read_document
from app.rag.tools.search import search_library
from app.rag.tools.texts import ToolTexts, tool_texts
from app.search.hits import SearchFilters
from app.store.engine import Database, StoreError
from app.store.scope import Scope

__all__ = ["DEFINITIONS", "LibraryToolbox", "ToolLimits", "ToolSources", "ToolTexts", "tool_texts"]

_RUN: Mapping[str, Callable[[Call, Desk], ToolResult]] = {
    "read": read_document,
    "ls": list_place,
    "grep": grep_documents,
    "find": find_documents,
    "search": search_library,
}


@dataclass(frozen=True, slots=True)
class ToolSources:
    """What tools read from: the same for every turn."""

    database: Database
    searcher: Search
    clock: Clock
    texts: ToolTexts


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """How much a turn may look: tokens of all results together, requests that offer tools, passages of a search."""

    budget_tokens: int
    max_rounds: int
    top_k: int


class LibraryToolbox:
    """A `Toolbox` over the documents that `user_id` may read and `filters` let through.

    Args:
        given: The passages that the prompt holds at the time; results number theirs on from the first ones, and point
            at those that are still there.
    """

    def __init__(
        self,
        sources: ToolSources,
        limits: ToolLimits,
        *,
        user_id: int,
        filters: SearchFilters,
        given: Callable[[], Sequence[Passage]],
    ) -> None:
        self._sources = sources
        self._limits = limits
        self._scope = Scope(user_id, filters)
        self._given = given
        self._ledger = Ledger(given())
        self._budget = Budget(limits.budget_tokens)

    @property
    def max_rounds(self) -> int:
        """How many requests may offer tools."""
        return self._limits.max_rounds

    @property
    def definitions(self) -> Tools:
        """The tools as a request offers them."""
        return DEFINITIONS

    @property
    def passages(self) -> Sequence[Passage]:
        """The passages that results have numbered so far."""
        return self._ledger.shown

    async def run(self, call: ToolCallPiece) -> ToolResult:
        """Runs one call. Whatever goes wrong is an unsuccessful result; nothing is raised but a cancel.

        A call that is cancelled ends its thread soon after and leaves no numbers behind. When the budget is used up,
        the result says to answer now.
        """
        if not (allowance := self._budget.allowance):
            return ToolResult(NO_ROOM, self._sources.texts.say("no_room"), ok=False)
        desk = self._desk(allowance)
        try:
            result = await to_thread.run_sync(_run, call, desk)
        finally:
            desk.stop.set()
        self._ledger = desk.ledger
        self._budget.spend(result.text)
        return result

    def _desk(self, allowance: int) -> Desk:
        sources = self._sources
        return Desk(
            database=sources.database,
            searcher=sources.searcher,
            clock=sources.clock,
            texts=sources.texts,
            scope=self._scope,
            ledger=self._ledger.copy(self._given()),
            tokens=allowance,
            top_k=self._limits.top_k,
            stop=threading.Event(),
        )


def _run(piece: ToolCallPiece, desk: Desk) -> ToolResult:
    """The result of a call; one without passages, which may name long names, is cut to its share."""
    result = _result(piece, desk)
    return result if result.passages else replace(result, text=bounded(result.text, desk.tokens))


def _result(piece: ToolCallPiece, desk: Desk) -> ToolResult:
    try:
        call = parse_call(piece)
        result = _RUN[call.tool](call, desk)
    except UnknownToolError as error:
        return desk.failed("unknown_tool", str(error))
    except ArgumentsError as error:
        return desk.failed("bad_call", str(error))
    except PathError as error:
        return desk.failed(error.kind, str(error))
    except (StoreError, OSError):
        return desk.failed("library_failed", "The library could not be read. Answer from what you have read.")
    return _with_note(result, call, desk.tokens)


def _with_note(result: ToolResult, call: Call, tokens: int) -> ToolResult:
    """Names the arguments that were passed over, where there is room for it."""
    if not call.ignored:
        return result
    text = f"{result.text}\n({call.tool} takes no {', '.join(call.ignored)}.)"
    return replace(result, text=text) if estimate_tokens(text) <= tokens else result
