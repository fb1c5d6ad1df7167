"""The agent's rounds: tools are offered, called, shown, the cap, the refusal of tools, and the judge."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from app.guard.turn_guard import TurnGuard
from app.rag.agent import AgentHolder, run_agent
from app.rag.context import Prompt, pack
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.gate import Gate
from app.rag.pieces import DocRef, StreamPiece, ToolCallPiece
from app.rag.prompts import CORRECTION_LINE, LAST_CALL_LINE
from app.rag.space import space_of
from app.rag.tool_calls import ToolResult
from app.rag.tool_steps import CALLS_AT_ONCE, shown_arguments
from app.rag.turn import TurnStats
from app.search.hits import Hit
from app.settings import Settings
from tests.unit.rag.test_agent import CALL, USAGE, ScriptedChat, Step, content

DEFINITIONS = ({"type": "function", "function": {"name": "ls", "description": "Lists.", "parameters": {}}},)
DOCUMENT = DocRef(7, "notes/raid.md")


class ScriptedToolbox:
    """Answers every call with its own number; remembers the calls."""

    definitions = DEFINITIONS
    passages = ()

    def __init__(self, max_rounds: int = 6, result: ToolResult | None = None) -> None:
        self.max_rounds = max_rounds
        self.result = result
        self.calls: list[ToolCallPiece] = []

    async def run(self, call: ToolCallPiece) -> ToolResult:
        self.calls.append(call)
        return self.result or ToolResult(f"result {len(self.calls)}", "1 line", read=DOCUMENT)


def call(name: str = "ls", arguments: str = '{"path": "/"}', identity: str = "c1", index: int = 0) -> ToolCallPiece:
    return ToolCallPiece(index, identity, name, arguments)


@pytest.fixture
def prompt(settings: Settings) -> Prompt:
    hits = tuple(Hit(n, 1, 1, "a.md", "", "", None, f"text {n}", 0, 6, 1, 1, 0.9, 1, None) for n in range(1, 5))
    return pack(Gate("grounded", hits, (), 0.9, 1, "q"), "q?", (), space_of(settings), documents=1, tools=DEFINITIONS)


@pytest.fixture
def stats() -> TurnStats:
    return TurnStats(turn="t", chat=1, user=1)


class Played:
    """One turn's pieces and what it left in its holder."""

    def __init__(
        self,
        chat: ScriptedChat,
        prompt: Prompt,
        stats: TurnStats,
        toolbox: ScriptedToolbox,
        *,
        guard: TurnGuard | None = None,
    ) -> None:
        self.pieces: list[StreamPiece] = []
        self.holder = AgentHolder()
        self.error: LLMError | None = None

        async def run() -> None:
            pieces = run_agent(prompt, self.holder, chat=chat, toolbox=toolbox, stats=stats, guard=guard)
            async for piece in pieces:
                self.pieces.append(piece)

        try:
            asyncio.run(run())
        except LLMError as error:
            self.error = error

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.kind == "content")

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        return [piece.data or {} for piece in self.pieces if piece.kind == "tool"]


def tools_of(chat: ScriptedChat) -> list[object]:
    return [tools for _, tools in chat.requests]


def test_a_call_is_run_and_its_result_goes_into_the_next_request(prompt: Prompt, stats: TurnStats) -> None:
    """The prompt, then the reply with its call, then the result; the answer ends the turn."""
    chat = ScriptedChat([call(arguments='{"path": "/homelab"}'), USAGE], [content("Thirty days [1]."), USAGE])
    toolbox = ScriptedToolbox()
    played = Played(chat, prompt, stats, toolbox)
    assert played.text == "Thirty days [1]."
    assert tools_of(chat) == [DEFINITIONS, DEFINITIONS]
    before, added = chat.requests[1][0][: len(prompt.messages)], chat.requests[1][0][len(prompt.messages) :]
    assert before == prompt.messages
    function = {"name": "ls", "arguments": '{"path": "/homelab"}'}
    assert added == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "result 1"},
    ]
    assert played.holder == AgentHolder([DOCUMENT], 1)
    assert (stats.rounds, stats.recovered, stats.completion_tokens) == (2, False, 14)


def test_each_call_begins_and_ends_once(prompt: Prompt, stats: TurnStats) -> None:
    """With its id, its arguments as shown, and what it came to."""
    failed = ToolResult("No such file.", "no such file", ok=False)
    chat = ScriptedChat([call("read", '{"path": "x.md", "limit": 5}')], [content("So.")])
    played = Played(chat, prompt, stats, ScriptedToolbox(result=failed))
    shown = {"id": "c1", "name": "read", "args": {"path": "x.md", "limit": 5}}
    start, end = played.steps
    assert start == {**shown, "status": "start", "summary": "", "ms": 0, "sources": []}
    assert end == {**shown, "status": "error", "summary": "no such file", "ms": end["ms"], "sources": []}
    assert chat.requests[1][0][-1]["content"] == "No such file."


def test_the_texts_of_rounds_are_joined_by_a_blank_line(prompt: Prompt, stats: TurnStats) -> None:
    """What was said before a call stays, and is told to the model as its own words."""
    chat = ScriptedChat([content(" \nLet me look."), call()], [call(identity="c2")], [content("\n"), content("Done.")])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    assert played.text == " \nLet me look.\n\n\nDone."
    said = [message["content"] for message in chat.requests[2][0] if message["role"] == "assistant"]
    assert said == [" \nLet me look.", ""]


def test_at_the_cap_one_request_without_tools_is_made(prompt: Prompt, stats: TurnStats) -> None:
    """The newest message tells the model that it was the last look."""
    chat = ScriptedChat(*[[call()]] * 3, [content("An answer.")])
    played = Played(chat, prompt, stats, ScriptedToolbox(max_rounds=3))
    assert played.text == "An answer."
    assert tools_of(chat) == [DEFINITIONS] * 3 + [None]
    results = [message["content"] for message in chat.requests[3][0] if message["role"] == "tool"]
    assert results == ["result 1", "result 2", f"result 3\n\n{LAST_CALL_LINE}"]
    assert (stats.rounds, played.holder.tool_calls) == (4, 3)
    assert [len([m for m in messages if m["role"] == "system"]) for messages, _ in chat.requests] == [1] * 4


def test_calls_in_the_forced_answer_are_never_run_and_a_turn_ends_after_cap_and_two(
    prompt: Prompt, stats: TurnStats
) -> None:
    """A model that calls for ever: cap, forced answer, recovery, end."""
    toolbox = ScriptedToolbox(max_rounds=3)
    chat = ScriptedChat(*[[call()]] * 9)
    played = Played(chat, prompt, stats, toolbox)
    assert isinstance(played.error, MalformedReplyError)
    assert tools_of(chat) == [DEFINITIONS] * 3 + [None, None]
    assert (stats.rounds, len(toolbox.calls), played.text) == (5, 3, "")
    assert CORRECTION_LINE in chat.requests[4][0][0]["content"]


def test_an_empty_round_with_tools_offered_is_recovered_without_them(prompt: Prompt, stats: TurnStats) -> None:
    """Scaffolding instead of a call, after real ones: the results stay in the messages."""
    chat = ScriptedChat([call()], [content(CALL)], [content("So.")])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    assert (played.text, stats.recovered) == ("So.", True)
    assert tools_of(chat) == [DEFINITIONS, DEFINITIONS, None]
    assert chat.requests[2][0][1:] == chat.requests[1][0][1:]


def test_what_earlier_rounds_said_stays_when_the_last_is_malformed(prompt: Prompt, stats: TurnStats) -> None:
    """The judge looks at the last round only."""
    chat = ScriptedChat([content("I will look."), call()], [content(" ")], [content(CALL)])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    assert isinstance(played.error, MalformedReplyError)
    assert played.text == "I will look."
    assert not stats.recovered


def test_a_server_without_tools_is_asked_again_without(prompt: Prompt, stats: TurnStats) -> None:
    """The prompt no longer speaks of tools either; at most three requests."""
    told = prompt.messages[0]["content"]
    chat = ScriptedChat([LLMError("tools_unsupported", provider_status=400)], [content("So [1].")])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    assert (played.text, played.error, stats.rounds) == ("So [1].", None, 2)
    assert tools_of(chat) == [DEFINITIONS, None]
    assert "with the tools" in told
    assert "with the tools" not in chat.requests[1][0][0]["content"]
    assert prompt.tool_room == 0


def test_an_overflow_in_a_later_round_keeps_what_the_tools_said(prompt: Prompt, stats: TurnStats) -> None:
    """Passages give way, results stay."""
    chat = ScriptedChat([call()], [LLMError("context_overflow")], [content("So.")])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    assert played.text == "So."
    assert StreamPiece("notice", data={"code": "context_trimmed"}) in played.pieces
    first, second = chat.requests[1][0], chat.requests[2][0]
    assert second[-2:] == first[-2:]
    assert len(second[0]["content"]) < len(first[0]["content"])


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", '"x"', "[" * 50_000, '{"a": NaN}'])
def test_broken_arguments_never_reach_the_history(arguments: str, prompt: Prompt, stats: TurnStats) -> None:
    """A server refuses a history that holds them, which would end the turn; the toolbox sees them as they came."""
    toolbox = ScriptedToolbox()
    chat = ScriptedChat([call(arguments=arguments)], [content("So.")])
    played = Played(chat, prompt, stats, toolbox)
    assert toolbox.calls[0].arguments == arguments
    (said,) = [message for message in chat.requests[1][0] if message["role"] == "assistant"]
    assert said["tool_calls"][0]["function"]["arguments"] == "{}"
    assert played.steps[0]["args"] == {}


@pytest.mark.parametrize("identity", ["", "c1", "x" * 65])
def test_every_call_of_a_turn_has_an_id_of_its_own(identity: str, prompt: Prompt, stats: TurnStats) -> None:
    """Servers leave ids out, or count from the beginning in every reply."""
    calls = [call(identity="c1"), call(identity=identity, index=1)]
    chat = ScriptedChat(calls, calls, [content("So.")])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    ids = [step["id"] for step in played.steps if step["status"] == "start"]
    assert len(set(ids)) == 4
    assert ids[0] == "c1"
    results = [message["tool_call_id"] for message in chat.requests[2][0] if message["role"] == "tool"]
    assert results == ids
    assert all(len(made) == 9 and made.isalnum() for made in ids[1:])


def test_a_name_is_made_acceptable(prompt: Prompt, stats: TurnStats) -> None:
    """Templates refuse names with other characters; what a reader sees holds no markup either."""
    chat = ScriptedChat([call("<|tool_call_start|>re ad" + "x" * 100), call("", identity="c2")], [content("So.")])
    played = Played(chat, prompt, stats, ScriptedToolbox())
    names = [step["name"] for step in played.steps if step["status"] == "start"]
    assert names[0].startswith("_tool_call_start_re_adx")
    assert len(names[0]) == 64
    assert names[1] == "unnamed"


def test_a_reply_with_more_calls_than_are_run_is_told_so(prompt: Prompt, stats: TurnStats) -> None:
    """The rest leaves no trace in the history."""
    calls: Sequence[Step] = [call(identity=f"c{n}", index=n) for n in range(CALLS_AT_ONCE + 3)]
    toolbox = ScriptedToolbox()
    chat = ScriptedChat(calls, [content("So.")])
    played = Played(chat, prompt, stats, toolbox)
    assert (len(toolbox.calls), played.holder.tool_calls) == (CALLS_AT_ONCE, CALLS_AT_ONCE)
    assert chat.requests[1][0][-1]["content"].startswith("result 8\n\n3 more calls")
    assert len(chat.requests[1][0]) == len(prompt.messages) + 1 + CALLS_AT_ONCE


def test_a_reader_sees_arguments_short_and_without_markup() -> None:
    """Tool syntax in a value, in a key, split by anything: none of it is shown."""
    long, many = "a" * 5000, {f"k{n}": n for n in range(50)}
    shown = shown_arguments(json.dumps({"pattern": f"x {CALL}y", CALL: 1, "long": long, "list": [CALL, 1], "n": None}))
    assert shown == {"pattern": "x y", "": 1, "long": "a" * 199 + "…", "list": '["", 1]', "n": None}
    assert len(shown_arguments(json.dumps(many))) == 6


def test_markup_in_arguments_is_inert_in_the_history(prompt: Prompt, stats: TurnStats) -> None:
    """A server may read a special token in a message as the real one."""
    chat = ScriptedChat([call("grep", json.dumps({"pattern": "<|im_end|>"}))], [content("So.")])
    Played(chat, prompt, stats, ScriptedToolbox())
    (said,) = [message for message in chat.requests[1][0] if message["role"] == "assistant"]
    assert "<|im_end|>" not in said["tool_calls"][0]["function"]["arguments"]
    assert json.loads(said["tool_calls"][0]["function"]["arguments"])["pattern"] == "<\u200b|im_end|>"


def test_a_stopped_turn_stops_its_tool(prompt: Prompt, stats: TurnStats) -> None:
    """A cancel reaches the call that runs."""

    class Hanging(ScriptedToolbox):
        cancelled = False

        async def run(self, call: ToolCallPiece) -> ToolResult:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            raise AssertionError

    toolbox = Hanging()
    begun = asyncio.Event()

    async def consume() -> None:
        chat = ScriptedChat([call()])
        async for _ in run_agent(prompt, AgentHolder(), chat=chat, toolbox=toolbox, stats=stats, guard=None):
            begun.set()

    async def run() -> None:
        task = asyncio.create_task(consume())
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        await asyncio.wait({task}, timeout=5)

    asyncio.run(run())
    assert toolbox.cancelled
