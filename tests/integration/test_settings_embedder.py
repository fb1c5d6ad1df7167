"""`/api/settings`, the embedder's three fields: one choice, on the page's own way; what serves stays."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.search.choice import DEFAULT
from app.settings import Settings
from tests.embed_server import EmbedServer, embed_server
from tests.fake_embedder import WordEmbedder
from tests.ingest_parts import sections
from tests.library_api import settle, upload
from tests.waiting import until

BASE = "http://127.0.0.1:8642"
KEY = "sk-canary-key-0123456789"


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings, embedder=WordEmbedder("first", 64)), base_url=BASE) as client:
        yield client


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with embed_server(models=("words-embed", "other-embed")) as server:
        yield server


def put(client: TestClient, **fields: Any) -> Any:
    answer = client.put("/api/settings", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def embedder(client: TestClient) -> dict[str, Any]:
    return client.get("/api/settings").json()["embedder"]


def fill(client: TestClient) -> None:
    upload(client, ("garden.md", sections("garden")), ("raid.md", sections("raid")))
    settle(client)


def test_another_embedder_is_built_beside_the_one_that_serves(client: TestClient, server: EmbedServer) -> None:
    """What serves stays until a person switches; the key is kept and not told; the rest is stored as well."""
    fill(client)
    body = put(client, embed_base_url=f" {server.url}/ ", embed_model="words-embed", embed_api_key=KEY, llm_model="m")
    assert body["begun"] == "building"
    assert body["embedder"]["serving"]["model"] == "first"
    assert body["embedder"]["building"]["model"] == "words-embed"
    fields = body["fields"]
    assert fields["embed_base_url"]["value"] == server.url
    assert fields["embed_api_key"] == {"value": None, "locked": False, "is_set": True, "last4": "6789"}
    assert fields["llm_model"]["value"] == "m"
    until(lambda: embedder(client)["building"]["built"], "built")
    building = embedder(client)["building"]
    assert (building["done"], building["total"], building["base_url"]) == (2, 2, server.url)
    assert f"Bearer {KEY}" in server.keys
    client.post(f"/ui/settings/embedder/switch/{building['id']}")
    now = embedder(client)
    assert (now["serving"]["model"], now["building"]) == ("words-embed", None)
    assert isinstance(now["serving"]["floor"], float)


def test_what_is_chosen_already_is_not_begun_again(client: TestClient, server: EmbedServer) -> None:
    """Not even tested, so that what GET says can be sent back while the server is away."""
    put(client, embed_base_url=server.url, embed_model="words-embed")
    texts = server.texts
    fields = client.get("/api/settings").json()["fields"]
    same = {name: fields[name]["value"] for name in ("embed_base_url", "embed_model")}
    assert put(client, **same)["begun"] == "same"
    assert server.texts == texts
    assert "begun" not in put(client, llm_model="m")


def test_a_field_that_is_left_out_stays_but_for_another_kind_of_embedder(
    client: TestClient, server: EmbedServer
) -> None:
    """A server's model is no built-in one's; without both the default serves again."""
    assert put(client, embed_base_url=server.url, embed_model="words-embed")["begun"] == "active"
    fields = put(client, embed_model="other-embed")["fields"]
    assert (fields["embed_base_url"]["value"], fields["embed_model"]["value"]) == (server.url, "other-embed")
    fields = put(client, embed_base_url=None)["fields"]
    assert (fields["embed_base_url"]["is_set"], fields["embed_model"]["is_set"]) == (False, True)
    assert fields["embed_model"]["value"] == DEFAULT
    answer = client.put("/api/settings", json={"embed_base_url": server.url})
    assert answer.status_code == 502
    assert "Which of its models makes the vectors?" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"embed_base_url": "http://127.0.0.1:9/v1", "embed_model": "m"}, 502, "embed_test_failed"),
        ({"embed_base_url": "nas:1"}, 422, "setting_invalid"),
        ({"embed_model": "no-such"}, 422, "embed_unknown"),
        ({"embed_base_url": "http://h/v1", "embed_model": "m", "embed_api_key": "schlüssel"}, 422, "setting_invalid"),
        ({"embed_model": "no-such", "llm_base_url": "nonsense"}, 422, "setting_invalid"),
        ({"embed_model": 5}, 422, "invalid_input"),
    ],
)
def test_what_can_not_be_used_changes_nothing(client: TestClient, change: Any, status: int, code: str) -> None:
    """Not the other fields either."""
    answer = client.put("/api/settings", json={"llm_model": "kept", **change})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "schlüssel" not in answer.text
    body = client.get("/api/settings").json()
    assert not any(field["is_set"] for name, field in body["fields"].items() if name != "loop_guard_mode")
    assert body["embedder"]["building"] is None


def test_an_embedder_that_the_environment_chooses_is_locked(settings: Settings, server: EmbedServer) -> None:
    """For all three fields; the same values are no change."""
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, embed_base_url=server.url, embed_model="words-embed")
    with TestClient(create_app(fixed), base_url=BASE) as client:
        assert put(client, embed_base_url=server.url, embed_model="words-embed")["begun"] == "same"
        answer = client.put("/api/settings", json={"embed_model": "other-embed", "llm_model": "kept"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "embedder_locked")
        assert client.get("/api/settings").json()["fields"]["llm_model"]["is_set"] is False


def test_a_key_of_the_environment_is_not_changed(settings: Settings, server: EmbedServer) -> None:
    """The rest may be."""
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, embed_api_key=KEY)
    with TestClient(create_app(fixed, embedder=WordEmbedder("first", 64)), base_url=BASE) as client:
        answer = client.put("/api/settings", json={"embed_api_key": "other", "embed_model": DEFAULT})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "setting_locked")
        put(client, embed_base_url=server.url, embed_model="words-embed")
        assert f"Bearer {KEY}" in server.keys
