"""A web server in a thread whose pages a test can change: plain ones with validators, and ones that misbehave."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CERTIFICATE = Path(__file__).parent / "fixtures" / "wiki_example.pem"
"""Of `wiki.example`, signed by itself, with its key."""


@dataclass(frozen=True)
class Page:
    """An answer. With an `etag` or `modified` it is 304 to whoever has it already."""

    body: bytes | str = b""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    etag: str | None = None
    modified: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Raw = Callable[[socket.socket, threading.Event], None]
"""An answer written by hand; the event is set when the server ends."""


def moved(to: str, status: int = 302) -> Page:
    """A redirect."""
    return Page(status=status, headers={"location": to})


def article(title: str, *paragraphs: str) -> str:
    """A page with furniture around its content."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    head = f"<!doctype html><html><head><title>{title} - Wiki</title><script src='/never.js'></script></head>"
    return (
        f"{head}<body><nav><a href='/'>Home</a></nav><main><h1>{title}</h1>{text}<img src='/never.png'></main></body>"
    )


@dataclass
class PageServer:
    """The running server: `pages` by path, and what it was asked, as `(path, headers)`."""

    port: int
    pages: dict[str, Page | Raw]
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    """The name that each TLS client asked for."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, path: str) -> list[dict[str, str]]:
        """The headers of every request for `path`."""
        return [headers for seen, headers in self.seen if seen == path]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that went away, or one that trusted no certificate


@contextmanager
def serving_pages(pages: Mapping[str, Page | Raw], *, tls: bool = False) -> Iterator[PageServer]:
    """Serves `pages` until left; every other path is a 404."""
    ending = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            running.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            page = running.pages.get(self.path, Page("Not Found", 404))
            self.close_connection = True
            if isinstance(page, Page):
                self._answer(page)
                return
            with suppress(OSError):  # the client has had enough, which is what such pages are for
                page(self.connection, ending)

        def _answer(self, page: Page) -> None:
            is_known = bool(page.etag) and self.headers.get("if-none-match") == page.etag
            is_known = is_known or (bool(page.modified) and self.headers.get("if-modified-since") == page.modified)
            body = b"" if is_known else page.body.encode() if isinstance(page.body, str) else page.body
            self.send_response(304 if is_known else page.status)
            validators = {"etag": page.etag, "last-modified": page.modified}
            headers = {"content-type": page.kind, **{name: text for name, text in validators.items() if text}}
            headers = {**headers, "content-length": str(len(body)), **page.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    running = PageServer(server.server_address[1], dict(pages))
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        context.sni_callback = lambda _socket, name, _context: running.names.append(name)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


def endless(connection: socket.socket, ending: threading.Event) -> None:
    """A body without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not ending.is_set():
        connection.sendall(b"and so on " * 6000)


def dripping(connection: socket.socket, ending: threading.Event) -> None:
    """A byte now and then, for ever: never silent for long."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while not ending.wait(0.05):
        connection.sendall(b".")


def silent(connection: socket.socket, ending: threading.Event) -> None:
    """Nothing at all."""
    ending.wait(30)


def written(data: bytes) -> Raw:
    """Bytes as they are, then the end."""

    def answer(connection: socket.socket, ending: threading.Event) -> None:
        connection.sendall(data)

    return answer
