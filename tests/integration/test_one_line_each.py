"""Whatever is refused, or breaks off, leaves exactly one line in the log, without a traceback."""

import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.asgi import Client, in_app
from tests.library_api import upload
from tests.scripted import ScriptedModel, ScriptedSearch


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("app.edge")]


@pytest.mark.parametrize(
    ("method", "path", "body", "line"),
    [
        ("GET", "/nowhere", b"", "request_refused path=/nowhere status=404 code=not_found"),
        ("PUT", "/api/chats", b"", "request_refused path=/api/chats status=405 code=method_not_allowed"),
        ("POST", "/api/chat", b"x" * 2_000_000, "request_refused path=/api/chat status=413 code=too_large"),
        ("POST", "/api/chat", b"{", "request_refused path=/api/chat status=422 code=invalid_input"),
        ("GET", "/chats/77", b"", "request_refused path=/chats/77 status=404 code=chat_not_found"),
    ],
)
def test_a_refused_request_leaves_one_line(
    settings: Settings, caplog: pytest.LogCaptureFixture, method: str, path: str, body: bytes, line: str
) -> None:
    """Path, status and code; nothing of what was sent."""
    caplog.set_level(logging.INFO)
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        client.request(method, path, content=body, headers={"content-type": "application/json"})
    assert lines_of(caplog) == [line]


@pytest.mark.parametrize("path", ["/api/documents", "/ui/library/files"])
def test_a_file_that_is_too_large_leaves_one_line_and_no_file(
    settings: Settings, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """Its name stays one word in the line, whatever stands in it; nothing of it stays on disk."""
    caplog.set_level(logging.INFO)
    small = settings.model_copy(update={"upload_max_mb": 1})
    with TestClient(create_app(small), base_url="http://127.0.0.1:8642") as client:
        file = ("a big\u2028one.md", b"x" * 1_100_000)
        reply = client.post(path, files=[("files", file)]) if "ui" in path else upload(client, file)
        assert reply.status_code == 413
    assert lines_of(caplog) == ['upload_refused name="a bigone.md" code=upload_too_large']
    assert [found for found in Path(settings.files_dir).rglob("*") if found.is_file()] == []


@pytest.mark.parametrize("path", ["/api/documents", "/ui/library/files"])
def test_an_upload_that_breaks_off_is_no_failure(
    settings: Settings, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """A browser that goes away in the middle: one plain line, nothing on disk, no row."""
    caplog.set_level(logging.INFO)
    app = create_app(settings, chat_for=ScriptedModel(["Yes."]), searcher=ScriptedSearch())
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n\r\nhalf of'

    async def test(client: Client) -> None:
        messages = [
            {"type": "http.request", "body": head, "more_body": True},
            {"type": "http.disconnect"},
        ]
        sent: list[object] = []

        async def receive() -> object:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: object) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"multipart/form-data; boundary=x")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8642),
        }
        await app(scope, receive, send)  # pyright: ignore[reportArgumentType] - as a server does
        assert sent == []
        listed = await client.get("/api/documents")
        assert (await listed.json())["documents"] == []

    in_app(app, test)
    assert lines_of(caplog) == [f"request_left method=POST path={path}"]
    assert [found for found in Path(settings.files_dir).rglob("*") if found.is_file()] == []
