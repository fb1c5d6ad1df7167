"""One turn with the model: asks, runs the tools it calls for, judges whether a reply answers, asks once more if not.

Owns the order of requests and their count: rounds with tools up to the cap, one forced answer without, at most one
recovery. What a reply is made of is `app.rag.llm`'s, a single request `app.rag.asking`'s, a call `app.rag.tool_steps`',
what becomes of the pieces `app.api.run_turn`'s. Called once per turn, grounded or deflected.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from app.rag.asking import Asking, closing
from app.rag.context import Prompt
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.pieces import ChatFn, DocRef, StreamPiece
from app.rag.tool_calls import Toolbox
from app.rag.tool_steps import ToolSteps
from app.rag.turn import TurnStats


class Guard(Protocol):
    """Watches the rounds of a turn for repetition."""


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
    repacked and asked once more (notice `context_trimmed`).

    Raises:
        MalformedReplyError: when the second reply holds no visible text either; what earlier rounds said stands.
        LLMError: when the reply cannot be had, or broke off.
    """
    asking = Asking(prompt, chat, stats)
    rounds = asking.request(None) if toolbox is None else _with_tools(asking, toolbox, holder)
    for requests in (rounds, _recovered(asking, stats)):
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


async def _with_tools(asking: Asking, toolbox: Toolbox, holder: AgentHolder) -> AsyncGenerator[StreamPiece]:
    """Rounds until a reply calls for no tool; at the cap, and where tools are refused, one request without."""
    steps = ToolSteps(toolbox)
    try:
        for round_ in range(1, toolbox.max_rounds + 1):
            async with closing(asking.request(toolbox.definitions)) as pieces:
                async for piece in pieces:
                    yield piece
            if not asking.reply.calls:
                return
            last = round_ == toolbox.max_rounds
            running = steps.run(asking.reply.text, asking.reply.calls, asking.prompt.rounds, last=last)
            async with closing(running) as pieces:
                async for piece in pieces:
                    holder.tool_calls, holder.read_docs = steps.count, list(steps.read)
                    yield piece
            holder.tool_calls, holder.read_docs = steps.count, list(steps.read)
    except LLMError as error:
        if error.code != "tools_unsupported":
            raise
        asking.prompt.drop_tools()
    async with closing(asking.request(None)) as pieces:
        async for piece in pieces:
            yield piece
