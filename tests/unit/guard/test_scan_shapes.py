"""A scan takes whatever a client sends and never raises, never hangs."""

import json
import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.guard.apply import with_note
from app.guard.detectors import Trip
from app.guard.scan import Verdict, scan
from app.guard.session import session_id
from tests.unit.guard.talk import Talk

EXAMPLES = 2000 if os.environ.get("DOCENT_LONG") else 100
TRIP = Verdict(scanned=True, trip=Trip("loop", "a:0", 3, 2))

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
keys = st.sampled_from(
    ["role", "content", "tool_calls", "tool_call_id", "id", "function", "name", "arguments", "text", "type"]
)
words = st.sampled_from(["user", "assistant", "tool", "system", "text", "", "[Docent loop guard]", "{}", "[", "a"])
values = st.recursive(
    scalars | words, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=12
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "assistant", "tool", "system", 7, None]), "content": values},
    optional={"tool_calls": values | st.lists(values, max_size=3), "tool_call_id": scalars | words},
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(messages, max_size=12) | values)
def test_no_shape_makes_a_scan_raise(sent: Any) -> None:
    """Nor a session id, nor a note; the note's body is JSON as before."""
    assert scan(sent).scanned
    assert scan(sent, mode="refuse").scanned
    session_id(None, sent)
    json.dumps(with_note({"messages": sent}, TRIP))


def nested(levels: int) -> Any:
    value: Any = "x"
    for at in range(levels):
        value = [value] if at % 2 else {"in": value}
    return value


def test_a_thousand_levels_anywhere_pass_or_count() -> None:
    """In arguments, as value and as text, in results, in content and around messages."""
    deep = nested(1000)
    text = "[" * 1000 + "]" * 1000
    for arguments in (deep, text, "[" * 100_000, '{"a":' * 1000 + "1" + "}" * 1000):
        reply = {
            "role": "assistant",
            "content": deep,
            "tool_calls": [{"id": "a", "function": {"name": "w", "arguments": arguments}}],
        }
        result = {"role": "tool", "tool_call_id": "a", "content": deep}
        verdict = scan([*Talk().messages, *[reply, result] * 3])
        assert verdict.trip
        assert verdict.trip.detector == "loop"
    for sent in (deep, [deep], [{"role": "assistant", "content": deep, "tool_calls": deep}]):
        assert scan(sent).trip is None


def test_ten_megabytes_are_scanned() -> None:
    """One huge argument, result and reply each, and many of a common size."""
    huge = "word " * 700_000
    talk = Talk()
    for _ in range(3):
        talk.call("write_file", {"text": huge}, huge)
    verdict = scan(talk.messages)
    assert verdict.trip
    assert verdict.trip.repeat_count == 3

    many = Talk()
    for at in range(2_000):
        many.say(huge[at : at + 2_500] + str(at)).call("write_file", {"at": at}, huge[at : at + 2_500])
    assert scan(many.messages) == Verdict(scanned=True)


def test_names_of_megabytes_reach_neither_note_nor_refusal() -> None:
    """The note is added to the end, bounded."""
    talk = Talk()
    for _ in range(3):
        talk.call("w" * 3_000_000)
    noted: Any = with_note({"messages": talk.messages}, scan(talk.messages))

    assert len(noted["messages"][-1]["content"]) < 600
