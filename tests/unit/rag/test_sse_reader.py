"""The reader of model streams: what real servers send, cut anywhere, never raises and never passes as success."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.rag.sse_reader import LINE_LIMIT, REQUEST_LIMIT, Failed, SseReader, Text, Thinking, ToolDelta
from tests.unit.rag.reading import chunk, frame, read, text_of

KINDS = Text | Thinking | ToolDelta | Failed


STREAM = (
    b": ping\n\n"
    + frame({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    + frame(chunk(reasoning_content="Hm. "))
    + frame(chunk("Grüße, "))
    + frame(chunk("Welt 🌍"))
    + frame(chunk(finish="stop"))
    + frame({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5}})
    + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_reads_the_same_wherever_it_is_cut(end: bytes) -> None:
    """Every cut of a whole stream, for all three line ends, gives the same text, thinking, usage and finish."""
    data = STREAM.replace(b"\n", end)
    for cut in range(len(data) + 1):
        reader, events = read(data[:cut], data[cut:])
        assert text_of(events) == "Grüße, Welt 🌍"
        assert [event.text for event in events if isinstance(event, Thinking)] == ["Hm. "]
        assert (reader.finish_reason, reader.done, reader.bad_frames) == ("stop", True, 0)
        assert (reader.prompt_tokens, reader.completion_tokens) == (12, 5)


def test_a_stream_read_byte_by_byte_with_a_byte_order_mark_loses_nothing() -> None:
    """A BOM before the first line does not hide it."""
    first = frame(chunk("a")) + frame(chunk("b", finish="stop"))
    _, events = read(*[bytes([byte]) for byte in b"\xef\xbb\xbf" + first])
    assert text_of(events) == "ab"


def test_an_event_is_given_at_its_line_end_without_waiting_for_the_blank_line() -> None:
    """No token waits for the next one."""
    assert SseReader().feed(frame(chunk("now"), end=b"\n")) == [Text("now")]


@pytest.mark.parametrize("spaceless", [True, False])
def test_data_may_follow_the_colon_without_a_space(spaceless: bool) -> None:
    """`data:{…}` is as good as `data: {…}`."""
    data = frame(chunk("x"))
    _, events = read(data.replace(b"data: ", b"data:") if spaceless else data)
    assert text_of(events) == "x"


def test_a_stream_without_finish_or_done_is_not_complete() -> None:
    """S1: a clean end is not success."""
    reader, events = read(frame(chunk("half")))
    assert text_of(events) == "half"
    assert not reader.complete


@pytest.mark.parametrize(
    "bad", [b'data: {"choices": [\n\n', b"data: nonsense\n\n", b"data: {]\n\n", b"data: \xff\xfe\n\n"]
)
def test_three_bad_frames_are_skipped_and_a_fourth_ends_the_reply(bad: bytes) -> None:
    """S3: bad JSON is counted and skipped, up to three times in a request."""
    reader, events = read(frame(chunk("a")), bad * 3, frame(chunk("b", finish="stop")))
    assert text_of(events) == "ab"
    assert reader.bad_frames == 3
    _, events = read(frame(chunk("a")), bad * 4, frame(chunk("b")))
    assert events == [Text("a"), Failed("frames")]


def test_invalid_utf8_and_lone_surrogates_become_replacement_characters() -> None:
    """S3: neither raises, and the text can be stored as UTF-8."""
    data = b'data: {"choices":[{"delta":{"content":"a\xffb \\ud83d c"}}]}\n\n'
    _, events = read(data)
    assert text_of(events) == "a\ufffdb \ufffd c"


@pytest.mark.parametrize(
    "data",
    [
        b'data: {"error": {"message": "boom", "code": 500}}\n\n',
        b'data: {"error": "boom"}\n\n',
        b'data: {"object": "error", "message": "boom"}\n\n',
        b'event: error\ndata: {"message": "boom"}\n\n',
        b"event: error\ndata: boom\n\n",
        b'error: {"message": "boom"}\n\n',
        b"error: boom\n\n",
        b'{"error": {"message": "boom"}}\n\n',
    ],
)
def test_every_shape_of_error_is_an_error(data: bytes) -> None:
    """S4: none of them passes as an answer; what follows is ignored."""
    reader, events = read(frame(chunk("a")), data, frame(chunk("b", finish="stop")))
    assert [type(event) for event in events] == [Text, Failed]
    assert events[1].kind == "provider"
    assert "boom" in events[1].text
    assert not reader.complete


def test_an_error_event_without_data_is_an_error() -> None:
    """S4: the event's name is enough."""
    assert read(b"event: error\n\n")[1] == [Failed("provider")]


def test_an_error_field_of_null_is_no_error() -> None:
    """Some servers send `"error": null` with every chunk."""
    assert text_of(read(frame({**chunk("fine"), "error": None}))[1]) == "fine"


@pytest.mark.parametrize(
    "payload",
    [
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": None}}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": [None, "x", {}]}}]},
        {"choices": "no"},
        {"usage": None},
        {"type": "ping"},
        [],
        [1, 2],
        "text",
        None,
        7,
    ],
)
def test_what_is_not_understood_is_ignored(payload: object) -> None:
    """S6: odd shapes neither raise nor count as bad."""
    reader, events = read(frame(payload), frame(chunk("ok", finish="stop")))
    assert events == [Text("ok")]
    assert reader.bad_frames == 0


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"reasoning": "r"}, Thinking("r")),
        ({"reasoning_content": "r", "reasoning": "r"}, Thinking("r")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "x"}, "y", {"text": "b"}]}, Text("ab")),
        ({"refusal": "no"}, Text("no")),
    ],
)
def test_text_is_read_from_the_fields_that_servers_use(delta: dict[str, Any], expected: object) -> None:
    """Reasoning under either name, once; content as parts; a refusal is text."""
    assert read(frame(chunk(**delta)))[1] == [expected]


def test_text_of_a_completion_choice_is_read() -> None:
    """An old-style choice has `text` in place of a delta."""
    assert read(frame({"choices": [{"text": "old"}]}))[1] == [Text("old")]


def test_json_over_several_data_lines_is_joined() -> None:
    """The event-stream rule: data lines of one event are one text."""
    pretty = json.dumps(chunk("joined"), indent=1).replace("\n", "\ndata: ")
    reader, events = read(f"data: {pretty}\n\n".encode())
    assert (text_of(events), reader.bad_frames) == ("joined", 0)


def test_limits_end_the_reply() -> None:
    """S9: a line over 1 MiB, whole, unfinished or in pieces of one event, and a reply over 8 MiB."""
    assert read(b"data: " + b"x" * LINE_LIMIT)[1] == [Failed("size")]
    assert read(frame(chunk("x" * LINE_LIMIT)))[1] == [Failed("size")]
    assert read(b"".join(b"data: " + b"{" * 1000 + b"\n" for _ in range(1100)))[1] == [Failed("size")]
    big = frame(chunk("y" * 100_000))
    _, events = read(*[big] * (REQUEST_LIMIT // len(big) + 2))
    assert events[-1] == Failed("size")
    assert len(text_of(events)) < REQUEST_LIMIT


def test_nothing_is_read_after_done() -> None:
    """What follows `[DONE]` is not part of the reply."""
    reader, events = read(b"data: [DONE]\n\n", frame(chunk("late")))
    assert events == []
    assert reader.done


def test_a_json_body_is_one_whole_reply() -> None:
    """S5: a server that ignores `stream` still answers."""
    reader = SseReader()
    message = {"role": "assistant", "content": "whole", "reasoning": "why"}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    assert reader.feed_json(json.dumps(body).encode()) == [Thinking("why"), Text("whole")]
    assert reader.complete
    assert reader.prompt_tokens == 3


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"choices": []}', b"<html>", b'{"detail": "Not Found"}'])
def test_a_json_body_of_another_kind_is_named(body: bytes) -> None:
    """S5: not an answer, not a crash."""
    reader = SseReader()
    assert reader.feed_json(body) == [Failed("not_api")]
    assert not reader.complete


def test_a_json_body_with_an_error_or_too_long_is_an_error() -> None:
    """S4 and S9 hold for bodies too."""
    assert SseReader().feed_json(b'{"error": {"message": "m"}}')[0].kind == "provider"  # type: ignore[union-attr]
    assert SseReader().feed_json(b" " * (REQUEST_LIMIT + 1)) == [Failed("size")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["stop", "error", "[DONE]"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "message", "content", "tool_calls", "function", "id", "index", "error", "usage",
             "prompt_tokens", "finish_reason", "arguments", "name", "text", "object", "reasoning"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(json_values, max_size=6), st.integers(1, 40))
def test_no_json_shape_raises_and_cuts_do_not_matter(payloads: list[Any], step: int) -> None:
    """S6: whatever the shape, wherever it is cut, reading goes on and gives the same events."""
    data = b"".join(frame(payload) for payload in payloads)
    whole, events = read(data)
    pieces, cut_events = read(*[data[at : at + step] for at in range(0, len(data), step)])
    assert events == cut_events
    assert whole.tool_calls() == pieces.tool_calls()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8))
def test_random_bytes_never_raise(parts: list[bytes]) -> None:
    """S3: garbage gives events or nothing."""
    _, events = read(*parts, b"\ndata: ", *parts, b"\n\n")
    assert all(isinstance(event, KINDS) for event in events)
    assert all(isinstance(event, KINDS) for event in SseReader().feed_json(b"".join(parts)))


@pytest.mark.parametrize(("reason", "kind"), [("error", "provider"), ("abort", "cut")])
def test_a_finish_reason_that_finishes_nothing_is_no_end(reason: str, kind: str) -> None:
    """OpenRouter and SGLang end a broken reply that way, with `[DONE]` after it; the text before it stands."""
    reader = SseReader()
    chunk = {"choices": [{"delta": {"content": "a"}, "finish_reason": reason}]}
    events = reader.feed(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
    assert events == [Text("a"), Failed(kind)]  # type: ignore[arg-type]
    assert not reader.complete
