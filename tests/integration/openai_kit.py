"""Docent on a real socket with a model server of fixed answers behind it, asked by the official client.

`Docent(settings)` serves one application from a thread; `Upstream(answers)` is a model server that says exactly the
bytes it is told and keeps every request as it came.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx2
import openai
import pytest
import uvicorn
from sqlalchemy import select
from starlette.types import Receive, Scope, Send

from app.edge.deps import Services
from app.edge.head_limit import BoundedHead
from app.main import create_app
from app.settings import Settings
from app.store.models.loop_guard import LoopGuardScan, LoopGuardTrip
from tests.integration.turn_kit import fields
from tests.waiting import until


def sse(*events: object, done: bool = True) -> bytes:
    """Events as a stream's bytes."""
    lines = [b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n" for event in events]
    return b"".join(lines) + (b"data: [DONE]\n\n" if done else b"")


def chunk(content: str | None = None, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    """One chunk of a stream; `more` are further fields of its delta."""
    delta = {**({} if content is None else {"content": content}), **more}
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [choice]}


def whole(content: str | None = "Thirty days.", **more: Any) -> dict[str, Any]:
    """A reply that comes as one; `more` are further fields of its message."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **more}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    return {"id": "c", "object": "chat.completion", "created": 5, "model": "m", "choices": [choice], "usage": usage}


@dataclass(frozen=True)
class Answer:
    """Bytes go as they are, several parts one by one, anything else as JSON. `then` is what follows; `silent`: not even
    a head comes; `refused`: the connection is closed instead of an answer."""

    body: Any = b""
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    then: Literal["end", "cut", "hang"] = "end"
    silent: bool = False
    refused: bool = False

    @property
    def parts(self) -> list[bytes]:
        if isinstance(self.body, tuple):
            return list(self.body)
        return [self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()]


SILENT = Answer(silent=True, then="hang")


def stream(*events: object, **more: Any) -> Answer:
    """A streamed answer."""
    return Answer(sse(*events), kind="text/event-stream", **more)


SAID = stream(chunk("Thirty "), chunk("days."), chunk(finish="stop"))


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes
    closed_at: float | None = None

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Upstream:
    """A model server in a thread: chat requests get the answers in their order, the last one again and again."""

    def __init__(self, *answers: Answer, models: Sequence[str] = ("m",)) -> None:
        self.answers = answers or (SAID,)
        self.models = Answer({"object": "list", "data": [{"id": name, "owned_by": "us"} for name in models]})
        self.seen: list[Asked] = []
        self.listings: list[Asked] = []
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def says(self, *answers: Answer) -> Self:
        """Other answers from now on, and nothing seen yet."""
        self.answers = answers or (SAID,)
        self.seen, self.listings = [], []
        return self

    def answer_to(self, asked: Asked) -> Answer:
        if asked.path.endswith("/models"):
            self.listings.append(asked)
            return self.models
        if not asked.path.endswith("/chat/completions"):
            return Answer({}, status=404)  # Docent asks beside a request what the server is
        self.seen.append(asked)
        return self.answers[min(len(self.seen), len(self.answers)) - 1]

    def until_closed(self, asked: Asked, connection: socket.socket) -> None:
        connection.settimeout(0.02)
        while not self._over.is_set():
            try:
                if not connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        asked.closed_at = time.monotonic()


def _handler(upstream: Upstream) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
            answer = upstream.answer_to(asked)
            if answer.refused:
                self.close_connection = True
                return
            if not answer.silent:
                self._say(answer)
            if answer.then == "hang":
                upstream.until_closed(asked, self.connection)
            self.close_connection = answer.then != "end"

        def _say(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {"content-type": answer.kind, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for part in filter(None, answer.parts):
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            if answer.then == "end":
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


class Docent:
    """One application on a free port, its lifespan around it. `parts` go to `create_app`."""

    def __init__(self, settings: Settings, upstream: Upstream | None = None, **parts: Any) -> None:
        changes: dict[str, Any] = {"llm_retry_max": 0}
        if upstream is not None:
            changes["llm_base_url"] = upstream.base_url
        self.settings = settings.model_copy(update={**changes, **parts.pop("changes", {})})
        self._upstream = upstream
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        if self.settings.llm_base_url == "itself":
            self.settings = self.settings.model_copy(update={"llm_base_url": f"http://127.0.0.1:{self.port}/v1"})
        self.app = create_app(self.settings, discovery_ports=(), **parts)
        self.in_flight = 0
        config = uvicorn.Config(
            self._counted, interface="asgi3", ws="none", log_config=None, access_log=False, http=BoundedHead
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self.url = f"http://127.0.0.1:{self.port}/v1"

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, and how many completions it is busy with: a request's line comes before its end."""
        counts = scope["type"] == "http" and scope["path"].endswith("/chat/completions")
        self.in_flight += counts
        try:
            await self.app(scope, receive, send)
        finally:
            self.in_flight -= counts

    @property
    def upstream(self) -> Upstream:
        assert self._upstream is not None
        return self._upstream

    @property
    def services(self) -> Services:
        services: Services = self.app.state.docent
        return services

    def __enter__(self) -> Self:
        self._thread.start()
        until(lambda: self._server.started or not self._thread.is_alive(), "Docent serves")
        assert self._thread.is_alive()
        self.client = openai.OpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=20)
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20, trust_env=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.http.close()
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()

    def ask(self, text: str = "How long?", **more: Any) -> Any:
        """One completion through the official client."""
        given: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        return self.client.chat.completions.create(**given)

    def post(self, body: Any, **headers: str) -> httpx2.Response:
        """One completion by hand: bytes as they are, anything else as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"content-type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
        return self.http.post("/v1/chat/completions", content=raw, headers=named)

    def trips(self) -> list[LoopGuardTrip]:
        """The guard's log after a flush."""
        self.services.guard_log.flush()
        return self.services.database.read(
            lambda session: list(session.scalars(select(LoopGuardTrip).order_by(LoopGuardTrip.id)))
        )

    def scanned(self) -> int:
        """How many requests the guard's log counts after a flush."""
        self.services.guard_log.flush()
        return self.services.database.read(lambda session: sum(session.scalars(select(LoopGuardScan.scanned))))


def ended_before_the_next(docent: Docent) -> Iterator[None]:
    """Every request of a test has written its line before the next one listens; an autouse fixture of modules whose
    tests share an application."""
    yield
    until(lambda: docent.in_flight == 0, "every request ended")


@contextmanager
def standing(folder: Path, **parts: Any) -> Iterator[Docent]:
    """One application for all tests of a module, before one model server (`docent.upstream.says(…)`)."""
    settings = Settings(_env_file=None, data_dir=folder / "data")
    with Upstream() as upstream, Docent(settings, upstream, **parts) as docent:
        yield docent


def proxy_lines(caplog: pytest.LogCaptureFixture, count: int) -> list[dict[str, str]]:
    """The lines of `count` requests; each is written once its answer is out."""
    found: list[str] = []

    def come() -> bool:
        lines = [record.getMessage() for record in caplog.records if record.name == "app.proxy"]
        found[:] = [line for line in lines if line.startswith("proxy_chat ")]
        return len(found) >= count

    until(come, f"{count} lines")
    assert len(found) == count
    return [fields(line) for line in found]
