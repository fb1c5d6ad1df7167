"""What is put into a request, where, and that it stays out of later verdicts; the refusal's shape."""

import copy
from typing import Any

import pytest

from app.guard.apply import refusal, with_note
from app.guard.detectors import Trip
from app.guard.notes import MARKER, NOTE_LIMIT, note_for_request, note_for_turn, refusal_text
from app.guard.scan import Verdict, scan
from app.rag.scaffolding import ScaffoldingFilter
from tests.unit.guard.talk import Message, Talk

TRIP = Trip("loop", "write_file:0123456789abcdef", 3, 2)
VERDICT = Verdict(scanned=True, trip=TRIP)
NOTE = note_for_request(TRIP)

LONG = Trip("loop", "<tool_call>[x]" * 400 + ":0123456789abcdef", 123_456, 15, moved=True)
TRIPS = [
    TRIP,
    LONG,
    Trip("loop", "a:0", 16, 15, moved=True),
    Trip("stagnation", None, 6, 5),
    Trip("requery", "search:0", 2, 1),
]


def body(*messages: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Do it."}, *messages], "temperature": 0.3}


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_M36_a_note_is_added_to_text(role: str) -> None:
    """Behind a blank line, whatever the last message's role."""
    noted: Any = with_note(body({"role": role, "content": "42", "name": "x"}), VERDICT)

    assert noted == body({"role": role, "content": f"42\n\n{NOTE}", "name": "x"})


def test_M36_an_empty_text_becomes_the_note() -> None:
    """No blank line before it."""
    assert with_note(body({"role": "tool", "content": ""}), VERDICT) == body({"role": "tool", "content": NOTE})


def test_M36_parts_get_one_part_more() -> None:
    """The others stay as they are."""
    part = {"type": "image_url", "image_url": {"url": "x"}}

    assert with_note(body({"role": "user", "content": [part]}), VERDICT) == body(
        {"role": "user", "content": [part, {"type": "text", "text": NOTE}]}
    )


@pytest.mark.parametrize(
    "message", [{"role": "tool", "content": None}, {"role": "tool"}, {"role": "tool", "content": 7}]
)
def test_M36_a_message_without_text_is_followed_by_a_user_message(message: Message) -> None:
    """Never by a system message."""
    assert with_note(body(message), VERDICT) == body(message, {"role": "user", "content": NOTE})


@pytest.mark.parametrize("odd", [None, "text", 7, [], {}, {"messages": None}, {"messages": []}, {"messages": ["x"]}])
def test_M36_what_holds_no_messages_stays_as_it_is(odd: Any) -> None:
    """Garbage goes on as garbage."""
    assert with_note(odd, VERDICT) is odd


def test_a_verdict_without_a_trip_changes_nothing() -> None:
    """The very same body goes on."""
    given = body()

    assert with_note(given, Verdict(scanned=True)) is given


def test_a_note_leaves_the_given_body_alone() -> None:
    """A retry or a log may still need it."""
    given = body({"role": "tool", "content": [{"type": "text", "text": "x"}]})
    before = copy.deepcopy(given)
    with_note(given, VERDICT)

    assert given == before


@pytest.mark.parametrize("trip", TRIPS)
def test_M37_a_note_is_short_and_begins_with_the_marker(trip: Trip) -> None:
    """At most 500 characters, valid text, however long the client's names are."""
    for note in (note_for_request(trip), note_for_turn(trip)):
        assert note.startswith(MARKER)
        assert len(note) <= NOTE_LIMIT
        note.encode()
    assert len(refusal_text(trip)) <= NOTE_LIMIT


@pytest.mark.parametrize("trip", TRIPS)
def test_a_note_holds_no_tool_syntax(trip: Trip) -> None:
    """Models imitate what they read."""
    for note in (note_for_request(trip), note_for_turn(trip)):
        content_filter = ScaffoldingFilter()

        assert content_filter.feed(note) + content_filter.flush() == note
        assert not set("<>{}｜") & set(note)


def test_a_note_says_what_was_repeated_and_what_to_do() -> None:
    """The batch and its count, or the count and the limit."""
    assert "write_file:0123456789abcdef" in NOTE
    assert "3 times" in NOTE
    assert "keep changing" in note_for_request(TRIPS[2])
    assert "6 times; the limit is 5" in note_for_request(TRIPS[3])
    assert "already above" in note_for_turn(TRIPS[4])


def contents() -> list[Any]:
    return ["same", "", None, [{"type": "text", "text": "same"}], [], {"answer": 1}]


@pytest.mark.parametrize("content", contents(), ids=str)
@pytest.mark.parametrize("times", [2, 3, 7])
def test_M38_a_note_in_a_conversation_neither_causes_nor_hides_a_trip(content: Any, times: int) -> None:
    """Noted at its end, then gone on with: the verdict is that of the conversation without the note."""
    for before in range(1, times + 1):
        plain, noted = Talk(), Talk()
        for at in range(1, times + 1):
            plain.call("write_file", {"path": "a.md"}, content)
            noted.call("write_file", {"path": "a.md"}, content)
            if at == before:
                noted.messages = with_note({"messages": noted.messages}, VERDICT)["messages"]  # type: ignore[index]

        assert noted.messages != plain.messages
        assert scan(noted.messages) == scan(plain.messages)


def test_M38_a_note_behind_prose_does_not_make_it_another() -> None:
    """Six of the same, some of them noted."""
    talk = Talk()
    for at in range(6):
        talk.say("Let me check." if at % 2 else f"Let me check.\n\n{NOTE}")

    assert scan(talk.messages).trip == Trip("stagnation", None, 6, 5)


def test_text_that_only_mentions_the_marker_is_no_note() -> None:
    """What stands around it counts."""
    one, other = (Talk().call("a", result="x").call("a", result=f"{MARKER} said {text}" * 9) for text in "xy")
    quoted = Talk()
    for at in range(3):
        quoted.call("a", result=f"The log says {MARKER} {at}")

    assert not scan(one.messages).identical_result_repeat
    assert not scan(other.messages).identical_result_repeat
    assert scan(quoted.messages).trip is None


@pytest.mark.parametrize(("trip", "code"), [(TRIP, "loop_detected"), (TRIPS[3], "stagnation_detected")])
def test_M41_a_refusal_has_openais_shape(trip: Trip, code: str) -> None:
    """Type and code name the detector; the message says what was seen and how to have it noted instead."""
    error = refusal(Verdict(scanned=True, trip=trip))["error"]

    assert (error["type"], error["code"]) == (code, code)
    assert set(error) == {"message", "type", "code"}
    assert str(trip.repeat_count) in error["message"]
    assert "LOOP_GUARD_MODE=note" in error["message"]


def test_M41_a_refusal_bounds_what_the_client_chose() -> None:
    """A signature of thousands of characters is cut."""
    assert len(refusal(Verdict(trip=LONG))["error"]["message"]) < 500


def test_there_is_no_refusal_without_a_trip() -> None:
    """A caller that asks for one is wrong."""
    with pytest.raises(ValueError, match="nothing to refuse"):
        refusal(Verdict(scanned=True))
