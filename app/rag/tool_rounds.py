"""The rounds of a turn that offer tools, under the loop guard: until a reply calls for none, no further than the cap.

Owns the ladder's effect on a turn: a batch that repeats itself is not run but told so, the next one ends the rounds.
What a loop is, `app.guard` knows; a single request is `app.rag.asking`'s, a call `app.rag.tool_steps`'. Used by
`app.rag.agent` only.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from app.guard.turn_guard import Call, CallResult, Decision
from app.rag.asking import Asking, Watch, closing
from app.rag.errors import LLMError
from app.rag.pieces import StreamPiece, ToolCallPiece
from app.rag.prompts import LAST_CALL_LINE
from app.rag.tool_calls import Toolbox, ToolResult
from app.rag.tool_steps import ToolSteps


class Guard(Watch, Protocol):
    """Watches the rounds of a turn for repetition: `app.guard.turn_guard.TurnGuard`, or one that also keeps a log."""

    def check(self, calls: Sequence[Call]) -> Decision:
        """Judges the calls of a reply before any of them runs."""
        ...

    def record(self, results: Sequence[CallResult]) -> Decision:
        """Takes the results of the calls that passed, before the model reads them."""
        ...


class ToolRounds:
    """The tool rounds of one turn. `steps` has what was run; `answered` says whether the last reply called for none, so
    that no further request is due."""

    def __init__(self, asking: Asking, toolbox: Toolbox, guard: Guard | None) -> None:
        self.steps = ToolSteps(toolbox)
        self.answered = False
        self._asking = asking
        self._toolbox = toolbox
        self._guard = guard
        self._stopped = False

    async def run(self) -> AsyncGenerator[StreamPiece]:
        """Asks and runs calls in turn.

        Raises:
            LLMError: when a reply cannot be had. A server that takes no tools ends the rounds instead.
        """
        try:
            for round_ in range(1, self._toolbox.max_rounds + 1):
                async with closing(self._asking.request(self._toolbox.definitions)) as pieces:
                    async for piece in pieces:
                        yield piece
                if not self._asking.reply.calls:
                    self.answered = True
                    return
                async with closing(self._batch(last=round_ == self._toolbox.max_rounds)) as pieces:
                    async for piece in pieces:
                        yield piece
                if self._stopped:
                    return
        except LLMError as error:
            if error.code != "tools_unsupported":
                raise
            self._asking.prompt.drop_tools()

    async def _batch(self, *, last: bool) -> AsyncGenerator[StreamPiece]:
        """Runs the calls of the reply, unless the guard says otherwise."""
        reply, rounds = self._asking.reply, self._asking.prompt.rounds
        calls = self.steps.named(reply.calls)
        decision = self._checked(calls)
        if decision.action in ("note", "final"):
            yield _said(decision)
        if decision.action == "final":
            self._stopped = True
            _end_with_last_call(rounds)
            return
        if decision.action == "note":
            texts = [decision.note] * len(calls)
        else:
            async with closing(self.steps.run(calls)) as pieces:
                async for piece in pieces:
                    yield piece
            texts = [result.text for result in self.steps.results]
            recorded = self._recorded(self.steps.results)
            if recorded.action in ("note", "final"):
                yield _said(recorded)
            for at in recorded.positions:
                texts[at] = recorded.note or texts[at]
            self._stopped = recorded.action == "final"
        rounds.extend(self.steps.messages(reply.text, calls, texts, left_out=len(reply.calls) - len(calls)))
        if last or self._stopped:
            _end_with_last_call(rounds)

    def _checked(self, calls: Sequence[ToolCallPiece]) -> Decision:
        if self._guard is None:
            return Decision()
        return self._guard.check([Call(call.name, call.arguments, "read") for call in calls])

    def _recorded(self, results: Sequence[ToolResult]) -> Decision:
        if self._guard is None:
            return Decision()
        return self._guard.record(
            [CallResult(result.text, [passage.chunk_id for passage in result.passages]) for result in results]
        )


def _said(decision: Decision) -> StreamPiece:
    return StreamPiece("notice", data={"code": "loop_guard", "step": decision.action})


def _end_with_last_call(rounds: list[dict[str, Any]]) -> None:
    """The newest message tells the model to answer; without one there is nothing to add it to."""
    if rounds:
        rounds[-1] = {**rounds[-1], "content": f"{rounds[-1]['content']}\n\n{LAST_CALL_LINE}"}
