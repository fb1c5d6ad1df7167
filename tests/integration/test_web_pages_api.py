"""Web pages over HTTP: the API, the library's forms and rows, the reader."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.settings import Settings
from tests.integration.web_library import allowing
from tests.library_api import documents, serving, settle, upload
from tests.page_server import Page, PageServer, article, serving_pages, silent
from tests.waiting import until

LONG = "The harbour has a crane that lifts boats out of the water before the first storms of the winter. " * 3
HTMX = {"hx-request": "true"}


@pytest.fixture
def server() -> Iterator[PageServer]:
    with serving_pages({"/crane": Page(article("The crane", LONG), etag='"1"')}) as running:
        yield running


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with serving(allowing(settings)) as running:
        yield running


def _add(client: TestClient, *urls: str) -> Any:
    return client.post("/api/documents/url", json={"urls": list(urls)})


def _page(client: TestClient, number: int) -> dict[str, Any]:
    reply = client.get(f"/api/documents/{number}/page")
    assert reply.status_code == 200, reply.text
    return reply.json()


def _refreshed(client: TestClient, number: int) -> dict[str, Any]:
    until(lambda: not _page(client, number)["checking"], "the page was looked at")
    settle(client)
    return _page(client, number)


def test_addresses_become_documents_or_errors_of_their_own(client: TestClient, server: PageServer) -> None:
    """202 with both; a second time they are known; one that is none says why."""
    reply = _add(client, f"{server.url}/crane", "file:///etc/passwd", "http://10.0.0.1/")
    assert reply.status_code == 202
    body = reply.json()
    (row,) = body["documents"]
    assert (row["source"], row["status"], row["outcome"]) == ("url", "queued", "added")
    assert (row["page"]["url"], row["page"]["refresh"]) == (f"{server.url}/crane", "off")
    assert [error["code"] for error in body["errors"]] == ["ingest_fetch_scheme", "ingest_fetch_private"]
    assert body["errors"][1]["url"] == "http://10.0.0.1/"
    assert "FETCH_ALLOW_CIDRS" in body["errors"][1]["message"]
    settle(client)
    (row,) = documents(client)
    assert (row["title"], row["status"]) == ("The crane", "ready")
    assert _add(client, f"{server.url}/crane/").json()["documents"][0]["outcome"] == "unchanged"


def test_a_request_without_one_good_address_is_refused(client: TestClient) -> None:
    """422, with the reason of the first and of each; nothing is stored."""
    reply = _add(client, "nonsense", "ftp://example.org/")
    assert reply.status_code == 422
    assert reply.json()["error"]["code"] == "ingest_fetch_address"
    assert len(reply.json()["errors"]) == 2
    assert _add(client).status_code == 422
    assert _add(client, *["nonsense"] * 101).status_code == 422
    assert client.post("/api/documents/url", json={"urls": ["example.org"], "user_id": 2}).status_code == 422
    assert client.post("/api/documents/url", json={"urls": ["example.org"], "collection": 999}).status_code == 404
    assert documents(client) == []


def test_a_collection_may_be_named_unless_it_follows_a_folder(
    client: TestClient, server: PageServer, tmp_path: Path
) -> None:
    """The library takes pages by its number, too; a folder's scan would not know what to do with them."""
    number = _add(client, f"{server.url}/crane").json()["documents"][0]["collection_id"]
    folder = tmp_path / "notes"
    folder.mkdir()
    watched = client.post("/api/collections", json={"path": str(folder)}).json()["id"]
    again = client.post("/api/documents/url", json={"urls": [f"{server.url}/crane"], "collection": number})
    assert again.json()["documents"][0]["outcome"] == "unchanged"
    refused = client.post("/api/documents/url", json={"urls": ["example.org"], "collection": watched})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "collection_of_folder")
    settle(client)


def test_a_page_is_fetched_again_when_asked(client: TestClient, server: PageServer) -> None:
    """Unchanged, changed, and gone: what was read is kept then, and the page says so."""
    number = _add(client, f"{server.url}/crane").json()["documents"][0]["id"]
    settle(client)
    assert client.post(f"/api/documents/{number}/refresh").status_code == 202
    same = _refreshed(client, number)
    assert same["checked_at"] > same["fetched_at"]
    server.pages["/crane"] = Page(article("The new crane", LONG))
    assert client.post("/api/documents/url/refresh").json() == {"queued": 1}
    changed = _refreshed(client, number)
    assert changed["fetched_at"] > same["fetched_at"]
    assert documents(client)[0]["title"] == "The new crane"
    del server.pages["/crane"]
    client.post(f"/api/documents/{number}/refresh")
    gone = _refreshed(client, number)
    assert gone["gone_at"] is not None
    assert gone["error"]["reason"] == "fetch_not_found"
    assert documents(client)[0]["status"] == "ready"


def test_how_often_is_a_choice_of_three(client: TestClient, server: PageServer) -> None:
    """Off, daily, weekly; nothing else, and nothing for an upload."""
    number = _add(client, f"{server.url}/crane").json()["documents"][0]["id"]
    settle(client)
    row = client.put(f"/api/documents/{number}/refresh", json={"every": "daily"}).json()
    assert (row["page"]["refresh"], row["page"]["next_check_at"] is None) == ("daily", False)
    assert client.put(f"/api/documents/{number}/refresh", json={"every": "hourly"}).status_code == 422
    other = upload(client, ("a.md", "# A\n\ntext")).json()["documents"][0]["id"]
    for method, path in (("post", "refresh"), ("get", "page")):
        assert client.request(method, f"/api/documents/{other}/{path}").status_code == 404
    assert client.put(f"/api/documents/{other}/refresh", json={"every": "daily"}).status_code == 404
    assert client.post("/api/documents/999/refresh").status_code == 404


def test_the_form_adds_pages_and_keeps_what_was_refused(client: TestClient, server: PageServer) -> None:
    """One a line, or several; the refused ones stay in the field, each reason said once."""
    for path in ("/ui/library/pages/add", "/library/pages/add"):
        assert 'name="addresses"' in client.get(path).text
    typed = {"addresses": f"{server.url}/crane gopher://x/\r\n\n <b>bold</b> words \nnonsense"}
    reply = client.post("/ui/library/pages", data=typed, headers=HTMX)
    assert reply.status_code == 422
    assert "gopher://x/\n&lt;b&gt;bold&lt;/b&gt; words\nnonsense</textarea>" in reply.text
    assert reply.text.count("the address of a web page") == 1
    assert "1 page is being fetched." in reply.text
    assert reply.headers["hx-trigger"] == "library-changed, library-work"
    assert client.post("/ui/library/pages", data={"addresses": " "}, headers=HTMX).status_code == 422
    assert client.post("/ui/library/pages", data={"addresses": "nonsense"}).status_code == 422
    plain = client.post("/ui/library/pages", data={"addresses": f"{server.url}/crane"}, follow_redirects=False)
    assert (plain.status_code, plain.headers["location"]) == (303, "/library")
    done = client.post("/ui/library/pages", data={"addresses": f"{server.url}/crane"}, headers=HTMX)
    assert 'id="dialogs"' in done.text
    settle(client)
    assert len(documents(client)) == 1
    assert "1 document comes from the web." in client.get("/ui/library/pages").text


def test_the_row_and_the_reader_say_where_a_page_is_from(client: TestClient, server: PageServer) -> None:
    """Its address, its age, what can be done; the link to it tells nobody where it was followed."""
    number = _add(client, f"{server.url}/crane").json()["documents"][0]["id"]
    settle(client)
    library = client.get("/library").text
    assert f"<bdi>127.0.0.1:{server.port}/crane</bdi>" in library
    assert "Fetched just now" in library
    assert f'hx-post="/ui/documents/{number}/refresh"' in library
    assert "1 document comes from the web." in library
    reader = client.get(f"/documents/{number}").text
    link = re.search(rf'<a href="{re.escape(server.url)}/crane"[^>]*>', reader)
    assert link is not None
    assert 'rel="noopener noreferrer nofollow"' in link[0]
    assert 'referrerpolicy="no-referrer"' in link[0]
    assert [path for path, _ in server.seen] == ["/crane"]


def test_a_row_shows_a_refresh_while_it_goes_on_and_what_came_of_it(client: TestClient, server: PageServer) -> None:
    """The poller gets the row anew when the fetch began and when it ended."""
    number = _add(client, f"{server.url}/crane").json()["documents"][0]["id"]
    settle(client)
    server.pages["/crane"] = silent
    row = client.post(f"/ui/documents/{number}/refresh", headers=HTMX)
    assert "being fetched again" in row.text
    assert row.headers["hx-trigger"] == "library-work"
    known = re.search(r'name="row" value="([^"]+)"', row.text)
    assert known is not None
    del server.pages["/crane"]
    back = client.post(f"/ui/documents/{number}/refresh?back=reader", follow_redirects=False)
    assert back.headers["location"] == f"/documents/{number}"
    client.post("/api/documents/url/refresh")


def test_a_page_that_is_gone_says_so_in_its_row(client: TestClient, server: PageServer) -> None:
    """And keeps being findable; a page that never came is failed, with its reason."""
    number, never = (row["id"] for row in _add(client, f"{server.url}/crane", f"{server.url}/no").json()["documents"])
    settle(client)
    del server.pages["/crane"]
    client.post(f"/ui/documents/{number}/refresh", follow_redirects=False)
    _refreshed(client, number)
    library = client.get("/library").text
    assert "The server has no such page any more (noticed just now). What was read is kept." in library
    assert "There is no page at this address." in library
    server.pages["/no"] = Page(article("There now", LONG))
    client.post(f"/ui/documents/{never}/retry", follow_redirects=False)
    settle(client)
    assert {row["title"] for row in documents(client)} == {"The crane", "There now"}


def test_the_choice_has_its_dialog_and_its_page(client: TestClient, server: PageServer) -> None:
    """The present choice is marked; saving it shows in the row."""
    number = _add(client, f"{server.url}/crane").json()["documents"][0]["id"]
    settle(client)
    for path in (f"/ui/documents/{number}/refresh", f"/library/pages/{number}/refresh"):
        assert 'value="off" checked' in client.get(path).text
    saved = client.post(f"/ui/documents/{number}/refresh-every", data={"every": "weekly"}, headers=HTMX)
    assert "again every week" in saved.text
    plain = client.post(f"/ui/documents/{number}/refresh-every", data={"every": "off"}, follow_redirects=False)
    assert plain.status_code == 303
    assert client.post(f"/ui/documents/{number}/refresh-every", data={"every": "x"}).status_code == 422
    other = upload(client, ("a.md", "# A\n\ntext")).json()["documents"][0]["id"]
    assert client.get(f"/ui/documents/{other}/refresh").status_code == 404
    everything = client.post("/ui/library/pages/refresh", headers=HTMX)
    assert "1 page is being fetched again." in everything.text
    assert client.post("/ui/library/pages/refresh", follow_redirects=False).status_code == 303
