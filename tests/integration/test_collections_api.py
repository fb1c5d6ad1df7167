"""`/api/collections` over HTTP: watched folders, the sample, the library itself."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.settings import Settings
from tests.ingest_parts import RAID
from tests.library_api import documents, serving, settle
from tests.waiting import until


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with serving(settings) as client:
        yield client


def test_a_folder_is_watched_scanned_and_removed(client: TestClient, tmp_path: Path) -> None:
    """The row tells the newest scan; its file can be downloaded; removing leaves the disk alone."""
    root = tmp_path / "Büro Notes"
    root.mkdir()
    (root / "raid.md").write_text(RAID)
    reply = client.post("/api/collections", json={"path": str(root)})
    assert reply.status_code == 202
    row = reply.json()
    assert (row["kind"], row["slug"], row["root"], row["locked"]) == ("folder", "buro-notes", str(root), False)
    place = f"/api/collections/{row['id']}"
    until(lambda: client.get(place).json()["scan"]["state"] == "done", "scanned")
    settle(client)
    (document,) = documents(client, collection=row["id"])
    assert (document["path"], document["source"], document["status"]) == ("raid.md", "folder", "ready")
    assert client.get(f"/api/documents/{document['id']}/file").text == RAID
    (root / "raid.md").unlink()
    gone = client.get(f"/api/documents/{document['id']}/file")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "document_file_gone")
    assert client.post(f"{place}/scan").status_code == 202
    until(lambda: client.get(place).json()["scan"]["state"] == "failed", "the scan refuses")
    assert client.get(place).json()["scan"]["error"]["code"] == "folder_empty"
    assert len(documents(client, collection=row["id"])) == 1
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404
    assert os.listdir(root) == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"path": "relative"}, 422, "folder_not_absolute"),
        ({"path": "/no/such"}, 422, "folder_missing"),
        ({"path": ""}, 422, "invalid_input"),
        ({"path": "/srv", "owner_id": 2}, 422, "invalid_input"),
        ({}, 422, "invalid_input"),
    ],
)
def test_a_folder_that_cannot_be_watched_is_refused(
    client: TestClient, body: dict[str, Any], status: int, code: str
) -> None:
    """Each with its code and a sentence."""
    reply = client.post("/api/collections", json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert len(reply.json()["error"]["message"]) > 10
    assert "{" not in json.dumps(reply.json()["error"]["message"])


def test_the_library_itself_is_neither_scanned_nor_removed(client: TestClient) -> None:
    """It has no folder, and uploads live in it."""
    assert client.delete("/api/collections/1").json()["error"]["code"] == "collection_is_library"
    assert client.post("/api/collections/1/scan").json()["error"]["code"] == "collection_without_folder"


def test_the_sample_comes_and_goes_with_one_call(client: TestClient) -> None:
    """Its place on disk is not told."""
    row = client.post("/api/collections/sample").json()
    assert (row["kind"], row["name"], row["root"]) == ("sample", "Docent's own manual", None)
    assert client.post("/api/collections/sample").json()["id"] == row["id"]
    until(lambda: client.get(f"/api/collections/{row['id']}").json()["documents"] > 1, "the manual is listed")
    assert client.delete(f"/api/collections/{row['id']}").status_code == 204
    assert documents(client) == []
