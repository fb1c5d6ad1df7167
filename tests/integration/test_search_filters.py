"""What narrows a search: path, type and date, for hits, tools and counts alike, and what is no filter."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.frames import TurnIds
from app.api.turn_start import TurnRequest, count_searched
from app.cli import main
from app.main import create_app
from app.search.asking import Asked, filters_of
from app.search.hits import SearchFilters
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store.engine import Database, Session
from app.store.models import Document
from app.store.scope import Scope
from app.store.tool_reads import list_collections, list_documents
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import NOW, add_document, embed_all

MAY = datetime(2024, 5, 31, 12, tzinfo=UTC)
WORD_FILE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FILES: dict[str, tuple[str, datetime | None]] = {
    "notes/disk.md": ("text/markdown", MAY),
    "notes/ups.pdf": ("application/pdf", datetime(2025, 1, 1, tzinfo=UTC)),
    "NOTES/big.docx": (WORD_FILE, datetime(2023, 2, 3, 4, 5, 6, 7000, tzinfo=UTC)),
    "etc/app.service": ("text/plain", datetime(1999, 1, 1, tzinfo=UTC)),
    "src/tool.GO": ("text/plain", None),
    "readme": ("text/plain", None),
}


@pytest.fixture
def library(database: Database) -> Database:
    """One passage a file, all of which fit every question here; two files have no date of their own."""

    def work(session: Session) -> None:
        for path, (mime, changed) in FILES.items():
            document = session.get_one(Document, add_document(session, path, f"backup of {path}"))
            document.mime = mime
            document.mtime_ns = None if changed is None else int(changed.timestamp() * 1_000_000) * 1000

    database.write(work)
    embed_all(database, WordEmbedder())
    return database


@pytest.fixture
def client(settings: Settings, library: Database) -> Iterator[TestClient]:
    with TestClient(create_app(settings, embedder=WordEmbedder()), base_url="http://127.0.0.1:8642") as client:
        yield client


ALL = sorted(FILES)
CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ALL),
    ({"path": "notes/"}, ["notes/disk.md", "notes/ups.pdf"]),
    ({"path": " /notes/d"}, ["notes/disk.md"]),
    ({"path": "otes"}, []),
    ({"path": "note_"}, []),
    ({"path": ""}, ALL),
    ({"types": ["pdf"]}, ["notes/ups.pdf"]),
    ({"types": ["Markdown", "docx"]}, ["NOTES/big.docx", "notes/disk.md"]),
    ({"types": ["config"]}, ["etc/app.service"]),
    ({"types": ["code"]}, ["src/tool.GO"]),
    ({"types": ["text"]}, ["readme"]),
    ({"types": []}, []),
    ({"since": "2024-05-31", "until": "2024-05-31"}, ["notes/disk.md"]),
    ({"since": "2024-05-31T12:00:00Z", "until": "2025-01-01"}, ["notes/disk.md", "notes/ups.pdf"]),
    ({"since": "2024-05-31T12:00:00.000001Z", "until": "2025-01-01"}, ["notes/ups.pdf"]),
    ({"until": "2024-05-31T14:00:00+02:00"}, ["NOTES/big.docx", "etc/app.service"]),
    ({"since": NOW.date().isoformat()}, ["readme", "src/tool.GO"]),
    ({"until": "2025-12-31", "path": "notes", "types": ["pdf", "docx"]}, ["notes/ups.pdf"]),
]


@pytest.mark.parametrize(("written", "expected"), CASES)
def test_hits_tools_and_the_count_see_the_same_documents(
    library: Database, written: dict[str, Any], expected: list[str]
) -> None:
    """By words and by meaning; all filters hold at once."""
    filters = filters_of(Asked(**written))
    searcher = Searcher(library, WordEmbedder(), VectorIndex())
    hits = searcher.search("backup", user_id=1, k=20, filters=filters)
    scope = Scope(1, filters)
    documents = library.read(lambda session: list_documents(session, scope))
    request = TurnRequest(TurnIds("t", None, None, None), 1, "backup?", filters, without_documents=False)

    assert sorted(hit.path for hit in hits) == expected
    assert sorted(document.path for document in documents) == expected
    assert library.read(lambda session: count_searched(session, request.user_id, request.filters)) == len(expected)
    shown = library.read(lambda session: list_collections(session, scope))
    assert sum(collection.documents for collection in shown) == len(expected)


def test_the_api_takes_every_filter(client: TestClient) -> None:
    """Named as the filters are; null means anywhere."""
    filters = {"path": "notes", "types": ["pdf"], "since": "2025-01-01", "until": "2025-01-01", "documents": None}
    answer = client.post("/api/search", json={"query": "backup", "filters": filters})

    assert [hit["path"] for hit in answer.json()["hits"]] == ["notes/ups.pdf"]


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"types": ["pdf", "wav"]}, "wav is no type of document. The types are markdown, text,"),
        ({"since": "yesterday"}, "yesterday is no day. Write it like 2026-11-30."),
        ({"since": "2026-02-30"}, "2026-02-30 is no day"),
        ({"until": "0001-01-01"}, "0001-01-01 is no day"),
        ({"until": "9999-12-31"}, "9999-12-31 is no day"),
        ({"until": "2026-01-01T10:00"}, "2026-01-01T10:00 is no day"),
        ({"since": "2026-01-02", "until": "2026-01-01"}, "Turn the two days around."),
        ({"path": "x" * 1001}, "A path has at most 1,000 characters."),
    ],
)
def test_a_filter_that_means_nothing_is_refused_plainly(client: TestClient, filters: dict[str, Any], said: str) -> None:
    """In words that tell what to write instead; nothing is searched."""
    answer = client.post("/api/search", json={"query": "backup", "filters": filters})

    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "filters", [{"types": "pdf"}, {"path": 3}, {"path": "\ud800"}, {"type": ["pdf"]}, {"since": 5}]
)
def test_a_filter_of_another_shape_is_refused(client: TestClient, filters: dict[str, Any]) -> None:
    """As any request that can't be read."""
    content = '{"query": "backup", "filters": ' + json.dumps(filters) + "}"
    headers = {"content-type": "application/json"}
    assert client.post("/api/search", content=content, headers=headers).status_code == 422


class TestCommand:
    """`docent search` with filters."""

    @pytest.fixture(autouse=True)
    def _environment(self, settings: Settings, library: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
        assert library

    def test_it_takes_every_filter(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A collection by its name or slug, several types."""
        options = ["--collection", "LIBRARY", "--path", "notes", "--type", "pdf", "--type", "epub"]
        assert main(["search", "backup", *options, "--since", "2024-01-01", "--until", "2025-06-30"]) == 0
        out = capsys.readouterr().out

        assert "notes/ups.pdf" in out
        assert "disk" not in out

    def test_what_means_nothing_is_said_in_one_sentence(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Exit code 1, with what there is instead."""
        assert main(["search", "backup", "--collection", "attic"]) == 1
        assert "There is no collection called attic. There are library." in capsys.readouterr().err
        assert main(["search", "backup", "--type", "wav"]) == 1
        assert "wav is no type of document." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("day", "status"), [("1970-01-01", 200), ("2261-12-30", 200), ("2262-01-01", 422), ("9998-12-31", 422)]
)
def test_days_that_no_file_can_have_are_refused(client: TestClient, day: str, status: int) -> None:
    """What does not fit into the nanoseconds of a file's date is an answer of its own, not an error inside."""
    for field in ("since", "until"):
        reply = client.post("/api/search", json={"query": "backup", "filters": {field: day}})
        assert reply.status_code == status, (field, reply.text)


def test_filters_of_nothing_are_anywhere() -> None:
    """So that a page with empty fields searches everything."""
    assert filters_of(Asked(path="  ", since="", until=" ")) == SearchFilters()
