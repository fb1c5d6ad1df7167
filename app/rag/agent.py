"""One turn with the model: asks, runs the tools it calls for, judges whether a reply answers, asks once more if not.

Owns the order of requests and their count: rounds with tools up to the cap, one forced answer without, at most one
recovery. What a reply is made of is `app.rag.llm`'s, a single request `app.rag.asking`'s, rounds with tools
`app.rag.tool_rounds`', what becomes of the pieces `app.api.run_turn`'s. Called once per turn, grounded or deflected.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from app.rag.asking import Asking, closing
from app.rag.context import Prompt
from app.rag.errors import MalformedReplyError
from app.rag.pieces import ChatFn, DocRef, StreamPiece
from app.rag.tool_calls import Toolbox
from app.rag.tool_rounds import Guard, ToolRounds
from app.rag.turn import TurnStats


@dataclass
class AgentHolder:
    """What the turn did with documents besides the passages it was given."""

    read_docs: list[DocRef] = field(default_factory=list[DocRef])
    tool_calls: int = 0


async def run_agent(
    prompt: Prompt,
    holder: AgentHolder,
    *,
    chat: ChatFn,
    toolbox: Toolbox | None,
    stats: TurnStats,
    guard: Guard | None,
) -> AsyncGenerator[StreamPiece]:
    """Yields content, thinking, retry, tool and notice pieces of the answer; usage goes into `stats`, as do requests
    (`rounds`) and retries; `holder` has the calls run and the documents read.

    With a toolbox, up to `toolbox.max_rounds` requests offer its tools, and the calls of a reply are run before the
    next; a reply without calls is judged. After the last round, without a toolbox, and where the server takes no tools,
    a request offers none, and native calls in its reply are neither run nor shown. Leaked tool syntax is filtered from
    the content (`scaffold_stripped`). The visible texts of rounds are one answer, joined by a blank line; white space
    is held until a reply's first visible character. A last reply without visible text is asked for once more, the
    correction line in the system message; at most once a turn. When the server says that the prompt is too long, it is
    repacked and asked once more (notice `context_trimmed`). The guard is asked before calls run (notice `loop_guard`),
    and ends a reply that repeats itself without end.

    Raises:
        MalformedReplyError: when the second reply holds no visible text either; what earlier rounds said stands.
        LLMError: when the reply cannot be had, or broke off; `loop_guard` when the guard ended it.
    """
    asking = Asking(prompt, chat, stats, guard)
    for requests in (_rounds(asking, toolbox, holder, guard), _recovered(asking, stats)):
        async with closing(requests) as pieces:
            async for piece in pieces:
                yield piece
        if _is_answer(asking):
            return
    raise MalformedReplyError


def _is_answer(asking: Asking) -> bool:
    """The judge: does the last reply show anything? What was stripped, thought or called plays no part."""
    return asking.reply.visible


async def _recovered(asking: Asking, stats: TurnStats) -> AsyncGenerator[StreamPiece]:
    async with closing(asking.request(None, correct=True)) as pieces:
        async for piece in pieces:
            yield piece
    stats.recovered = _is_answer(asking)


async def _rounds(
    asking: Asking, toolbox: Toolbox | None, holder: AgentHolder, guard: Guard | None
) -> AsyncGenerator[StreamPiece]:
    """Everything before the judge: rounds with tools, and unless one of them answered, a request without."""
    if toolbox is not None:
        rounds = ToolRounds(asking, toolbox, guard)
        try:
            async with closing(rounds.run()) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            holder.tool_calls, holder.read_docs = rounds.steps.count, list(rounds.steps.read)
        if rounds.answered:
            return
    async with closing(asking.request(None)) as pieces:
        async for piece in pieces:
            yield piece
