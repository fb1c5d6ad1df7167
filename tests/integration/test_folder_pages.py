"""Watched folders and the sample on the library page: add, refuse, scan, remove, lock."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.catalog import load_catalog
from app.main import create_app
from app.settings import Settings
from app.store.engine import Database
from tests.ingest_library import IngestLibrary

HTMX = {"HX-Request": "true"}


@pytest.fixture
def client(settings: Settings) -> TestClient:
    # Without its lifespan: no worker runs, so a scan stays asked for.
    return TestClient(create_app(settings), base_url="http://127.0.0.1:8642")


@pytest.fixture
def database(client: TestClient) -> Iterator[Database]:
    database: Database = client.app.state.docent.database  # type: ignore[attr-defined]
    yield database
    database.close()


def test_a_folder_is_watched_scanned_and_removed(client: TestClient, database: Database, tmp_path: Path) -> None:
    """By its full path; removing says that the files stay."""
    folder = tmp_path / "notes"
    folder.mkdir()
    page = client.post("/ui/library/folders", data={"path": str(folder)}, headers=HTMX)
    assert "Watching notes." in page.text
    assert str(folder) in page.text
    assert "being scanned" in page.text
    number = re.search(r"/ui/library/folders/(\d+)/scan", page.text)
    assert number
    assert client.post(f"/ui/library/folders/{number[1]}/scan", headers=HTMX).status_code == 200
    question = client.get(f"/ui/library/folders/{number[1]}/remove").text
    assert "Stop watching notes?" in question
    assert "on disk" in question
    gone = client.post(f"/ui/library/folders/{number[1]}/remove", headers=HTMX).text
    assert "No longer watching notes." in gone
    assert str(folder) not in gone
    assert folder.is_dir()


@pytest.mark.parametrize(("path", "code"), [("notes", "folder_not_absolute"), ("/no/such/folder", "folder_missing")])
def test_a_folder_that_can_not_be_watched_says_why(
    client: TestClient, database: Database, path: str, code: str
) -> None:
    """Beside the field, with what was typed kept; with and without script."""
    sentence = load_catalog().t(f"errors.{code}", path=path).replace("'", "&#39;")
    for headers in (HTMX, {}):
        page = client.post("/ui/library/folders", data={"path": path}, headers=headers)
        assert page.status_code == 422
        assert sentence in page.text
        assert f'value="{path}"' in page.text


def test_an_emptied_folder_asks_whether_it_is_meant_to_be(
    client: TestClient, database: Database, settings: Settings, tmp_path: Path
) -> None:
    """Its documents are kept until a person says that there is nothing in it; the question names their number."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Apples\n\nThey are kept in the cellar.\n")
    client.post("/ui/library/folders", data={"path": str(folder)}, headers=HTMX)
    with IngestLibrary(settings).start() as library:
        library.settle()
        (row,) = library.rows()
        assert "The files are really gone" not in client.get("/library").text
        (folder / "a.md").unlink()
        library.scan(row.collection_id)
        page = client.get("/library").text
        assert "Is its disk mounted? They are kept." in page
        assert f'href="/library/folders/{row.collection_id}/empty"' in page
        for place in ("/ui", ""):
            assert "Its 1 document goes" in client.get(f"{place}/library/folders/{row.collection_id}/empty").text
        client.post(f"/ui/library/folders/{row.collection_id}/empty", headers=HTMX)
        library.settle()
        assert library.rows() == []
    assert "The files are really gone" not in client.get("/library").text


def test_a_folder_of_the_environment_is_locked(settings: Settings, tmp_path: Path) -> None:
    """It is shown with its lock and can't be removed, whoever asks."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, watch_dirs=str(folder))  # type: ignore[arg-type]
    app = create_app(fixed)
    client = TestClient(app, base_url="http://127.0.0.1:8642")
    app.state.docent.folders.ensure_environment()
    page = client.get("/library").text
    assert "Set by WATCH_DIRS" in page
    number = re.search(r"/ui/library/folders/(\d+)/scan", page)
    assert number
    assert client.post(f"/ui/library/folders/{number[1]}/remove").status_code == 409
    assert 'name="path"' in page
    app.state.docent.database.close()


def test_a_folder_taken_out_of_the_environment_stays_and_can_be_removed(settings: Settings, tmp_path: Path) -> None:
    """Nothing vanishes because a line of `.env` did; only the lock is gone."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, watch_dirs=str(folder))  # type: ignore[arg-type]
    before = create_app(fixed)
    before.state.docent.folders.ensure_environment()
    before.state.docent.database.close()
    after = create_app(settings)
    client = TestClient(after, base_url="http://127.0.0.1:8642")
    after.state.docent.folders.ensure_environment()
    page = client.get("/library").text
    assert "Set by WATCH_DIRS" not in page
    number = re.search(r"/ui/library/folders/(\d+)/remove", page)
    assert number
    assert client.post(f"/ui/library/folders/{number[1]}/remove", headers=HTMX).status_code == 200
    assert str(folder) not in client.get("/library").text
    after.state.docent.database.close()


def test_the_sample_is_added_once_and_removed(client: TestClient, database: Database) -> None:
    """One click each way; a plain form leads to the library."""
    plain = client.post("/ui/library/sample", follow_redirects=False)
    assert (plain.status_code, plain.headers["location"]) == (303, "/library")
    page = client.post("/ui/library/sample", headers=HTMX).text
    assert page.count("/remove") == 2
    number = re.search(r"/ui/library/folders/(\d+)/remove", page)
    assert number
    assert "It can be added again" not in page
    assert "can be added again" in client.get(f"/ui/library/folders/{number[1]}/remove").text
    assert "Try it with" in client.post(f"/ui/library/folders/{number[1]}/remove", headers=HTMX).text
