"""A follow-up worded by the model: what it is asked, and which replies are taken for a question."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import pytest

from app.rag.errors import LLMError
from app.rag.pieces import ChatMessages, ContentFilter, StreamPiece, ToolCallPiece
from app.rag.prompts import PastTurn
from app.rag.rewriting import MAX_CHARS, REWRITE_PROMPT, rewrite_messages, rewritten, usable

PAST = [PastTurn(f"Question {n}?", f"Answer {n} [1]. " + "word " * 200) for n in range(5)]
USAGE = StreamPiece("usage", data={"finish_reason": "stop"})


class Model:
    """Plays pieces, through the filter as the client does."""

    def __init__(self, *steps: StreamPiece | ToolCallPiece | Exception | float) -> None:
        self.steps = steps
        self.closed = 0

    async def __call__(
        self,
        messages: ChatMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        content_filter: ContentFilter | None = None,
    ) -> AsyncGenerator[StreamPiece | ToolCallPiece]:
        assert tools is None
        assert content_filter is not None
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, float | int):
                    await asyncio.sleep(step)
                elif isinstance(step, StreamPiece) and step.kind == "content":
                    yield StreamPiece("content", content_filter.feed(step.text))
                else:
                    yield step
            yield StreamPiece("content", content_filter.flush())
        finally:
            self.closed += 1


def content(text: str) -> StreamPiece:
    return StreamPiece("content", text)


def said(*steps: StreamPiece | ToolCallPiece | Exception | float, limit_s: float = 5.0) -> str | None:
    model = Model(*steps)
    reply = asyncio.run(rewritten("And on Sundays?", PAST, model, limit_s=limit_s))
    assert model.closed == 1
    return reply


def test_the_model_is_asked_with_the_last_turns_in_one_line_each() -> None:
    """The prompt is pinned; answers lose their markers and most of their length."""
    system, user = rewrite_messages("And on\nSundays?", PAST)
    assert system == {"role": "system", "content": REWRITE_PROMPT}
    lines = user["content"].splitlines()
    assert [line for line in lines if line.startswith("Question:")] == [f"Question: Question {n}?" for n in (2, 3, 4)]
    assert lines[-1] == "Last question: And on Sundays?"
    assert "[1]" not in user["content"]
    assert len(user["content"]) < 1300


def test_the_reply_is_the_query() -> None:
    """Also one that was thought about first."""
    assert said(content("When do backups "), content("run on Sundays?"), USAGE) == "When do backups run on Sundays?"
    assert said(StreamPiece("thinking", "Hm."), content(" “Backups on Sundays” \n"), USAGE) == "Backups on Sundays"


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (content("   "),),
        (content("Two\nlines"),),
        (content("x" * (MAX_CHARS + 1)),),
        (content("?!"),),
        (content('When <tool_call>{"name": "search"}</tool_call> on Sundays?'),),
        (ToolCallPiece(0, "a", "search", "{}"),),
        (content("When do"), StreamPiece("usage", data={"finish_reason": "length"})),
        (LLMError("llm_unavailable"),),
        (content("When do"), LLMError("llm_incomplete")),
    ],
)
def test_anything_doubtful_is_no_question(steps: tuple[Any, ...]) -> None:
    """Empty, several lines, too long, no word, tool syntax, a call, cut, failed: the rules do it then."""
    assert said(*steps) is None


def test_a_slow_model_is_not_waited_for() -> None:
    """The request is closed at the end of its own clock."""
    assert said(10.0, content("When?"), limit_s=0.05) is None


def test_quotation_marks_around_a_reply_are_not_searched() -> None:
    """Inner ones are."""
    assert usable('"the "blue" disk"') == 'the "blue" disk'
    assert usable("'disk") == "'disk"
