"""A scan takes whatever a client sends and never raises, never hangs."""

import json
import os
import random
from typing import Any

from app.guard.apply import with_note
from app.guard.detectors import Limits, Trip
from app.guard.scan import Verdict, scan
from app.guard.session import session_id
from tests.unit.guard.talk import Talk

EXAMPLES = 50_000 if os.environ.get("DOCENT_LONG") else 3_000
TRIP = Verdict(scanned=True, trip=Trip("loop", "a:0", 3, 2))

KEYS = ["role", "content", "tool_calls", "tool_call_id", "id", "function", "name", "arguments", "text", "type"]
WORDS = [
    "user",
    "assistant",
    "tool",
    "system",
    "text",
    "",
    "[Docent loop guard]",
    "{}",
    "[",
    "a",
    "\ud800",
    "\0",
    "é" * 9,
]
SCALARS = [None, True, False, 0, -1, 2**70, 1.5, float("inf"), *WORDS]
ROLES = ["user", "assistant", "assistant", "assistant", "tool", "tool", "system", 7, None, []]


def value(rng: random.Random, depth: int = 4) -> Any:
    """Any JSON value, in the words that messages are made of."""
    kind = rng.random() if depth else 1.0
    if kind < 0.3:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind < 0.6:
        return {rng.choice(KEYS): value(rng, depth - 1) for _ in range(rng.randint(0, 4))}
    return rng.choice(SCALARS)


def message(rng: random.Random) -> Any:
    """An object that looks like a message as far as its role."""
    fields = {"role": rng.choice(ROLES), "content": value(rng)}
    if rng.random() < 0.6:
        fields["tool_calls"] = [value(rng) for _ in range(rng.randint(0, 2))] if rng.random() < 0.8 else value(rng)
    if rng.random() < 0.5:
        fields["tool_call_id"] = value(rng, 1)
    return fields


def test_no_shape_makes_a_scan_raise() -> None:
    """Nor a session id, nor a note; the note's body is JSON as before."""
    rng = random.Random(7)
    tripped = 0
    for _ in range(EXAMPLES):
        one = message(rng)
        sent = rng.choice([[message(rng) for _ in range(rng.randint(0, 9))], [one] * 4, value(rng)])
        verdicts = [scan(sent), scan(sent, Limits(strikes=1, stagnation=1, mask_answers=True), mode="refuse")]
        assert all(verdict.scanned for verdict in verdicts)
        tripped += verdicts[1].trip is not None
        session_id(None, sent)
        json.dumps(with_note({"messages": sent}, TRIP))

    assert EXAMPLES * 0.05 < tripped < EXAMPLES * 0.9


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
