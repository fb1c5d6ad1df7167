"""A client that speaks ASGI to the application in the test's own event loop: real streaming, real disconnects.

`TestClient` collects a whole response before it gives anything; turns have to be watched, left and stopped while they
run.
"""

import asyncio
import json as jsonlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from tests.sse import Decoder, Frame

HOST = "127.0.0.1:8642"
DEADLINE_S = 20


class Reply:
    """A response that is still running. `status` and `headers` are there, the body comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.decoder = Decoder()
        self.task: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._left = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self._started.set()
        else:
            self._chunks.put_nowait(message.get("body", b""))
            if not message.get("more_body"):
                self._chunks.put_nowait(None)

    async def leave(self) -> None:
        """Closes the connection, as a tab does."""
        self._left.set()
        assert self.task is not None
        await asyncio.wait_for(self.task, DEADLINE_S)

    async def body(self) -> bytes:
        """The rest of the body."""
        parts: list[bytes] = []
        while (chunk := await asyncio.wait_for(self._chunks.get(), DEADLINE_S)) is not None:
            parts.append(chunk)
        return b"".join(parts)

    async def json(self) -> Any:
        return jsonlib.loads(await self.body())

    async def frames(self) -> AsyncGenerator[Frame]:
        """Frames as they come, until the stream ends."""
        while (chunk := await asyncio.wait_for(self._chunks.get(), DEADLINE_S)) is not None:
            for frame in self.decoder.feed(chunk):
                yield frame

    async def all_frames(self) -> list[Frame]:
        return [frame async for frame in self.frames()]

    async def until(self, event: str) -> list[Frame]:
        """Frames up to the first one named `event`."""
        seen: list[Frame] = []
        async for frame in self.frames():
            seen.append(frame)
            if frame.event == event:
                return seen
        raise AssertionError(f"the stream ended without {event}: {[frame.event for frame in seen]}")


class Client:
    """Requests to one application whose lifespan runs."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    async def open(
        self, method: str, path: str, *, json: Any = None, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Reply:
        """Sends a request and returns once the response has begun."""
        if json is not None:
            body = jsonlib.dumps(json).encode()
        given = {"host": HOST, "content-type": "application/json", "content-length": str(len(body))} | (headers or {})
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8642),
        }
        reply = Reply()
        received = False

        async def receive() -> Any:
            nonlocal received
            if not received:
                received = True
                return {"type": "http.request", "body": body, "more_body": False}
            await reply._left.wait()
            return {"type": "http.disconnect"}

        reply.task = asyncio.create_task(self.app(scope, receive, reply.send))
        started = asyncio.create_task(reply._started.wait())
        await asyncio.wait([reply.task, started], timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
        if not reply.status:
            started.cancel()
            await reply.task
            raise AssertionError("no response")
        return reply

    async def get(self, path: str, **more: Any) -> Reply:
        return await self.open("GET", path, **more)

    async def post(self, path: str, json: Any = None, **more: Any) -> Reply:
        return await self.open("POST", path, json=json, **more)

    async def ask(self, message: str = "How often are backups made?", **more: Any) -> Reply:
        """A question with a key of its own."""
        self.asked = getattr(self, "asked", 0) + 1
        return await self.post("/api/chat", {"message": message, "client_key": f"key-{self.asked}", **more})


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[Client]:
    """The application with its lifespan around it."""
    async with app.router.lifespan_context(app):
        yield Client(app)


def in_app(app: FastAPI, test: Callable[[Client], Awaitable[None]]) -> None:
    """Runs an asynchronous test against the application."""

    async def run() -> None:
        async with asyncio.timeout(3 * DEADLINE_S), serving(app) as client:
            await test(client)

    asyncio.run(run())
