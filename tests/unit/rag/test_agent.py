"""The agent: one reply is asked for, passed on, counted and judged."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from app.catalog import load_catalog
from app.rag.agent import AgentHolder, run_agent
from app.rag.context import Prompt, pack
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.gate import Gate
from app.rag.pieces import ChatMessages, ContentFilter, StreamPiece, ToolCallPiece
from app.rag.prompts import CORRECTION_LINE, PastTurn, parse_passages
from app.rag.space import space_of
from app.rag.turn import TurnStats
from app.search.hits import Hit
from app.settings import Settings

Step = StreamPiece | ToolCallPiece | Exception


class ScriptedChat:
    """A model that plays one list of steps per request and remembers how it was asked and closed."""

    def __init__(self, *replies: Sequence[Step]) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[list[Mapping[str, Any]], object]] = []
        self.filters: list[ContentFilter] = []
        self.closed = 0

    async def __call__(
        self, messages: ChatMessages, *, tools: object, content_filter: ContentFilter | None = None
    ) -> AsyncIterator[StreamPiece | ToolCallPiece]:
        assert content_filter is not None
        self.requests.append((list(messages), tools))
        self.filters.append(content_filter)
        try:
            for step in self.replies.pop(0):
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, StreamPiece) and step.kind == "content":
                    step = StreamPiece("content", content_filter.feed(step.text))
                yield step
            yield StreamPiece("content", content_filter.flush())
        finally:
            self.closed += 1


def content(text: str) -> StreamPiece:
    return StreamPiece("content", text)


USAGE = StreamPiece("usage", data={"prompt_tokens": 90, "completion_tokens": 7, "finish_reason": "stop"})


@pytest.fixture
def prompt(settings: Settings) -> Prompt:
    hits = tuple(Hit(n, 1, 1, "a.md", "", "", None, f"text {n}", 0, 6, 1, 1, 0.9, 1, None) for n in range(1, 5))
    return pack(Gate("grounded", hits, (), 0.9, 1, "q"), "q?", [PastTurn("q0", "a0")], space_of(settings), documents=1)


@pytest.fixture
def stats() -> TurnStats:
    return TurnStats(turn="t", chat=1, user=1)


def play(
    chat: ScriptedChat, prompt: Prompt, stats: TurnStats, seen: list[StreamPiece] | None = None
) -> list[StreamPiece]:
    pieces: list[StreamPiece] = [] if seen is None else seen
    holder = AgentHolder()

    async def run() -> None:
        async for piece in run_agent(prompt, holder, chat=chat, toolbox=None, stats=stats, guard=None):
            pieces.append(piece)

    asyncio.run(run())
    assert holder == AgentHolder([], 0)
    return pieces


def test_a_reply_is_passed_on_and_counted(prompt: Prompt, stats: TurnStats) -> None:
    """Content, thinking, retries and notices reach the caller; usage goes into the numbers."""
    pieces = [
        StreamPiece("retry", data={"attempt": 1}),
        StreamPiece("notice", data={"code": "model_loading"}),
        StreamPiece("thinking", "hm"),
        StreamPiece("thinking", ""),
        content("It is"),
        content(""),
        content(" so [1]."),
    ]
    chat = ScriptedChat([*pieces, USAGE])
    assert play(chat, prompt, stats) == [piece for piece in pieces if piece.text or piece.data]
    assert chat.requests == [(prompt.messages, None)]
    assert (stats.rounds, stats.retries, stats.prompt_tokens, stats.completion_tokens) == (1, 1, 90, 7)
    assert stats.finish_reason == "stop"
    assert chat.closed == 1


def test_white_space_is_held_until_something_is_visible(prompt: Prompt, stats: TurnStats) -> None:
    """The first delta holds a visible character and loses nothing."""
    chat = ScriptedChat([content("\n"), StreamPiece("thinking", "hm"), content("  "), content("a"), content(" ")])
    assert play(chat, prompt, stats) == [StreamPiece("thinking", "hm"), content("\n  a"), content(" ")]


CALL = "<|tool_call_start|>[read(path='/a.md')]<|tool_call_end|>"
EMPTY_REPLIES: list[list[Step]] = [
    [],
    [content(""), content(" \n")],
    [content(CALL + "\n"), USAGE],
    [StreamPiece("thinking", "only thoughts"), USAGE],
    [ToolCallPiece(0, "c1", "read", '{"path": "a.md"}')],
]


@pytest.mark.parametrize("reply", EMPTY_REPLIES)
def test_two_replies_without_visible_text_are_malformed(reply: list[Step], prompt: Prompt, stats: TurnStats) -> None:
    """Blank, thoughts only, scaffolding, or a native call that nobody offered: no delta, and the error."""
    seen: list[StreamPiece] = []
    chat = ScriptedChat(reply, reply, [content("A third reply is never asked for.")])
    with pytest.raises(MalformedReplyError) as caught:
        play(chat, prompt, stats, seen)
    assert caught.value.code == "malformed_reply"
    assert [piece for piece in seen if piece.kind != "thinking"] == []
    assert (stats.rounds, stats.recovered) == (2, False)
    assert chat.closed == 2


@pytest.mark.parametrize("reply", EMPTY_REPLIES)
def test_one_recovery_asks_without_tools_and_with_the_correction(
    reply: list[Step], prompt: Prompt, stats: TurnStats
) -> None:
    """Same messages, one system message, the correction at its end, a filter of its own; then the answer stands."""
    chat = ScriptedChat(reply, [content("Thirty days [1]."), USAGE])
    pieces = play(chat, prompt, stats)
    assert [piece.text for piece in pieces if piece.kind == "content"] == ["Thirty days [1]."]
    (first, _), (second, tools) = chat.requests
    assert tools is None
    assert [message["role"] for message in second].count("system") == 1
    assert second[0]["content"] == f"{first[0]['content']}\n\n{CORRECTION_LINE}"
    assert second[1:] == first[1:]
    assert chat.filters[0] is not chat.filters[1]
    assert (stats.rounds, stats.recovered) == (2, True)


def test_scaffolding_beside_an_answer_needs_no_recovery(prompt: Prompt, stats: TurnStats) -> None:
    """The clean text stands, and what was removed is counted, delimiters included."""
    chat = ScriptedChat([content("It is so [1]. "), content(CALL[:7]), content(CALL[7:]), USAGE])
    pieces = play(chat, prompt, stats)
    assert "".join(piece.text for piece in pieces) == "It is so [1]. "
    assert (stats.rounds, stats.recovered, stats.scaffold_stripped) == (1, False, len(CALL))


def test_what_was_stripped_counts_over_all_requests_and_failures(prompt: Prompt, stats: TurnStats) -> None:
    """Also when the second request breaks off."""
    chat = ScriptedChat([content(CALL)], [content(CALL + "x"), LLMError("llm_incomplete")])
    with pytest.raises(LLMError):
        play(chat, prompt, stats)
    assert stats.scaffold_stripped == 2 * len(CALL)


def test_native_calls_beside_text_are_neither_run_nor_shown(prompt: Prompt, stats: TurnStats) -> None:
    """No tools were offered."""
    chat = ScriptedChat([content("So."), ToolCallPiece(0, "c1", "read", "{}")])
    assert play(chat, prompt, stats) == [content("So.")]
    assert stats.tool_calls == 0


def test_an_overflow_is_repacked_and_asked_once_more(prompt: Prompt, stats: TurnStats) -> None:
    """With fewer passages; the reader is told, and both requests count."""
    chat = ScriptedChat([LLMError("context_overflow", provider_status=400)], [content("So [1]."), USAGE])
    assert play(chat, prompt, stats) == [StreamPiece("notice", data={"code": "context_trimmed"}), content("So [1].")]
    assert [len(parse_passages(messages)) for messages, _ in chat.requests] == [4, 2]
    assert stats.rounds == 2


def test_a_second_overflow_ends_the_turn_with_a_code_the_page_knows(prompt: Prompt, stats: TurnStats) -> None:
    """Nothing more can be given up."""
    overflow = LLMError("context_overflow", provider_status=413)
    chat = ScriptedChat([overflow], [overflow])
    with pytest.raises(LLMError) as caught:
        play(chat, prompt, stats)
    assert (caught.value.code, caught.value.reason, caught.value.provider_status) == ("llm_rejected", "context", 413)
    assert caught.value.setting == "LLM_CONTEXT_TOKENS"
    assert "LLM_CONTEXT_TOKENS" in load_catalog().t(f"errors.{caught.value.code}.{caught.value.reason}")
    assert not caught.value.retryable
    assert stats.rounds == 2


def test_other_failures_pass_unchanged(prompt: Prompt, stats: TurnStats) -> None:
    """And what was shown before stays with the caller."""
    failure = LLMError("llm_incomplete")
    seen: list[StreamPiece] = []
    with pytest.raises(LLMError) as caught:
        play(ScriptedChat([content("So"), failure]), prompt, stats, seen)
    assert caught.value is failure
    assert seen == [content("So")]
    assert stats.rounds == 1


def test_an_abandoned_turn_closes_the_models_stream(prompt: Prompt, stats: TurnStats) -> None:
    """Stop closes the agent, and with it the request to the endpoint, at once."""
    chat = ScriptedChat([content("a"), content("b")])

    async def run() -> None:
        pieces = run_agent(prompt, AgentHolder(), chat=chat, toolbox=None, stats=stats, guard=None)
        assert await anext(pieces) == content("a")
        await pieces.aclose()
        assert chat.closed == 1

    asyncio.run(run())


def test_a_stream_that_is_no_generator_is_read_too(prompt: Prompt, stats: TurnStats) -> None:
    """A ChatFn promises an iterator, nothing more."""

    class Once:
        def __init__(self) -> None:
            self.left = [content("a")]

        def __aiter__(self) -> "Once":
            return self

        async def __anext__(self) -> StreamPiece:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    chat: Callable[..., Any] = lambda messages, *, tools, content_filter=None: Once()  # noqa: E731
    assert play(chat, prompt, stats) == [content("a")]  # type: ignore[arg-type]
