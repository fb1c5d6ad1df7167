"""A server of fixed answers in a thread: `{"GET /v1/models": Answer(…)}`. Plays the model servers people run."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT = "POST /v1/chat/completions"
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}\n\ndata: [DONE]\n\n'


@dataclass(frozen=True)
class Answer:
    """Bytes go as they are, anything else as JSON."""

    body: Any
    status: int = 200
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


STREAM = Answer(CHUNK, kind="text/event-stream")


@dataclass
class Running:
    """The server's port and what it was asked: `(route, headers, body)`."""

    port: int
    seen: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, route: str) -> list[Any]:
        return [body for seen, _, body in self.seen if seen == route]


@contextmanager
def routes(table: Mapping[str, Answer]) -> Iterator[Running]:
    """Serves `table` until left; every other route is a 404."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            route = f"{self.command} {self.path}"
            running.seen.append((route, dict(self.headers.items()), json.loads(body) if body else None))
            answer = table.get(route, Answer({"detail": "Not Found"}, 404))
            content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"content-type": answer.kind, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Running(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def listing(*ids: str, **fields: Any) -> Answer:
    """A model list."""
    return Answer({"object": "list", "data": [{"id": name, "object": "model", **fields} for name in ids]})


OLLAMA = {
    "GET /v1/models": listing("nomic-embed-text:latest", "qwen3:8b", owned_by="library"),
    CHAT: STREAM,
    "GET /api/version": Answer({"version": "0.12.6"}),
    "GET /api/ps": Answer({"models": [{"name": "qwen3:8b", "context_length": 8192}]}),
    "POST /api/show": Answer({"model_info": {"qwen3.context_length": 40960}}),
}
LLAMA_CPP = {
    "GET /v1/models": listing("gemma.gguf", owned_by="llamacpp"),
    CHAT: STREAM,
    "GET /props": Answer({"default_generation_settings": {"n_ctx": 16384}, "build_info": "b6700-abc"}),
}
LM_STUDIO = {
    "GET /v1/models": listing("a", "b"),
    CHAT: STREAM,
    "GET /api/v0/models": Answer({"data": [{"id": "a", "max_context_length": 32768, "loaded_context_length": 4096}]}),
}
VLLM = {
    "GET /v1/models": listing("org/model", owned_by="vllm", max_model_len=12288),
    CHAT: STREAM,
    "GET /version": Answer({"version": "0.11.0"}),
}
