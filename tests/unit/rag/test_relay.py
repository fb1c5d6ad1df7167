"""The relay: contents lose their scaffolding, every other byte of a stream or reply stays as it came."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rag.relay import LINE_LIMIT, StreamRelay, WholeReply, clean_text

CALL = "<|tool_call_start|>[read(path='/a.md')]<|tool_call_end|>"


def chunk(content: str | None = None, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    delta = {} if content is None else {"content": content}
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def contents(stream: bytes) -> dict[int, str]:
    said: dict[int, str] = {}
    for line in stream.split(b"\n"):
        if line.startswith(b"data:") and line != b"data: [DONE]":
            for choice in json.loads(line[5:]).get("choices") or ():
                said[choice["index"]] = said.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return said


def relayed(stream: bytes, size: int = 1 << 20) -> tuple[bytes, StreamRelay]:
    relay = StreamRelay()
    out = b"".join(relay.feed(stream[at : at + size]) for at in range(0, len(stream), size))
    return out + relay.flush(), relay


PLAIN = chunk("Thirty ") + b": ping\n\n" + chunk("days. ä <b>|x|</b>\n") + chunk(None, "stop") + DONE


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_without_scaffolding_stays_byte_for_byte(size: int) -> None:
    """Whatever pieces it comes in."""
    out, relay = relayed(PLAIN, size)
    assert out == PLAIN
    assert relay.stripped_chars == 0


def test_a_line_goes_on_as_soon_as_it_has_ended() -> None:
    """Nothing waits for the next one."""
    relay = StreamRelay()
    first = chunk("Thirty ")
    assert relay.feed(first) == first


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_scaffolding_split_over_chunks_leaves_the_content(size: int) -> None:
    """One character a chunk; usage and finish reason go on."""
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 9}}\n\n'
    stream = b"".join(chunk(char) for char in f"It is so. {CALL}Really.") + chunk(None, "stop") + usage + DONE
    out, relay = relayed(stream, size)
    assert contents(out) == {0: "It is so. Really."}
    assert relay.stripped_chars == len(CALL)
    assert [strip.pattern for strip in relay.drain_strips()] != []
    assert relay.usage == {"prompt_tokens": 7, "completion_tokens": 9}
    assert out.endswith(usage + DONE)


def test_each_choice_has_a_filter_of_its_own() -> None:
    """Interleaved halves of a token in two choices are no token."""
    stream = chunk("<|tool_call", index=0) + chunk("_start|>x", index=1) + chunk("s|> a", index=0) + chunk("b", index=1)
    out, _ = relayed(stream + DONE)
    assert contents(out) == {0: " a", 1: "_start|>xb"}


@pytest.mark.parametrize(
    "end", [chunk(None, "stop") + DONE, DONE, b"", chunk("", "length")], ids=["finish", "done", "cut", "last"]
)
def test_what_was_held_comes_before_the_end(end: bytes) -> None:
    """A beginning of a token that never became one is text."""
    out, _ = relayed(chunk("a <|tool_ca") + end)
    assert contents(out) == {0: "a <|tool_ca"}
    if end.endswith(DONE):
        assert out.endswith(DONE)


def test_lines_end_as_they_came() -> None:
    """With a carriage return where the server sent one, also in a line that changed."""
    stream = chunk(f"a{CALL}b").replace(b"\n", b"\r\n") + DONE.replace(b"\n", b"\r\n")
    out, _ = relayed(stream)
    assert contents(out.replace(b"\r\n", b"\n")) == {0: "ab"}
    assert out.count(b"\r\n") == out.count(b"\n") == 4


@pytest.mark.parametrize(
    "line",
    [
        b"data: {broken",
        b"data: [1, 2]",
        b"data: null",
        b'data: {"choices": null}',
        b'data: {"choices": [null, 1, {"delta": null}, {"index": "x", "delta": {"content": "a"}}]}',
        b'data: {"choices": [{"delta": {"content": 5}}]}',
        b'data: {"error": {"message": "no"}}',
        b"data: " + b"[" * 50_000,
        b"event: error",
        b"\xff\xfe",
    ],
)
def test_what_is_not_understood_goes_on_unchanged(line: bytes) -> None:
    """Never an exception, never a loss."""
    assert relayed(line + b"\n\n" + PLAIN)[0] == line + b"\n\n" + PLAIN


def test_a_line_without_end_is_passed_on_unread() -> None:
    """Memory stays flat; the next line is read again."""
    long = b"data: " + b"x" * (LINE_LIMIT + 10) + b"\n\n"
    out, _ = relayed(long + chunk(CALL) + DONE, size=1 << 16)
    assert out.startswith(long)
    assert contents(out[len(long) :]) == {0: ""}


@given(
    st.lists(
        st.sampled_from(["a", "<|", "tool_call", "_start|>", "[x()]", CALL, "<|tool_call_end|>", "ä"]), max_size=12
    )
)
def test_a_stream_says_what_the_filter_lets_through(parts: list[str]) -> None:
    """Chunked by the server or whole: the same text, and the removed characters add up."""
    out, relay = relayed(b"".join(chunk(part) for part in parts) + chunk(None, "stop") + DONE)
    kept, stripped, _ = clean_text("".join(parts))
    assert contents(out).get(0, "") == kept
    assert relay.stripped_chars == stripped == len("".join(parts)) - len(kept)


def test_a_whole_reply_loses_its_scaffolding_only() -> None:
    """Unknown fields stay."""
    message = {"role": "assistant", "content": f"So.{CALL}", "x": [1]}
    body = {"id": "c", "choices": [{"message": message, "finish_reason": "stop"}], "usage": {"a": 1}, "y": None}
    reply = WholeReply(json.dumps(body).encode())
    message["content"] = "So."
    assert json.loads(reply.body) == body
    assert (reply.stripped_chars, reply.usage) == (len(CALL), {"a": 1})
    assert len(reply.strips) == 1


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"choices": 3}', b'{"choices": [{"message": {"content": "a"}}]}']
)
def test_a_whole_reply_without_scaffolding_stays_byte_for_byte(body: bytes) -> None:
    """Also one of an unknown shape."""
    assert WholeReply(body).body == body
