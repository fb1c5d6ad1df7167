"""The agent under the loop guard: a batch that repeats itself is not run, then an answer is forced."""

import pytest

from app.guard.turn_guard import TurnGuard
from app.rag.context import Prompt
from app.rag.pieces import StreamPiece
from app.rag.prompts import LAST_CALL_LINE
from app.rag.tool_calls import ToolResult
from app.rag.turn import TurnStats
from tests.unit.rag.test_agent import ScriptedChat, content
from tests.unit.rag.test_agent_tools import DEFINITIONS, Played, ScriptedToolbox, call, prompt, stats, tools_of

__all__ = ["prompt", "stats"]  # fixtures

FINAL = StreamPiece("notice", data={"code": "loop_guard", "step": "final"})
NOTE = StreamPiece("notice", data={"code": "loop_guard", "step": "note"})


def results(chat: ScriptedChat, request: int) -> list[str]:
    return [message["content"] for message in chat.requests[request][0] if message["role"] == "tool"]


def test_the_third_same_batch_is_told_and_the_next_ends_the_rounds(prompt: Prompt, stats: TurnStats) -> None:
    """Two runs, a note in place of the third's result, then the forced answer from what was read."""
    toolbox = ScriptedToolbox(max_rounds=9, result=ToolResult("The same.", "1 line"))
    chat = ScriptedChat(*[[call()]] * 4, [content("An answer [1].")])
    played = Played(chat, prompt, stats, toolbox, guard=TurnGuard("note"))
    assert played.text == "An answer [1]."
    assert tools_of(chat) == [DEFINITIONS] * 4 + [None]
    assert (len(toolbox.calls), played.holder.tool_calls) == (2, 2)
    assert [piece for piece in played.pieces if piece.kind == "notice"] == [NOTE, FINAL]
    told = results(chat, 3)
    assert told[:2] == ["The same."] * 2
    assert told[2].startswith("[Docent loop guard] Not run: ")
    assert results(chat, 4) == [*told[:2], f"{told[2]}\n\n{LAST_CALL_LINE}"]


def test_in_mode_refuse_the_first_trip_forces_the_answer(prompt: Prompt, stats: TurnStats) -> None:
    """Without a note."""
    toolbox = ScriptedToolbox(max_rounds=9, result=ToolResult("The same.", "1 line"))
    chat = ScriptedChat(*[[call()]] * 3, [content("An answer.")])
    played = Played(chat, prompt, stats, toolbox, guard=TurnGuard("refuse"))
    assert (played.text, len(toolbox.calls)) == ("An answer.", 2)
    assert [piece for piece in played.pieces if piece.kind == "notice"] == [FINAL]


def test_off_watches_nothing(prompt: Prompt, stats: TurnStats) -> None:
    """The cap alone ends the rounds."""
    toolbox = ScriptedToolbox(max_rounds=5, result=ToolResult("The same.", "1 line"))
    chat = ScriptedChat(*[[call()]] * 5, [content("An answer.")])
    played = Played(chat, prompt, stats, toolbox, guard=TurnGuard("off"))
    assert (played.text, len(toolbox.calls)) == ("An answer.", 5)


def test_a_loop_before_anything_was_read_ends_in_an_answer_too(prompt: Prompt, stats: TurnStats) -> None:
    """No result to add a line to."""
    chat = ScriptedChat([call()], [content("An answer.")])
    played = Played(chat, prompt, stats, ScriptedToolbox(), guard=TurnGuard("refuse", strikes=0))
    assert (played.text, tools_of(chat)) == ("An answer.", [DEFINITIONS, None])
    assert chat.requests[1][0] == prompt.messages


def test_the_same_search_in_other_words_is_told_then_ends(prompt: Prompt, stats: TurnStats) -> None:
    """The second brings a note, the third the forced answer."""
    asked = ['{"query": "raid rebuild time"}', '{"query": "Rebuild time, RAID"}', '{"query": "time raid rebuild"}']
    chat = ScriptedChat(*[[call("search", one)] for one in asked], [content("Nine hours [1].")])
    toolbox = ScriptedToolbox()
    played = Played(chat, prompt, stats, toolbox, guard=TurnGuard("note"))
    assert (played.text, len(toolbox.calls)) == ("Nine hours [1].", 1)
    assert [piece for piece in played.pieces if piece.kind == "notice"] == [NOTE, FINAL]


@pytest.mark.parametrize("mode", ["note", "refuse"])
def test_text_that_has_run_away_ends_the_turn_and_stays(mode: str, prompt: Prompt, stats: TurnStats) -> None:
    """The endpoint's stream is closed; the error has its own code."""
    block = "The same eighty characters are said again and again by a model that has lost its way. "
    chat = ScriptedChat([content(block) for _ in range(40)])
    guard = TurnGuard(mode)  # type: ignore[arg-type]
    played = Played(chat, prompt, stats, ScriptedToolbox(), guard=guard)
    assert played.error is not None
    assert played.error.code == "loop_guard"
    assert played.text.startswith(block)
    assert len(played.text) < len(block) * 12
    assert (chat.closed, guard.outcome) == (1, "abort")
