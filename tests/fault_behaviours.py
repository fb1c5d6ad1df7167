"""Further faults of a model server for `tests/fault_catalogue.py`, added to the table of `tests/faults.py`."""

import asyncio
import json
from typing import Any

from tests.fault_server import Fault, Reply
from tests.faults import DONE, FAULTS, SECRET_TEXT, answered, fault, frame, streamed
from tests.unit.rag.test_tool_deltas import SHAPES

LEAK = '<|tool_call_start|>[search(query="backups")]<|tool_call_end|>'
OK = FAULTS["ok"]


def line(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def calls_frame(*deltas: Any) -> bytes:
    return frame(tool_calls=list(deltas))


streamed(
    "null-shapes",
    line({"choices": None}),
    line({"choices": []}),
    line({"choices": [{"delta": None}]}),
    line({"choices": [{"delta": {"content": None, "tool_calls": None}}], "usage": None}),
    line([1, 2]),
    line("text"),
    line(None),
    line({"choices": ["x"]}),
    line({"choices": [], "usage": {"prompt_tokens": "many"}}),
    frame("Hel"),
    line({"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": None, "logprobs": {"content": []}}]}),
    DONE,
)
streamed("three-bad-frames", frame("Hel"), *[b"data: {nonsense\n\n"] * 3, frame("lo"), DONE)
streamed("crlf", (frame("Hel") + frame("lo") + DONE).replace(b"\n", b"\r\n"))
streamed("bom", b"\xef\xbb\xbf" + frame("Hel"), frame("lo"), DONE)
streamed("done-without-reason", frame("a"), b"data: [DONE]\n\n")
streamed("reason-without-done", frame("a"), frame(finish="stop"))
streamed("parts", line({"choices": [{"delta": {"content": [{"type": "text", "text": "a"}, {"type": "image"}]}}]}), DONE)
streamed("lone-surrogate", b'data: {"choices":[{"delta":{"content":"a\\ud800b"}}]}\n\n', DONE)
streamed("length", frame("cut short", finish="length"), b"data: [DONE]\n\n")
streamed("cut-in-a-line", frame("half"), frame(" of"), b'data: {"choices":[{"delta":{"cont')
streamed("aborted", frame("a", finish="abort"), b"data: [DONE]\n\n")
streamed("cut-thinking", frame(reasoning_content="Hm"))
streamed("cut-tool-call", calls_frame({"index": 0, "id": "c", "function": {"name": "search", "arguments": '{"qu'}}))
streamed("role-only", frame(role="assistant", content=""))
streamed("plain-text", b"Hello there, how are you?\n")
streamed("huge-padding", frame("a"), *[line({"padding": "p" * 500_000})] * 18, DONE)
streamed("error-string", frame("a"), line({"error": SECRET_TEXT}))
streamed("error-object", frame("a"), line({"object": "error", "message": SECRET_TEXT, "code": 500}))
streamed("error-finish", frame("a", finish="error"), b"data: [DONE]\n\n")
streamed("error-event-empty", frame("a"), b"event: error\n\n")
streamed("error-first", line({"error": {"message": SECRET_TEXT}}))
streamed("blank", frame(" \n"), frame("\n"), DONE)
streamed("scaffold-only", frame(LEAK[:10]), frame(LEAK[10:]), DONE)
streamed("thinking-only", frame(reasoning_content="Hmm."), DONE)
streamed("done-only", b"data: [DONE]\n\n")
streamed("scaffold-mixed", frame("Before. "), frame(LEAK), frame(" After."), DONE)
streamed("scaffold-open", frame("Before. "), frame(LEAK[:30]), DONE)
answered("error-in-json", "200 OK", {"error": {"message": SECRET_TEXT}})
answered("json-list", "200 OK", [1, 2, 3])
answered("json-no-choices", "200 OK", {"choices": [], "object": "chat.completion"})
answered("405", "405 Method Not Allowed", {})
answered("422", "422 Unprocessable Entity", {"detail": [{"loc": ["body", "messages"], "msg": SECRET_TEXT}]})
answered("302-login", "302 Found", b"", location="/login?next=%2Fv1")
answered("500-markup", "500 Internal Server Error", {"error": {"message": f"cannot parse {LEAK} {SECRET_TEXT}"}})
answered("502-html", "502 Bad Gateway", b"<html><h1>Bad Gateway</h1></html>")
answered("504", "504 Gateway Timeout", b"")
answered("529", "529 Overloaded", {"type": "error", "error": {"type": "overloaded_error"}})


def once(name: str, first: str) -> None:
    """A fault at the first request of the round, then a healthy reply."""

    async def run(reply: Reply) -> None:
        await (FAULTS[first] if reply.nth == 1 else OK)(reply)

    FAULTS[name] = run


once("scaffold-once", "scaffold-only")
once("blank-once", "blank")
once("thinking-only-once", "thinking-only")
once("overflow-once", "overflow-llamacpp")


def raw(name: str, head: bytes, body: bytes) -> None:
    """A fault in the framing itself: bytes as they are, then the end of the connection."""

    async def run(reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)
        reply.close()

    FAULTS[name] = run


_HALF = frame("half") + frame(" of")
_WHOLE = frame("Hel") + frame("lo") + DONE
raw("no-type", b"connection: close", _WHOLE)
raw("cut-content-length", b"content-type: text/event-stream\r\ncontent-length: 5000", _HALF)
raw(
    "bad-chunk",
    b"content-type: text/event-stream\r\ntransfer-encoding: chunked",
    f"{len(_HALF):x}\r\n".encode() + _HALF + b"\r\nzz\r\n",
)
raw("html-untyped", b"content-type: text/plain\r\nconnection: close", b"<!doctype html><title>Log in</title>")
raw(
    "json-as-text",
    b"content-type: text/plain\r\nconnection: close",
    json.dumps({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}).encode(),
)
raw("bad-gzip", b"content-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close", b"no gzip at all")


@fault("slow-bytes")
async def _slow_bytes(reply: Reply) -> None:
    await reply.head()
    for at in range(0, len(_WHOLE), 7):
        await reply.send(_WHOLE[at : at + 7])
        await asyncio.sleep(0)
    await reply.end()


@fault("empty-deltas")
async def _empty_deltas(reply: Reply) -> None:
    await reply.head()
    await reply.until_closed(ping=frame(role="assistant", content=""))


@fault("idle-empty-deltas")
async def _idle_empty_deltas(reply: Reply) -> None:
    await reply.head()
    await reply.send(frame("a"))
    await reply.until_closed(ping=frame(content=""))


@fault("unasked-call")
async def _unasked_call(reply: Reply) -> None:
    """Calls a tool as soon as none is offered; says nothing where some are."""
    if "tools" in reply.seen.body:
        await FAULTS["blank"](reply)
    else:
        await reply.head()
        await reply.send(calls_frame({"index": 0, "id": "u", "function": {"name": "ls", "arguments": "{}"}}), DONE)
        await reply.end()


def only_with_tools(refusal: Fault) -> Fault:
    """A refusal of requests with tools; others are answered."""

    async def run(reply: Reply) -> None:
        await (refusal if "tools" in reply.seen.body else OK)(reply)

    return run


def shaped(*deltas: Any, key: str = "tool_calls") -> Fault:
    """One reply of tool calls, fragment by fragment, then a healthy one."""
    parts = [frame(**{key: delta if key == "function_call" else [delta]}) for delta in deltas]

    async def run(reply: Reply) -> None:
        if reply.nth > 1:
            await OK(reply)
            return
        await reply.head()
        await reply.send(*parts, frame(finish="tool_calls"), b"data: [DONE]\n\n")
        await reply.end()

    return run


def _call(name: str, arguments: str) -> Any:
    return {"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}


SHAPED: dict[str, Fault] = {
    **{name: shaped(*deltas) for name, deltas in SHAPES.items()},
    "old function_call": shaped({"name": "ls", "arguments": "{"}, {"arguments": "}"}, key="function_call"),
    "without ids": shaped({"function": {"name": "ls", "arguments": "{}"}}, {"function": {"name": "ls"}}),
    "broken JSON": shaped(_call("search", '{"query": "backu')),
    "unknown tool": shaped(_call("delete_everything", "{}")),
    "no name": shaped(_call("", "{}")),
    "outside the library": shaped(_call("read", '{"path": "../../etc/passwd"}')),
    "exploding pattern": shaped(_call("grep", '{"pattern": "(a+)+$"}')),
    "arguments as a list": shaped(_call("ls", "[]")),
    "deep arguments": shaped(_call("ls", "[" * 5000)),
}
"""Tool calls as servers stream them, and calls that can't be run."""
