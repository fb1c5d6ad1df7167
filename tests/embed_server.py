"""An embeddings server in a thread whose answers can be held back; texts that share words get like vectors."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from app.search.embeddings import Embedder, FloatMatrix
from tests.fake_embedder import WordEmbedder

HELD_S = 60
Embed = Callable[[list[str]], FloatMatrix]


@dataclass
class EmbedServer:
    """`texts` is how many were embedded, `keys` which keys came with requests. `hold_after(n)` lets n more requests
    through and holds the rest until `let_go`."""

    port: int
    embed: Embed
    texts: int = 0
    keys: list[str] = field(default_factory=list)
    _left: int = 10**9
    _of: str = ""
    _go: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def hold_after(self, requests: int, of: str = "") -> None:
        """Answers so many more requests, then holds; others than those in which `of` stands are answered as ever."""
        with self._lock:
            self._left, self._of = requests, of
            self._go.clear()

    def let_go(self) -> None:
        with self._lock:
            self._left = 10**9
            self._go.set()

    def answer(self, body: Any) -> Any:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        with self._lock:
            counts = any(self._of in text for text in texts)
            self._left -= counts
            is_held = counts and self._left < 0
        if is_held:
            self._go.wait(HELD_S)
        matrix = self.embed(texts)
        with self._lock:
            self.texts += len(texts)
        rows = [{"index": place, "embedding": row.tolist()} for place, row in enumerate(matrix)]
        return {"object": "list", "data": rows, "model": body["model"]}


def squeezed(embedder: Embedder, common: float) -> Embed:
    """The vectors of `embedder` with one more number, the same for all: each cosine c becomes common + (1 - common) c,
    as with models whose vectors all point one way."""

    def embed(texts: list[str]) -> FloatMatrix:
        matrix = embedder.embed_passages(texts) * np.float32((1 - common) ** 0.5)
        return np.column_stack((matrix, np.full(len(texts), common**0.5, dtype=np.float32)))

    return embed


@contextmanager
def embed_server(
    dim: int = 48, models: tuple[str, ...] = ("words-embed",), embed: Embed | None = None
) -> Iterator[EmbedServer]:
    """Serves `/v1/embeddings` and `/v1/models` until left, vectors of words unless `embed` makes others."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            answer: Any = {"object": "list", "data": [{"id": name, "object": "model"} for name in models]}
            status = 200
            if self.path == "/v1/embeddings":
                body = json.loads(raw)
                running.keys.append(self.headers.get("authorization", ""))
                status = 200 if body["model"] in models else 404
                answer = running.answer(body) if status == 200 else {"error": {"message": "model not found"}}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # whoever asked may have been killed meanwhile
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = EmbedServer(server.server_address[1], embed or WordEmbedder(dim=dim).embed_passages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield running
    finally:
        running.let_go()
        server.shutdown()
        thread.join()
        server.server_close()
