"""The faults of a model server, by name: the table `tests/fault_server.py` serves."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.fault_server import Fault, Reply

OVERFLOWS = {
    "openai": {"code": "context_length_exceeded", "message": "This model's maximum context length is 8192 tokens."},
    "vllm": {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 4096."},
    "llamacpp": {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"},
    "lmstudio": {"message": "Trying to keep the first 9000 tokens when context the overflows."},
    "lmstudio-keep": {"message": "n_keep >= n_ctx"},
    "tgi": {"message": "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000"},
    "sglang": {"message": "The input (9000 tokens) is longer than the model's context length (4096 tokens)."},
    "ollama": {"message": "the prompt exceeds the context length"},
    "litellm": {"message": "ContextWindowExceededError: prompt is too long: 210000 tokens > 200000 maximum"},
    "tabby": {"message": "Prompt length 9000 is greater than max_seq_len 4096"},
}

TOOLS_REFUSED = {
    "ollama": (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    "llamacpp": (500, "tools param requires --jinja flag"),
    "llamacpp-old": (500, "Unsupported param: tools"),
    "llamacpp-stream": (500, "Cannot use tools with stream"),
    "ik-llamacpp": (500, "tools param is not fully supported yet"),
    "vllm": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "openrouter": (404, "No endpoints found that support tool use. To learn more, visit the routing page."),
    "deepinfra": (405, "Tool calling is not supported for model: some/model"),
    "deepseek": (400, "deepseek-reasoner does not support Function Calling"),
    "volcengine": (400, "the requested model does not support function calling, please switch to a different model"),
    "gemini": (400, "Function calling is not enabled for models/gemma-3-12b-it"),
    "gemini-mode": (400, "Tool use with function calling is unsupported"),
    "groq": (400, "`tool calling` is not supported with this model"),
    "bedrock": (400, "This model doesn't support tool use in streaming mode."),
    "litellm": (400, "UnsupportedParamsError: x does not support parameters: ['tools'], for model=some/model"),
    "litellm-dict": (400, "UnsupportedParamsError: x does not support parameters: {'tools': [{'type': 'function'}]}"),
    "gateway": (503, "The tool call is not supported"),
    "openai": (400, "Unsupported parameter: 'tools' is not supported with this model."),
    "strict": (400, "Unrecognized request argument supplied: tools"),
}
"""Server → status and text of its refusal of a request with tools."""


def frame(text: str | None = None, finish: str | None = None, **delta: Any) -> bytes:
    """One chunk of a stream."""
    body = {**({} if text is None else {"content": text}), **delta}
    return (
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": body, "finish_reason": finish}]}).encode() + b"\n\n"
    )


DONE = frame(finish="stop") + b"data: [DONE]\n\n"


FAULTS: dict[str, Fault] = {}


def fault(name: str) -> Callable[[Fault], Fault]:
    def add(function: Fault) -> Fault:
        FAULTS[name] = function
        return function

    return add


def streamed(name: str, *parts: bytes, end: bool = True) -> None:
    """A fault that is a fixed stream."""

    async def run(reply: Reply) -> None:
        await reply.head()
        await reply.send(*parts)
        if end:
            await reply.end()

    FAULTS[name] = run


def answered(name: str, status: str, payload: object, **headers: str) -> None:
    """A fault that is a fixed answer: bytes are a web page, the rest JSON."""

    async def run(reply: Reply) -> None:
        if isinstance(payload, bytes):
            await reply.whole(status, "text/html", payload, **headers)
        else:
            await reply.json(status, payload, **headers)

    FAULTS[name] = run


SECRET_TEXT = "provider words sk-abcdef123456 <|channel|>"
streamed("ok", frame(role="assistant", content=""), frame("Hel"), frame("lo"), DONE)
streamed(
    "usage",
    frame("a"),
    frame(finish="stop"),
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n',
    b"data: [DONE]\n\n",
)
streamed("cut", frame("half"), frame(" of"))
streamed("empty")
streamed("pings-then-ok", b": ping\n\n", frame("x"), DONE)
streamed("bad-frames", frame("a"), *[b"data: nonsense\n\n"] * 4, frame("b"), DONE)
streamed("huge-line", frame("a"), b"data: " + b"x" * (2 * 1024 * 1024))
streamed("huge-reply", frame("a"), *[frame("y" * 500_000)] * 20, DONE)
streamed("invalid-utf8", b'data: {"choices":[{"delta":{"content":"a\xffb"}}]}\n\n', DONE)
streamed("error-data", frame("a"), b'data: {"error":{"message":"' + SECRET_TEXT.encode() + b'"}}\n\n')
streamed("error-event", frame("a"), b"event: error\ndata: " + SECRET_TEXT.encode() + b"\n\n")
streamed("error-line", frame("a"), b'error: {"message":"' + SECRET_TEXT.encode() + b'"}\n\n')
streamed("overflow-event", b'data: {"error":{"message":"the request exceeds the available context size"}}\n\n')
streamed("think", frame("<thi"), frame("nk>Hm"), frame("m.</th"), frame("ink>\n\nYes."), DONE)
streamed("inert", frame("<"), frame("\u200bthink>Hm.<\u200b/think>Say [\u200b"), frame("\u200bINST]."), DONE)
streamed("reasoning", frame(reasoning_content="Hmm."), frame("Yes."), DONE)
streamed(
    "tools",
    frame("t"),
    frame(tool_calls=[{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]),
    frame(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"p":'}}]),
    frame(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
    DONE,
)
answered("html", "200 OK", b"<!doctype html><title>Log in</title>")
answered("json", "200 OK", {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]})
answered("models", "200 OK", {"object": "list", "data": [{"id": "m"}]})
answered("json-other", "200 OK", {"hello": "world"})
answered("401", "401 Unauthorized", {"error": {"message": f"Incorrect API key provided: {SECRET_TEXT}"}})
answered("403", "403 Forbidden", {"error": {"message": SECRET_TEXT}})
answered("404", "404 Not Found", {"detail": "Not Found"})
answered("404-html", "404 Not Found", b"<html>nginx</html>")
answered("404-model", "404 Not Found", {"error": {"message": 'model "m" not found, try pulling it first'}})
answered("400", "400 Bad Request", {"error": {"message": SECRET_TEXT}})
answered("408", "408 Request Timeout", {})
answered("429", "429 Too Many Requests", {"error": SECRET_TEXT})
answered("429-wait", "429 Too Many Requests", {}, retry_after="120")
answered("503", "503 Service Unavailable", {"error": {"message": SECRET_TEXT}})
answered("503-loading", "503 Service Unavailable", {"error": {"message": "Loading model", "code": 503}})
answered("500-huge", "500 Internal Server Error", b"<html>" + b"x" * 3_000_000)
answered("307", "307 Temporary Redirect", {}, location="http://user:pw@trap.example:99/v1/chat/completions?t=1")
for _name, _error in OVERFLOWS.items():
    answered(f"overflow-{_name}", "400 Bad Request", {"error": _error})
for _name, (_status, _text) in TOOLS_REFUSED.items():
    answered(f"tools-{_name}", f"{_status} Refused", {"error": {"message": _text, "code": _status}})
streamed(
    "tools-refused-event",
    b'data: {"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools"}}\n\n',
)


@fault("503-once")
async def _once(reply: Reply) -> None:
    await FAULTS["503" if reply.nth == 1 else "ok"](reply)


@fault("429-soon")
async def _soon(reply: Reply) -> None:
    if reply.nth == 1:
        await reply.json("429 Too Many Requests", {}, retry_after="0.01")
    else:
        await FAULTS["ok"](reply)


@fault("no-stream-options")
async def _no_stream_options(reply: Reply) -> None:
    if "stream_options" in reply.seen.body:
        await reply.json("400 Bad Request", {"detail": "extra field: stream_options"})
    else:
        await FAULTS["ok"](reply)


@fault("reset")
async def _reset(reply: Reply) -> None:
    await reply.head()
    await reply.send(frame("a"))
    await asyncio.sleep(0.05)
    reply.reset()


@fault("reset-first")
async def _reset_first(reply: Reply) -> None:
    reply.reset()


@fault("reset-once")
async def _reset_once(reply: Reply) -> None:
    if reply.nth == 1:
        reply.reset()
    else:
        await FAULTS["ok"](reply)


@fault("reset-after-finish")
async def _reset_after_finish(reply: Reply) -> None:
    await reply.head()
    await reply.send(frame("a", finish="stop"))
    await asyncio.sleep(0.05)
    reply.reset()


@fault("open-after-finish")
async def _open_after_finish(reply: Reply) -> None:
    await reply.head()
    await reply.send(frame("a", finish="stop"))
    await reply.until_closed()


@fault("hang")
async def _hang(reply: Reply) -> None:
    await reply.until_closed()


@fault("pings")
async def _pings(reply: Reply) -> None:
    await reply.head()
    await reply.until_closed(ping=b": ping\n\n")


@fault("idle")
async def _idle(reply: Reply) -> None:
    await reply.head()
    await reply.send(frame("a"))
    await reply.until_closed(ping=b": ping\n\n")


@fault("endless")
async def _endless(reply: Reply) -> None:
    await reply.head()
    await reply.until_closed(tick_s=0.02, ping=frame("a"))


@fault("late")
async def _late(reply: Reply) -> None:
    await asyncio.sleep(0.3)
    await FAULTS["ok"](reply)


streamed("strips", frame("a"), frame("x" * 120), frame("b"), DONE)


@fault("held-reset-once")
async def _held_reset_once(reply: Reply) -> None:
    if reply.nth == 1:
        await FAULTS["reset"](reply)
    else:
        await FAULTS["ok"](reply)
