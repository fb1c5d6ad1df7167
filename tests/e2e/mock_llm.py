"""The mock model: an OpenAI-compatible server on a real socket, for tests and benches.

`MockLlm()` runs it in a thread; `python -m tests.e2e.mock_llm --port 9099 [--rate 20]` runs it alone. What it answers
is the table in `tests/e2e/mock_flows.py`. `GET /__requests` tells what it was asked, when each reply began, ended or
was left, and when how much of it had been said (`time.monotonic()` seconds); `POST /__reset` forgets it.
"""

import argparse
import asyncio
import base64
import json
import logging
import socket
import struct
import threading
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

import uvicorn

from app.rag.prompts import parse_question
from tests.e2e import mock_citing as _citing_flows  # noqa: F401 - adds its rows to the table
from tests.e2e import mock_scaffolding as _more_flows  # noqa: F401 - likewise
from tests.e2e import mock_tools as _tool_flows  # noqa: F401 - likewise
from tests.e2e import mock_whole as _whole_flows  # noqa: F401 - likewise
from tests.e2e.mock_flows import Call, Delta, Refuse, choose

EMBED_DIM = 64


@dataclass
class Record:
    """One request as seen here; times in seconds of the monotonic clock. `said` holds, for each piece of the answer,
    when it was sent and how many characters the answer had with it."""

    path: str
    body: dict[str, Any]
    at: float
    first_at: float | None = None
    ended_at: float | None = None
    disconnected_at: float | None = None
    said: list[tuple[float, int]] = field(default_factory=list)

    @property
    def tools_absent(self) -> bool:
        return not self.body.get("tools")


@dataclass
class MockApp:
    """The ASGI application."""

    models: list[str] = field(default_factory=lambda: ["mock-model"])
    rate: float = 0.0
    records: list[Record] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        path, body = scope["path"], b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        out = _Out(send)
        match scope["method"], path:
            case "GET", "/v1/models":
                rows = [{"id": name, "object": "model", "owned_by": "mock"} for name in self.models]
                await out.json(200, {"object": "list", "data": rows})
            case "GET", "/__requests":
                rows = [asdict(record) | {"tools_absent": record.tools_absent} for record in self.records]
                await out.json(200, {"count": len(rows), "requests": rows})
            case "POST", "/__reset":
                self.records.clear()
                await out.json(200, {})
            case "POST", "/v1/embeddings":
                await out.json(200, _embeddings(self._record(path, body).body))
            case "POST", "/v1/chat/completions":
                await self._chat(self._record(path, body), receive, out)
            case _:
                await out.json(404, {"error": {"message": "no such address"}})

    def _record(self, path: str, body: bytes) -> Record:
        record = Record(path, json.loads(body), time.monotonic())
        self.records.append(record)
        return record

    async def _chat(self, record: Record, receive: Any, out: "_Out") -> None:
        """Runs the flow until it ends or the client leaves, whichever is first."""
        question = parse_question(record.body["messages"])
        same = sum(
            parse_question(seen.body["messages"]) == question for seen in self.records if seen.path == record.path
        )
        call = Call(record.body["messages"], record.body, same, self.rate)
        answer = asyncio.create_task(self._answer(call, record, out))
        left = asyncio.create_task(_until_left(receive))
        try:
            await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                record.disconnected_at = time.monotonic()
                answer.cancel()
            with suppress(asyncio.CancelledError):
                await answer
        finally:
            left.cancel()

    async def _answer(self, call: Call, record: Record, out: "_Out") -> None:
        deltas = choose(call)(call)
        try:
            first = await anext(deltas)
        except Refuse as refusal:
            wait = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
            await out.whole(refusal.status, refusal.kind, refusal.body.encode(), wait)
            return
        if call.body.get("stream"):
            await self._stream(call, record, out, _with_first(first, deltas))
        else:
            text = "".join([delta.get("content", "") async for delta in _with_first(first, deltas)])
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            await out.json(200, {"object": "chat.completion", "choices": [choice], "usage": _usage(call, text)})
        record.ended_at = time.monotonic()

    async def _stream(self, call: Call, record: Record, out: "_Out", deltas: AsyncIterator[Delta]) -> None:
        await out.head(200, "text/event-stream")
        head = {"id": f"chatcmpl-{id(record)}", "object": "chat.completion.chunk", "created": int(time.time()),
                "model": self.models[0] if self.models else "mock-model"}  # fmt: skip
        said, called = "", False
        async for delta in deltas:
            if delta and record.first_at is None:
                record.first_at = time.monotonic()
            if text := delta.get("content"):
                said += text
                record.said.append((time.monotonic(), len(said)))
            await out.event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            called = called or "tool_calls" in delta
        reason = "tool_calls" if called else "stop"
        await out.event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if (call.body.get("stream_options") or {}).get("include_usage"):
            await out.event({**head, "choices": [], "usage": _usage(call, said)})
        await out.more(b"data: [DONE]\n\n")
        await out.end()


class _Out:
    """Writes one answer."""

    def __init__(self, send: Any) -> None:
        self._send = send

    async def head(self, status: int, kind: str, more: dict[str, str] | None = None) -> None:
        headers = [(name.encode(), value.encode()) for name, value in {"content-type": kind, **(more or {})}.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def more(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, body: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": body})

    async def event(self, payload: object) -> None:
        await self.more(b"data: " + json.dumps(payload).encode() + b"\n\n")

    async def whole(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
        await self.head(status, kind, more)
        await self.end(body)

    async def json(self, status: int, payload: object) -> None:
        await self.whole(status, "application/json", json.dumps(payload).encode())


class MockLlm:
    """The mock in a thread of this process: `with MockLlm() as mock: mock.base_url`."""

    def __init__(self, *, models: list[str] | None = None, rate: float = 0.0, port: int = 0) -> None:
        self.app = MockApp(["mock-model"] if models is None else models, rate)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._server = uvicorn.Server(_config(self.app))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def requests(self) -> list[Record]:
        """Chat requests so far, oldest first."""
        return [record for record in self.app.records if record.path == "/v1/chat/completions"]

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started:
            assert self._thread.is_alive(), "the mock model did not start"
            assert time.monotonic() < deadline, "the mock model takes too long to start"
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Closes the server with what it is saying; from now on nothing answers at its address."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()


def _config(app: MockApp) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a cut connection is a raised `Cut`
    return uvicorn.Config(
        app, lifespan="off", ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )


async def _until_left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _with_first(first: Delta, rest: AsyncIterator[Delta]) -> AsyncIterator[Delta]:
    yield {"role": "assistant", **first}
    async for delta in rest:
        yield delta


def _usage(call: Call, said: str) -> dict[str, int]:
    prompt = sum(len(str(message.get("content")).split()) for message in call.messages)
    return {"prompt_tokens": prompt, "completion_tokens": len(said.split()), "total_tokens": prompt + len(said.split())}


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """A vector per text: its words, hashed; texts that share words are near each other."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        vector = [1e-6] * EMBED_DIM
        for word in str(text).lower().split():
            vector[zlib.crc32(word.encode()) % EMBED_DIM] += 1.0
        length = sum(value * value for value in vector) ** 0.5
        vector = [value / length for value in vector]
        packed = base64.b64encode(struct.pack(f"<{EMBED_DIM}f", *vector)).decode()
        coded = packed if body.get("encoding_format") == "base64" else vector
        rows.append({"object": "embedding", "index": index, "embedding": coded})
    used = sum(len(str(text).split()) for text in texts)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": rows, "model": body.get("model"), "usage": usage}


def main() -> None:
    """Runs the mock until it is interrupted."""
    parser = argparse.ArgumentParser(description="The mock model of Docent's tests.")
    parser.add_argument("--port", type=int, default=9099)
    parser.add_argument("--rate", type=float, default=0.0, help="tokens a second and stream; 0 sends all at once")
    parser.add_argument("--model", action="append", help="a model to list; may be given more than once")
    options = parser.parse_args()
    config = _config(MockApp(options.model or ["mock-model"], options.rate))
    config.port = options.port
    print(f"mock model at http://127.0.0.1:{options.port}/v1", flush=True)
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
