"""`/api/documents` over HTTP: shapes, statuses, limits, headers, owners."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.settings import Settings
from app.store.models.library import Document
from tests.ingest_parts import RAID, sections
from tests.integration.library_rows import add_document, add_user
from tests.library_api import documents, serving, settle, upload

ROW = {
    *("id", "collection_id", "collection", "source", "path", "title", "mime", "encoding", "bytes", "pages"),
    *("empty_pages", "status", "error", "stage", "chunks", "embedded", "created_at", "updated_at", "indexed_at"),
}


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with serving(settings.model_copy(update={"upload_max_mb": 1})) as client:
        yield client


def test_an_upload_answers_with_rows_and_ends_ready(client: TestClient) -> None:
    """202 at once; the row, the text, the list and the search know it."""
    reply = upload(client, ("guides/raid.md", RAID), ("empty.txt", b""))
    assert reply.status_code == 202
    assert [(row["path"], row["status"], row["outcome"]) for row in reply.json()["documents"]] == [
        ("guides/raid.md", "queued", "added"),
        ("empty.txt", "queued", "added"),
    ]
    assert reply.json()["errors"] == []
    settle(client)
    raid = reply.json()["documents"][0]["id"]
    row = client.get(f"/api/documents/{raid}").json()
    assert set(row) == ROW | {"text"}
    assert (row["title"], row["text"], row["collection"], row["source"]) == ("Disks", RAID, "Library", "upload")
    hits = client.post("/api/search", json={"query": "disks"}).json()["hits"]
    assert [hit["document_id"] for hit in hits] == [raid]
    failed = documents(client, status="failed")
    assert [row["error"] for row in failed] == [{"reason": "empty", "message": "The file is empty."}]


def test_uploading_again_says_what_became_of_it(client: TestClient) -> None:
    """unchanged for the same content, replaced for another one; the row keeps its id."""
    first = upload(client, ("a.md", RAID)).json()["documents"][0]
    settle(client)
    again = upload(client, ("a.md", RAID)).json()["documents"][0]
    assert (again["id"], again["outcome"], again["status"]) == (first["id"], "unchanged", "ready")
    other = upload(client, ("a.md", sections("garden"))).json()["documents"][0]
    assert (other["id"], other["outcome"]) == (first["id"], "replaced")
    settle(client)
    assert client.get(f"/api/documents/{first['id']}").json()["title"] == "garden"


def test_one_file_too_large_does_not_lose_the_others(client: TestClient, settings: Settings) -> None:
    """202 with an error of its own beside the rows; alone it is 413."""
    big = bytes(1024 * 1024 + 1)
    reply = upload(client, ("big.md", big), ("a.md", RAID))
    assert reply.status_code == 202
    assert [row["path"] for row in reply.json()["documents"]] == ["a.md"]
    error = {"name": "big.md", "code": "upload_too_large", "message": "It is over the limit of 1 MB (UPLOAD_MAX_MB)."}
    assert reply.json()["errors"] == [error]
    reply = upload(client, ("big.md", big))
    assert reply.status_code == 413
    assert reply.json()["error"] == {**{key: error[key] for key in ("code", "message")}, "setting": "UPLOAD_MAX_MB"}
    assert reply.json()["errors"] == [error]
    assert list((settings.data_dir / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("application/json", b"{}", "upload_malformed"),
        ("multipart/form-data", b"x", "upload_malformed"),
        ("multipart/form-data; boundary=b", b"--b\r\nbroken", "upload_malformed"),
        ("multipart/form-data; boundary=b", b"--b--\r\n", "upload_empty"),
        ("", b"", "upload_malformed"),
    ],
)
def test_a_request_that_is_no_upload_is_refused(
    client: TestClient, settings: Settings, content_type: str, body: bytes, code: str
) -> None:
    """422 with its own sentence; nothing is stored."""
    reply = client.post("/api/documents", content=body, headers={"Content-Type": content_type})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, code)
    assert documents(client) == []
    assert list((settings.data_dir / "tmp").iterdir()) == []


def test_a_body_without_end_is_cut_off(client: TestClient, settings: Settings) -> None:
    """Counted as it comes, since a chunked body announces nothing; nothing of it stays."""

    def endless() -> Iterator[bytes]:
        for number in range(100):
            yield f'--b\r\nContent-Disposition: form-data; name="files"; filename="{number}"\r\n\r\n'.encode()
            yield bytes(900_000)
            yield b"\r\n"

    reply = client.post(
        "/api/documents", content=endless(), headers={"Content-Type": "multipart/form-data; boundary=b"}
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "upload_request_too_large")
    assert documents(client) == []
    assert list((settings.data_dir / "tmp").iterdir()) == []


def test_an_announced_length_over_the_limit_is_refused_unread(client: TestClient) -> None:
    """By Content-Length, before a byte is read; more than the disk holds is 507."""
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    reply = client.post("/api/documents", content=b"", headers={**kind, "Content-Length": str(21 * 2**20)})
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "upload_request_too_large")


def test_an_announced_length_over_the_free_disk_is_refused_unread(settings: Settings) -> None:
    """The database must be able to go on writing."""
    with serving(settings.model_copy(update={"upload_max_mb": 2**40})) as client:
        headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Length": str(2**60)}
        reply = client.post("/api/documents", content=b"", headers=headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (507, "disk_full")


def test_a_list_is_paged_and_filtered(client: TestClient) -> None:
    """What needs a look first, then the newest; pages don't overlap; bad cursors are 422."""
    upload(client, *((f"notes/{number}.md", sections(f"topic{number}")) for number in range(7)))
    upload(client, ("bad.txt", b""))
    upload(client, ("worse.docx", b"nothing"))
    settle(client)
    paths: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = client.get("/api/documents", params={"limit": 2, **after}).json()
        assert len(page["documents"]) <= 2
        paths += [row["path"] for row in page["documents"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert paths == ["worse.docx", "bad.txt", *(f"notes/{number}.md" for number in reversed(range(7)))]
    assert [row["path"] for row in documents(client, q="NOTES/3")] == ["notes/3.md"]
    assert [row["path"] for row in documents(client, q="topic5")] == ["notes/5.md"]
    assert documents(client, q="100%") == documents(client, collection=99) == []
    assert len(documents(client, status="ready")) == 7
    assert len(documents(client, status="look")) == 2
    for params in ({"after": "x"}, {"status": "unknown"}, {"limit": 0}, {"collection": "a"}, {"q": "x" * 500}):
        assert client.get("/api/documents", params=params).status_code == 422


def test_pages_without_text_bring_a_document_to_the_top(settings: Settings) -> None:
    """A scanned page among others is worth a look, and counted."""
    with serving(settings) as client:
        database = client.app.state.docent.database  # type: ignore[attr-defined]
        scanned = add_document(database, "scan.pdf", "text", pages=3, text_yield=[120, 0, 30])
        add_document(database, "whole.pdf", "text", pages=3, text_yield=[120, 100, 30])
        add_document(database, "plain.md", "text")
        assert [row["path"] for row in documents(client)] == ["scan.pdf", "plain.md", "whole.pdf"]
        assert [(row["id"], row["empty_pages"]) for row in documents(client, status="look")] == [(scanned, [2])]


@pytest.mark.parametrize("name", ["page.html", "pic.svg", "x.xml", 'quo"te\u202e.html', "ümlaut ä.pdf", "a.mht"])
def test_a_download_is_saved_and_never_shown(client: TestClient, name: str) -> None:
    """Attachment, no type of its own, no sniffing, a sandbox; the name is one header value."""
    content = b"<script>alert(1)</script>" * 20_000
    document_id = upload(client, (name, content)).json()["documents"][0]["id"]
    reply = client.get(f"/api/documents/{document_id}/file")
    assert reply.status_code == 200
    assert reply.content == content
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in reply.headers["content-security-policy"]
    assert "script-src" not in reply.headers["content-security-policy"]
    assert reply.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert reply.headers["content-disposition"].isascii()


def test_a_deleted_document_is_gone_everywhere(client: TestClient, settings: Settings) -> None:
    """204, then 404 on every route of it; the file too."""
    document_id = upload(client, ("a.md", RAID)).json()["documents"][0]["id"]
    settle(client)
    assert client.delete(f"/api/documents/{document_id}").status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("GET", "/file")):
        reply = client.request(method, f"/api/documents/{document_id}{path}")
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
    assert client.post("/api/search", json={"query": "disks"}).json()["hits"] == []
    assert [path for path in (settings.data_dir / "files").rglob("*") if path.is_file()] == []


def test_rows_of_others_look_missing(client: TestClient) -> None:
    """404, not 403; not listed; not changed."""
    database = client.app.state.docent.database  # type: ignore[attr-defined]
    other = add_user(database)
    foreign = add_document(database, "canary.md", "canary text", user_id=other)
    assert documents(client) == []
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("GET", "/file")):
        assert client.request(method, f"/api/documents/{foreign}{path}").status_code == 404
    query = select(Document.collection_id).where(Document.id == foreign)
    collection = database.read(lambda session: session.scalar(query))
    assert [row["name"] for row in client.get("/api/collections").json()["collections"]] == ["Library"]
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/scan")):
        assert client.request(method, f"/api/collections/{collection}{path}").status_code == 404
    assert documents(client, collection=collection) == []


def test_a_failed_document_is_retried(client: TestClient) -> None:
    """202 with the row; it fails again for the same reason, since the file is the same."""
    document_id = upload(client, ("a.txt", b"")).json()["documents"][0]["id"]
    settle(client)
    assert client.post(f"/api/documents/{document_id}/retry").json()["status"] in ("queued", "parsing", "failed")
    settle(client)
    assert client.get(f"/api/documents/{document_id}").json()["error"]["reason"] == "empty"
