"""The side bar's foot line, "Reads N documents": what counts, on the page and in the fragment that renews it."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from tests.integration import library_rows as rows


@pytest.fixture
def client(settings: Settings) -> TestClient:
    # Without its lifespan: no worker runs, so rows stay as a test makes them.
    return TestClient(create_app(settings), base_url="http://127.0.0.1:8642")


@pytest.fixture
def database(client: TestClient) -> Iterator[Database]:
    database: Database = client.app.state.docent.database  # type: ignore[attr-defined]
    yield database
    database.close()


def test_the_foot_line_counts_what_was_read_and_not_what_waits_or_failed(
    client: TestClient, database: Database
) -> None:
    """ "Reads 2 documents" is true: a file that waits or failed is none of them, one that is read again still is. The
    page and the fragment that renews the line say the same; beside the library's name all of them count."""
    rows.add_document(database, "a.md", "Words.")
    again = rows.add_document(database, "b.md", "Words.")
    waits = rows.add_document(database, "c.md")
    rows.add_document(database, "d.pdf", failed="encrypted")
    rows.set_status(database, again, "queued")
    said = [
        client.get("/library").text,
        client.get("/ui/library/working", params={"row": f"{waits}.parsing"}).text,
    ]
    for page in said:
        assert re.findall(r'id="side-reads"[^>]*>([^<]*)<', page) == ["Reads 2 documents."]
        assert re.findall(r'id="side-documents"[^>]*>([^<]*)<', page) == ["4"]


def test_where_nothing_was_read_the_foot_line_says_so(client: TestClient, database: Database) -> None:
    """One file that failed: there is nothing to read."""
    rows.add_document(database, "d.pdf", failed="encrypted")
    assert re.findall(r'id="side-reads"[^>]*>([^<]*)<', client.get("/library").text) == ["Nothing to read yet."]
