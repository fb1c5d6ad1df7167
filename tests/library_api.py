"""The library over HTTP: an application with its worker, and the calls that tests repeat."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.fake_embedder import WordEmbedder
from tests.waiting import until


@contextmanager
def serving(settings: Settings) -> Generator[TestClient]:
    app = create_app(settings, embedder=WordEmbedder())
    with TestClient(app, base_url="http://localhost", headers={"Origin": "http://localhost"}) as client:
        yield client


def upload(client: TestClient, *files: tuple[str, bytes | str]) -> Any:
    return client.post("/api/documents", files=[("files", (name, content)) for name, content in files])


def documents(client: TestClient, **params: Any) -> list[dict[str, Any]]:
    reply = client.get("/api/documents", params=params)
    assert reply.status_code == 200, reply.text
    return reply.json()["documents"]


def settle(client: TestClient) -> None:
    def is_over() -> bool:
        return all(row["status"] in ("ready", "failed") for row in documents(client, limit=200))

    until(is_over, "every document is ready or failed")
