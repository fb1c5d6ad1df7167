"""Frames: whatever a text holds, one frame stays one frame; the page about them says the same as the code."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api import frames
from app.api.turn_end import ERROR_CODES
from app.rag.pieces import DocRef
from app.turns.event_log import Event
from tests.sse import Decoder, Frame

DOC = Path(__file__).resolve().parents[2] / "docs" / "sse.md"
IDS = frames.TurnIds("t1", 7, 8, 9)
COUNTS = frames.DoneCounts(thinking_chars=0, answer_chars=5, total_ms=12, retries=0, recovered=False)

ANY_TEXT = st.text(st.characters(), max_size=60) | st.sampled_from(
    ["\r", "\n", "\r\n", "\n\ndata: x", "\x00", "\u2028\u2029", "\ud800", "\udfff\ud800", "event: done", ": ping"]
)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)
EVENTS = st.builds(
    Event,
    st.integers(1, 10**9),
    st.sampled_from(sorted(frames.FIELDS)),
    st.dictionaries(ANY_TEXT, ANY_JSON, max_size=5),
)


@given(st.lists(EVENTS, max_size=5), st.integers(1, 50))
def test_what_is_encoded_is_what_is_decoded(events: list[Event], step: int) -> None:
    """Any text in any field, cut at any byte: the same frames come out, none more, and pings don't disturb them."""
    stream = b"".join(frames.encode(event) + frames.PING for event in events)
    decoder = Decoder()
    seen = [frame for at in range(0, len(stream), step) for frame in decoder.feed(stream[at : at + step])]
    assert seen == [Frame(str(event.id), event.event, dict(event.data)) for event in events]
    assert decoder.comments == len(events)


@given(EVENTS)
def test_an_event_is_three_lines_of_ascii(event: Event) -> None:
    """Nothing in a text can begin a line of its own."""
    lines = frames.encode(event).decode("ascii").split("\n")
    assert [line.split(":")[0] for line in lines] == ["id", "event", "data", "", ""]


def test_only_known_events_are_encoded() -> None:
    """An event's name comes from the list, never from a model or a server."""
    with pytest.raises(ValueError, match="execute"):
        frames.encode(Event(1, "execute", {}))


def test_numbers_that_json_does_not_have_are_refused() -> None:
    """NaN would make the whole frame unreadable for a browser."""
    with pytest.raises(ValueError):
        frames.encode(Event(1, "delta", {"text": float("nan")}))


def every_frame() -> list[frames.Frame]:
    piece: dict[str, Any] = {"attempt": 1, "max": 2, "delay_ms": 500, "reason": "connect"}
    call = {"id": "c1", "name": "grep", "args": {}, "status": "ok", "summary": "2 hits", "ms": 3, "sources": []}
    return [
        frames.start(IDS, "grounded", [{"n": 1}], []),
        frames.thinking("hm"),
        frames.tool(call, ""),
        frames.retry(piece),
        frames.delta("Night"),
        frames.notice("answer_cut", "It breaks off."),
        frames.done(9, "<p></p>", [], citations=(1, 0), read_docs=[DocRef(3, "a.md")], counts=COUNTS),
        frames.error("internal", "It failed.", retryable=True),
        frames.stopped(9, 5),
    ]


def test_each_builder_makes_the_fields_of_its_frame() -> None:
    """The shapes a client relies on, in one place."""
    for frame in every_frame():
        assert tuple(frame.data) == frames.FIELDS[frame.event]


def test_frames_copy_only_fields_they_know() -> None:
    """A field that a model server slipped into a piece goes no further."""
    assert tuple(frames.retry({"attempt": 1, "html": "<script>"}).data) == frames.FIELDS["retry"]
    assert tuple(frames.tool({"id": "c1", "text": "the document"}, "").data) == frames.FIELDS["tool"]


def documented() -> dict[str, list[str]]:
    sections = re.split(r"^### (\w+)$", DOC.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        name: [field for field in re.findall(r"^\| (\w+) \|", body, re.MULTILINE) if field != "field"]
        for name, body in zip(sections[::2], sections[1::2], strict=True)
    }


def test_the_page_about_frames_lists_each_with_its_fields() -> None:
    """docs/sse.md and the code name the same events and fields, in the same order."""
    assert documented() == {name: list(fields) for name, fields in frames.FIELDS.items()}


def test_the_page_names_every_error_code() -> None:
    """A client can switch on what is written there."""
    section = DOC.read_text(encoding="utf-8").split("### error")[1].split("###")[0]
    assert set(re.findall(r"`(\w+)`", section)) == ERROR_CODES
