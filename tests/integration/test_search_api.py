"""`POST /api/search`: its shape, what it refuses, and that only the asker's documents come back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import add_document, add_user, embed_all

FIELDS = [
    *("document_id", "chunk_id", "path", "title", "heading", "page", "text", "char_start", "char_end"),
    *("score", "fulltext_rank", "vector_rank"),
]


@pytest.fixture
def client(settings: Settings, database: Database) -> Iterator[TestClient]:
    def work(session) -> None:
        add_user(session, 2, 20)
        add_document(session, "backup.md", *[f"Backups run at night, part {n}." for n in range(60)], title="Backups")
        add_document(session, "restore.md", "How to restore a backup.")
        add_document(session, "foreign.md", "Backups of someone else.", collection_id=20)

    database.write(work)
    embedder = WordEmbedder()
    embed_all(database, embedder)
    with TestClient(create_app(settings, embedder=embedder), base_url="http://127.0.0.1:8642") as client:
        yield client


def ask(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    answer = client.post("/api/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["hits"]


def test_hits_have_the_contracts_fields(client: TestClient) -> None:
    """Just those, with both ranks and a score of 0..1."""
    hit = ask(client, query="restore")[0]

    assert list(hit) == FIELDS
    assert (hit["path"], hit["fulltext_rank"], hit["vector_rank"]) == ("restore.md", 1, 1)
    assert hit["text"] == "How to restore a backup."
    assert 0 < hit["score"] <= 1


def test_other_peoples_documents_stay_out(client: TestClient) -> None:
    """Even when the filter asks for them."""
    assert "foreign.md" not in {hit["path"] for hit in ask(client, query="backups", k=50)}
    assert ask(client, query="backups", filters={"collections": [20]}) == []


def test_filters_narrow_the_search(client: TestClient) -> None:
    """By document and by collection; null means anywhere."""
    assert {hit["path"] for hit in ask(client, query="backup", filters={"documents": [2]})} == {"restore.md"}
    assert ask(client, query="backup", filters={"collections": [1], "documents": None})


@pytest.mark.parametrize(("k", "count"), [(None, 12), (3, 3), (0, 1), (-5, 1), (50, 50), (10**9, 50)])
def test_k_is_clamped(client: TestClient, k: int | None, count: int) -> None:
    """To 1..50; 12 where nothing is asked."""
    body = {} if k is None else {"k": k}

    assert len(ask(client, query="backup", filters={"documents": [1]}, **body)) == count


@pytest.mark.parametrize("query", ["", "  \n", "\u00a0"])
def test_a_blank_question_has_its_own_sentence(client: TestClient, query: str) -> None:
    """422, and nothing is searched."""
    answer = client.post("/api/search", json={"query": query})

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "question_empty")


def test_a_question_over_the_limit_names_the_limit(client: TestClient, settings: Settings) -> None:
    """One character less is taken."""
    answer = client.post("/api/search", json={"query": "x" * (settings.question_max_chars + 1)})

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "question_too_long")
    assert "QUESTION_MAX_CHARS" in answer.json()["error"]["message"]
    assert ask(client, query="x" * settings.question_max_chars) is not None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": None},
        {"query": 5},
        {"query": "a", "more": 1},
        {"query": "a", "k": "3"},
        {"query": "a", "k": 2.5},
        {"query": "a", "filters": {"folder": "x"}},
        {"query": "a", "filters": {"documents": ["1"]}},
        {"query": "a", "filters": {"documents": [2**63]}},
        {"query": "a", "filters": {"documents": [1] * 1001}},
        ["query"],
    ],
)
def test_a_body_of_another_shape_is_refused(client: TestClient, body: Any) -> None:
    """Unknown fields and wrong types are the caller's mistake, never a server error."""
    assert client.post("/api/search", json=body).status_code == 422


@pytest.mark.parametrize("query", ['"', "NEAR(", "* OR text:", "a\0b", "\ud800", "'; DROP TABLE chunks; --"])
def test_hostile_text_is_just_text(client: TestClient, query: str) -> None:
    """It finds something or nothing."""
    content = '{"query": ' + json.dumps(query) + "}"
    answer = client.post("/api/search", content=content, headers={"Content-Type": "application/json"})

    assert answer.status_code in (200, 422)
    assert answer.json()
