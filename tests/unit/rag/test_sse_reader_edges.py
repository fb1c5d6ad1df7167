"""The reader of model streams at its edges: seams between chunks and events, the last line, odd fields, tool calls."""

import json
from typing import Any

import pytest

from app.rag.pieces import ToolCallPiece
from app.rag.sse_reader import LINE_LIMIT, REQUEST_LIMIT, Failed, SseReader, Text, Thinking, ToolDelta
from tests.unit.rag.reading import chunk, frame, read, text_of

MARK = b"\xef\xbb\xbf"
BAD = b"data: nonsense\n\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_of_several_lines_is_one_wherever_it_is_cut(end: bytes) -> None:
    """A line end cut in two ends no event: the error keeps its words, JSON over lines stays whole."""
    pretty = json.dumps(chunk("joined"), indent=1).encode().replace(b"\n", b"\ndata: ")
    data = b"data: " + pretty + b"\n\nevent: error\ndata: boom\n\n"
    data = data.replace(b"\n", end)
    for cut in range(len(data) + 1):
        reader, events = read(data[:cut], data[cut:])
        assert events == [Text("joined"), Failed("provider", "boom")]
        assert reader.bad_frames == 0


def test_json_over_two_lines_is_joined() -> None:
    """Two are several."""
    assert read(b'data: {"choices": [{"delta":\ndata: {"content": "ab"}}]}\n\n')[1] == [Text("ab")]


def test_a_byte_order_mark_is_read_over_at_the_very_beginning_only() -> None:
    """Wherever it is cut; later it is a part of its line, which is then no field."""
    data = MARK + frame(chunk("a", finish="stop"))
    for cut in range(len(data) + 1):
        assert read(data[:cut], data[cut:])[1] == [Text("a")]
    assert read(frame(chunk("a")), MARK + frame(chunk("hidden")), frame(chunk("b")))[1] == [Text("a"), Text("b")]


def test_a_last_line_without_its_end_is_read() -> None:
    """A server that closes right behind the last brace has said it all."""
    reader, events = read(frame(chunk("a")), frame(chunk("b", finish="stop"), end=b""))
    assert events == [Text("a"), Text("b")]
    assert reader.complete
    assert read(b"error: boom")[1] == [Failed("provider", " boom")]
    assert read(b"")[1] == []


def test_a_bad_frame_that_the_stream_ends_in_counts() -> None:
    """The fourth is too many, with or without its blank line, and before whatever follows in its event."""
    assert read(BAD * 3, b"data: nonsense")[1] == [Failed("frames")]
    assert read(BAD * 3, b"data: nonsense\ndata: [DONE]\n\n")[1] == [Failed("frames")]
    assert not read(BAD * 3, b"data: nonsense\ndata: [DONE]\n\n")[0].complete
    reader, events = read(BAD * 3, b"data: nonsense\n" + frame(chunk("late", finish="stop")))
    assert events == [Failed("frames")]
    assert not reader.complete


def test_after_a_failure_nothing_more_is_said() -> None:
    """One failure for each reply, whatever comes."""
    for first in (b"error: boom\n\n", BAD * 4, b"data: " + b"x" * LINE_LIMIT + b"\n"):
        reader = SseReader()
        assert [type(event) for event in reader.feed(first)] == [Failed]
        assert reader.feed(frame(chunk("late")) + BAD * 5 + b"error: again\n\n") == []
        assert reader.feed_json(json.dumps(chunk("late")).encode()) == []
        assert reader.flush() == []


def test_data_without_text_is_not_bad() -> None:
    """Empty data lines and `null` are pings."""
    reader, events = read(b"data:\n\n" * 5, b"data: \n\n" * 5, b"data: null\n\n" * 5, frame(chunk("a")))
    assert (events, reader.bad_frames) == ([Text("a")], 0)


def test_the_name_of_an_event_holds_for_that_event_only() -> None:
    """Other names change nothing, and an error's name ends with it."""
    assert read(b"event: message\n" + frame(chunk("a")))[1] == [Text("a")]
    assert read(b"event:error\ndata: x\n\n")[1] == [Failed("provider", "x")]
    assert read(b"event: error\nevent: message\n" + frame(chunk("a")))[1] == [Text("a")]


def test_an_error_keeps_the_servers_words() -> None:
    """As the server wrote them, invalid bytes replaced, 2,000 characters at most."""
    assert read('error: {"message": "zu groß"}\n\n'.encode())[1] == [Failed("provider", '{"message": "zu groß"}')]
    assert read("error: zu groß \n\n".encode())[1] == [Failed("provider", " zu groß ")]
    assert read(b"error: \xff boom\n\n")[1] == [Failed("provider", " \ufffd boom")]
    assert read(b'data: {"error": {"message": "m"}}\n\n')[1] == [Failed("provider", '{"error": {"message": "m"}}')]
    for long in (b"error: " + b"e" * 5000, b'error: {"message": "' + b"e" * 5000 + b'"}'):
        (failed,) = read(long + b"\n\n")[1]
        assert len(failed.text) == 2000


def test_limits_are_kept_to_the_byte() -> None:
    """A line of 1 MiB and a reply of 8 MiB still pass; one byte more does not."""
    line = frame(chunk("x" * LINE_LIMIT), end=b"")
    fits = line.replace(b"x" * (len(line) - LINE_LIMIT), b"", 1)
    assert len(fits) == LINE_LIMIT
    assert [type(event) for event in read(fits + b"\n\n")[1]] == [Text]
    assert [type(event) for event in read(fits)[1]] == [Text]
    assert read(fits.replace(b"x", b"xx", 1) + b"\n\n")[1] == [Failed("size")]
    pings = b":" + b" " * 1023 + b"\n"
    whole = pings * (REQUEST_LIMIT // len(pings))
    whole += b":" * (REQUEST_LIMIT - len(whole) - 1) + b"\n"
    assert read(whole)[1] == []
    assert read(whole, b":")[1] == [Failed("size")]
    assert SseReader().feed_json(b" " * REQUEST_LIMIT) == [Failed("not_api")]


def test_usage_is_kept_when_a_later_one_says_nothing() -> None:
    """Some servers send usage with every chunk, and null with the last."""
    usage = {"prompt_tokens": 12, "completion_tokens": 5}
    for later in ({"prompt_tokens": None, "completion_tokens": None}, {}, {"prompt_tokens": "x"}, {"total_tokens": 9}):
        reader, _ = read(frame({"choices": [], "usage": usage}), frame({"choices": [], "usage": later}))
        assert (reader.prompt_tokens, reader.completion_tokens) == (12, 5)
    assert (SseReader().prompt_tokens, SseReader().completion_tokens) == (None, None)


def test_the_calls_of_a_reply_are_put_together() -> None:
    """Each fragment is progress; the calls come out whole and in order."""
    fragments: list[list[Any]] = [
        [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"path":'}}],
        [{"index": 0, "function": {"arguments": ' "a.md"}'}}, {"index": 1, "id": "c2", "function": {"name": "ls"}}],
    ]
    frames = [frame(chunk(tool_calls=calls)) for calls in fragments]
    reader, events = read(*frames, frame(chunk(finish="tool_calls")))
    assert events == [ToolDelta()] * 4
    calls = reader.tool_calls()
    assert all(isinstance(call, ToolCallPiece) for call in calls)
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("c1", "read", '{"path": "a.md"}'),
        ("c2", "ls", "{}"),
    ]
    assert reader.finish_reason == "tool_calls"


def test_a_call_of_the_old_kind_is_a_call() -> None:
    """`function_call` is the first call, in fragments too; `tool_calls` beside it win."""
    parts = [{"name": "read", "arguments": '{"a":'}, {"arguments": " 1}"}]
    reader, events = read(*[frame(chunk(function_call=part)) for part in parts])
    assert events == [ToolDelta()] * 2
    assert [(call.name, call.arguments) for call in reader.tool_calls()] == [("read", '{"a": 1}')]
    both = chunk(function_call={"name": "old"}, tool_calls=[{"index": 0, "function": {"name": "new"}}])
    assert [call.name for call in read(frame(both))[0].tool_calls()] == ["new"]
    assert [call.name for call in read(frame(chunk(tool_calls=[], function_call=parts[0])))[0].tool_calls()] == ["read"]


def test_a_json_body_with_calls_and_no_finish_reason_is_whole() -> None:
    """S5: a body has ended, whatever it says of its end."""
    reader = SseReader()
    message = {"content": None, "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}]}
    assert reader.feed_json(json.dumps({"choices": [{"message": message}]}).encode()) == [ToolDelta()]
    assert (reader.complete, reader.done, reader.finish_reason) == (True, True, None)
    assert [call.name for call in reader.tool_calls()] == ["ls"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"delta": {"content": "", "refusal": "no"}}, [Text("no")]),
        ({"delta": {"content": "a", "refusal": "no"}}, [Text("a")]),
        ({"delta": {"reasoning": "r", "content": "a"}}, [Thinking("r"), Text("a")]),
        ({"delta": {}, "message": {"content": "m"}}, [Text("m")]),
        ({"delta": {"content": "d"}, "message": {"content": "m"}}, [Text("d")]),
        ({"delta": {"content": "d"}, "text": "t"}, [Text("d")]),
        ({"delta": {"content": [{"text": 5}, {"text": "a"}, None]}}, [Text("a")]),
        ({"text": ""}, []),
    ],
)
def test_each_text_is_read_once(choice: dict[str, Any], expected: list[Any]) -> None:
    """Where a server fills several fields, the first that has something counts."""
    assert read(frame({"choices": [choice]}))[1] == expected


@pytest.mark.parametrize("reason", ["", None, 5, ["stop"]])
def test_a_finish_reason_that_says_nothing_is_none(reason: object) -> None:
    """And one that said something is kept."""
    later = {"choices": [{"delta": {"content": "a"}, "finish_reason": reason}]}
    assert read(frame(later))[0].finish_reason is None
    reader, events = read(frame(chunk(finish="length")), frame(later))
    assert reader.finish_reason == "length"
    assert text_of(events) == "a"
