"""One scan of a client's conversation: what trips, what passes, and what is said about the newest batch."""

from itertools import cycle, islice
from typing import Any

import pytest

from app.guard.detectors import Limits, Trip
from app.guard.scan import Mode, Verdict, scan
from tests.unit.guard.talk import Message, Talk

MODES: tuple[Mode, ...] = ("note", "refuse")


def detectors(messages: Any, limits: Limits | None = None) -> list[str | None]:
    """What trips in mode note and in mode refuse."""
    verdicts = [scan(messages, limits or Limits(), mode=mode) for mode in MODES]
    assert all(verdict.scanned for verdict in verdicts)
    return [verdict.trip.detector if verdict.trip else None for verdict in verdicts]


PASS = [None, None]
LOOP = ["loop", "loop"]
STAGNATION = ["stagnation", "stagnation"]


def write(talk: Talk, times: int = 1, result: Any = "done") -> Talk:
    for _ in range(times):
        talk.call("write_file", {"path": "a.md"}, result)
    return talk


def say(talk: Talk, times: int, text: str = "Let me check.") -> Talk:
    for _ in range(times):
        talk.say(text)
    return talk


def test_G24_prose_before_the_last_user_message_does_not_count() -> None:
    """Three, a user message, three."""
    assert detectors(say(say(Talk(), 3).user("And?"), 3).messages) == PASS


def test_G19_the_sixth_of_the_same_prose_trips_a_scan() -> None:
    """With its count and limit; five pass."""
    assert detectors(say(Talk(), 5).messages) == PASS
    assert scan(say(Talk(), 6).messages).trip == Trip("stagnation", None, 6, 5)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        Talk().messages,
        None,
        "messages",
        7,
        {"role": "user"},
        [None],
        ["text"],
        [*Talk().messages, 7],
        [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "a", "content": "y"}],
    ],
    ids=str,
)
def test_P25_what_holds_no_rounds_passes(messages: Any) -> None:
    """Empty, a first turn, no list of objects, user and tool only."""
    assert detectors(messages) == PASS


def test_P26_narration_results_and_prose_between_break_no_run() -> None:
    """The third write in a row is the third, whatever was said in between."""
    narrated = Talk()
    for text in ("First I write.", "I write.", "Now I write."):
        narrated.call("write_file", {"path": "a.md"}, text=text)
    spoken = write(write(Talk()).say("Let me see."), 1).say("Hm.")

    assert detectors(narrated.messages) == LOOP
    assert detectors(write(spoken).messages) == LOOP
    assert detectors(write(Talk(), 3, result=None).messages) == LOOP


@pytest.mark.parametrize(
    ("tool", "times", "expected"),
    [("read_file", 3, PASS), ("browser_snapshot", 3, PASS), ("browser_snapshot", 15, PASS), ("snapshot", 16, LOOP)],
)
def test_P27_tools_that_look_have_an_allowance(tool: str, times: int, expected: list[str | None]) -> None:
    """Fifteen with the same result."""
    talk = Talk()
    for _ in range(times):
        talk.call(tool, {"path": "a.md"})

    assert detectors(talk.messages) == expected


@pytest.mark.parametrize(
    ("tools", "times"), [(["write_file", "run_tests"], 100), (["test", "test", "write_file"], 120)]
)
def test_P28_working_in_turns_passes(tools: list[str], times: int) -> None:
    """Write, test, write, test is how work is done."""
    talk = Talk()
    for name in islice(cycle(tools), times):
        talk.call(name)

    assert detectors(talk.messages) == PASS


def test_P29_a_build_that_the_user_asks_for_each_time_passes() -> None:
    """Unprompted, the third trips."""
    asked, alone = Talk(), Talk()
    for _ in range(3):
        asked.user("Build it.").call("build")
        alone.call("build")

    assert detectors(asked.messages) == PASS
    assert detectors(alone.messages) == LOOP


def test_P30_reading_begins_anew_with_every_user_message() -> None:
    """Fifteen, a user message, fourteen."""
    talk = Talk()
    for count in (15, 14):
        talk.user("Read it.")
        for _ in range(count):
            talk.call("read_file", {"path": "a.md"})

    assert detectors(talk.messages) == PASS


def test_P31_a_loop_that_the_user_has_answered_is_over() -> None:
    """It trips until then and never after."""
    talk = write(Talk(), 6)
    assert detectors(talk.messages) == LOOP

    assert detectors(talk.user("Stop that.").messages) == PASS
    assert detectors(talk.say("Sorry.").messages) == PASS


@pytest.mark.parametrize("role", ["system", "developer", "function", "", None, 7, ["user"]])
def test_a_message_of_any_other_role_breaks_the_run(role: Any) -> None:
    """And clears the prose. The count begins anew behind it."""
    talk = write(say(Talk(), 5), 2)
    talk.messages.append({"role": role, "content": "x"})

    assert detectors(say(write(talk, 2), 5).messages) == PASS
    assert detectors(write(talk).messages) == LOOP


def odd(shape: str, messages: list[Message]) -> list[Message]:
    """The conversation with something odd in it that changes nothing."""
    match shape:
        case "system first":
            return [{"role": "system", "content": "You are an assistant."}, *messages]
        case "odd content before":
            return [{"role": "user", "content": [None, 7, {"type": "text"}, {"type": "image_url"}]}, *messages]
        case "no fields at all before":
            return [{}, {"role": None}, {"role": "assistant"}, *messages]
        case "calls of odd shapes before":
            shapes: list[Any] = [None, {}, "x", 7, [], [None, 3, "x", [], {"function": 7}, {"id": 9, "function": {}}]]
            return [*({"role": "assistant", "tool_calls": one} for one in shapes), *messages]
        case "odd prose between":
            return [one for m in messages for one in (m, {"role": "assistant", "content": None})][: 2 * len(messages)]
    raise AssertionError(shape)


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize(
    "shape", ["system first", "odd content before", "no fields at all before", "calls of odd shapes before"]
)
def test_P32_odd_shapes_somewhere_leave_the_verdict_as_it_is(shape: str, times: int) -> None:
    """They neither trip nor turn the guard off."""
    assert detectors(odd(shape, write(Talk(), times).messages)) == (LOOP if times == 3 else PASS)


def test_P32_replies_without_content_between_break_no_run() -> None:
    """A result that is no longer right behind its call is unknown, and the count goes on."""
    assert detectors(odd("odd prose between", write(Talk(), 3).messages)) == LOOP


@pytest.mark.parametrize("calls", [None, {}, {"function": {"name": "x"}}, "write_file", 7, []])
def test_P32_tool_calls_that_are_no_list_are_no_calls(calls: Any) -> None:
    """The reply counts as prose."""
    reply = {"role": "assistant", "content": "Let me check.", "tool_calls": calls}

    assert detectors([*Talk().messages, *[reply] * 6]) == STAGNATION


@pytest.mark.parametrize("junk", [None, 7, "write_file", [], {"function": 3}, {"function": {"name": 7}}])
def test_P32_junk_among_the_calls_is_a_nameless_call(junk: Any) -> None:
    """Three such batches are three of the same."""
    reply = {"role": "assistant", "content": None, "tool_calls": [junk]}

    assert detectors([*Talk().messages, *[reply] * 3]) == LOOP


def test_P32_content_in_parts_is_read_as_its_text() -> None:
    """Six of the same."""
    parts = [{"type": "text", "text": "Let me "}, {"type": "image_url", "image_url": {"url": "x"}}, None]
    reply = {"role": "assistant", "content": [*parts, {"type": "text", "text": "check."}]}

    assert detectors([*Talk().messages, *[reply] * 6]) == STAGNATION
    assert detectors(say(Talk(), 3).messages + [reply] * 3) == STAGNATION


def test_other_calls_are_told_apart_by_what_they_hold() -> None:
    """Custom tools and calls without a function object have input or arguments too."""
    for shape in (lambda at: {"type": "custom", "custom": {"name": "sql", "input": f"select {at}"}}, _flat):
        replies = [{"role": "assistant", "tool_calls": [{"id": f"c{at}", **shape(at)}]} for at in range(9)]
        assert detectors([*Talk().messages, *replies]) == PASS
        assert detectors([*Talk().messages, *[replies[0]] * 3]) == LOOP


def _flat(at: int) -> Message:
    return {"name": "write_file", "arguments": {"path": f"{at}.md"}}


def test_note_wants_a_loop_that_is_still_going_on_and_refuse_the_first() -> None:
    """A model that moved on needs no note."""
    moved_on = write(Talk(), 4).call("ls").messages
    later = write(Talk(), 3).call("run", {}).call("run", {}).call("run", {}).messages

    assert detectors(moved_on) == [None, "loop"]
    noted, refused = scan(later, mode="note").trip, scan(later, mode="refuse").trip
    assert noted
    assert refused
    assert noted.signature.startswith("run:")  # type: ignore[union-attr]
    assert refused.signature.startswith("write_file:")  # type: ignore[union-attr]


def test_note_tells_how_often_by_now_and_refuse_when_it_tripped() -> None:
    """Seven writes in a row."""
    counts = [
        verdict.trip and verdict.trip.repeat_count
        for verdict in (scan(write(Talk(), 7).messages, mode=m) for m in MODES)
    ]

    assert counts == [7, 3]


def test_off_looks_at_nothing() -> None:
    """Nothing is scanned, so nothing is counted; no thresholds are the same."""
    messages = write(Talk(), 9).messages

    assert scan(messages, mode="off") == Verdict()
    assert scan(messages, Limits(strikes=None, stagnation=None)) == Verdict()
    assert detectors(messages, Limits(strikes=None)) == PASS
    assert detectors(say(Talk(), 9).messages, Limits(stagnation=None)) == PASS


def test_thresholds_are_the_callers() -> None:
    """Strikes and stagnation come from the settings."""
    assert detectors(write(Talk(), 3).messages, Limits(strikes=3)) == PASS
    assert detectors(write(Talk(), 4).messages, Limits(strikes=3)) == LOOP
    assert detectors(say(Talk(), 3).messages, Limits(stagnation=2)) == STAGNATION
