"""The description of the API: `/api/openapi.json`."""

from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings


def test_the_api_describes_itself_streams_included(settings: Settings) -> None:
    """The description can be made of every route, and says what kind of answer a stream is."""
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        reply = client.get("/api/openapi.json")
    assert reply.status_code == 200
    paths = reply.json()["paths"]
    for path, method in (("/api/chat", "post"), ("/api/turns/{turn_id}/events", "get")):
        assert "text/event-stream" in paths[path][method]["responses"]["200"]["content"]
    assert "/api/documents" in paths
