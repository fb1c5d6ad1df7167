"""The usual way to answer a turn: search, pack what was found, ask the agent. Used by `app.api.run_turn`.

Owns the order of these; the other ways are `app.api.turn_whole`'s.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from app.api.turn_query import Found, found
from app.api.turn_start import TurnRequest, TurnStart, count_searched
from app.api.turn_tools import make_toolbox, offered_tools
from app.api.turn_window import TurnWindow
from app.edge.deps import Services
from app.rag.agent import AgentHolder, run_agent
from app.rag.context import Prompt, pack
from app.rag.gate import NOT_SEARCHED, Gate
from app.rag.pieces import ChatFn, StreamPiece
from app.rag.tool_calls import Toolbox
from app.rag.tool_rounds import Guard
from app.rag.turn import TurnStats


class TurnWay(Protocol):
    """How a turn is answered: what retrieval gave (or stands for it), the prompt, live, and the answer's pieces."""

    @property
    def gate(self) -> Gate:
        """What was found."""
        ...

    @property
    def prompt(self) -> Prompt:
        """The prompt of the answer; its passages are what may be cited."""
        ...

    @property
    def toolbox(self) -> Toolbox | None:
        """The tools the model may use."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the receipt keeps, as it stands."""
        ...

    @property
    def is_told(self) -> bool:
        """Whether Docent itself says the answer, so that nothing is to be said about what a model left out."""
        ...

    def pieces(
        self, holder: AgentHolder, *, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        """The answer, as `agent.run_agent` gives it."""
        ...


class SearchedTurn:
    """A turn that is answered from the best passages."""

    is_told = False

    def __init__(self, by: Found, prompt: Prompt, toolbox: Toolbox | None, searched: int) -> None:
        """`searched` is the number of documents in which nothing was close enough, else 0."""
        self.gate = by.gate
        self.facts: Mapping[str, Any] = {**by.facts, "documents": searched} if searched else by.facts
        self.prompt = prompt
        self.toolbox = toolbox

    def pieces(
        self, holder: AgentHolder, *, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        """The agent's."""
        return run_agent(self.prompt, holder, chat=chat, toolbox=self.toolbox, stats=stats, guard=guard)


async def searched_turn(services: Services, request: TurnRequest, start: TurnStart, window: TurnWindow) -> SearchedTurn:
    """Searches, unless the turn was asked for without documents, and packs.

    Raises:
        RetrievalError: when the search fails.
    """
    asked = start.asked
    by = Found(NOT_SEARCHED) if request.without_documents else await found(services, request, start)
    gate = by.gate
    searched = 0
    if gate.mode == "deflected" and gate.searched:
        searched = await services.database.aread(
            lambda session: count_searched(session, request.user_id, asked.filters)
        )
    tools = offered_tools(services, start, gate)
    space = await window.space()
    prompt = pack(gate, asked.question_plain, start.history, space, documents=searched, tools=tools)
    return SearchedTurn(by, prompt, make_toolbox(services, request, start, prompt), searched)
