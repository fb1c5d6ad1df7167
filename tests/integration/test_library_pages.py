"""`/library` and its fragments: rows, filters, text hits, retry, remove, progress, folders, the sample, plain forms."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.catalog import load_catalog
from app.main import create_app
from app.search.hits import Hit, SearchFilters
from app.settings import Settings
from app.store import documents
from app.store.engine import Database
from app.store.models.setup import LOCAL_USER_ID
from tests.integration import library_rows as rows

EVERYWHERE = SearchFilters()
HTMX = {"HX-Request": "true"}


class OneHit:
    """A searcher that finds the first passage of one document, whatever is asked."""

    def __init__(self) -> None:
        self.document = 0
        self.asked: list[tuple[str, SearchFilters]] = []

    def search(self, query: str, *, user_id: int, k: int = 12, filters: SearchFilters = EVERYWHERE) -> list[Hit]:
        self.asked.append((query, filters))
        if not self.document:
            return []
        text = "Backups run at two. " * 30 + "Pruning frees space <b>."
        return [Hit(5, self.document, 1, "a.md", "Plan", "", None, text, 0, len(text), 1, 3, 0.8, 1, None)]


@pytest.fixture
def searcher() -> OneHit:
    return OneHit()


@pytest.fixture
def client(settings: Settings, searcher: OneHit) -> TestClient:
    # Without its lifespan: no worker runs, so rows stay as a test makes them.
    return TestClient(create_app(settings, searcher=searcher), base_url="http://127.0.0.1:8642")


@pytest.fixture
def database(client: TestClient) -> Iterator[Database]:
    database: Database = client.app.state.docent.database  # type: ignore[attr-defined]
    yield database
    database.close()


def main_of(page: str) -> str:
    """What stands in <main>, on one line."""
    return re.sub(r"\s+", " ", page.split("<main", 1)[1].split("</main>", 1)[0])


def test_an_empty_library_leads_to_the_first_file(client: TestClient, database: Database) -> None:
    """Nothing to read yet: a sentence, what can be read, and the manual to try it with."""
    page = main_of(client.get("/library").text)
    assert "Nothing to read yet." in page
    assert "up to 200 MB each" in page
    assert "Try it with Docent&#39;s own manual" in page
    assert "0 documents · 0 passages" in page


def test_rows_say_state_size_and_reason_and_what_failed_comes_first(client: TestClient, database: Database) -> None:
    """Each state has a mark and words; a failed file says why and offers another try."""
    rows.add_document(database, "notes/a.md", "# A\n\nWords.", title="Plan")
    rows.add_document(database, "waiting.md")
    failed = rows.add_document(database, "vpn.pdf", failed="encrypted")
    page = main_of(client.get("/library").text)
    assert page.index("vpn.pdf") < page.index("waiting.md") < page.index("notes/a.md")
    assert load_catalog().t("errors.ingest_encrypted") in page
    assert page.count(f'action="/ui/documents/{failed}/retry"') == 2
    assert "3 documents · 2 passages · 1 needs a look" in page
    for words in ("Waiting", "Failed", "Searchable, 0 % embedded", 'class="file-title">Plan'):
        assert words in page, words


def test_a_too_large_file_names_its_size_and_the_limit(client: TestClient, database: Database) -> None:
    """A number without its limit helps nobody."""
    rows.add_document(database, "big.pdf", failed="too_large")
    page = main_of(client.get("/library").text)
    assert "200 MB" in page
    assert "{" not in page.split("big.pdf", 1)[1].split("</div>", 1)[0]


def test_pages_that_are_images_are_named(client: TestClient, database: Database) -> None:
    """One page is named by its number, several by their count."""
    rows.add_document(database, "scan.pdf", "Text.", pages=5, text_yield=[9, 9, 0, 9, 9])
    rows.add_document(database, "more.pdf", "Text.", pages=3, text_yield=[9, 0, 0])
    page = main_of(client.get("/library").text)
    assert "Page 3 of 5 is an image and can&#39;t be searched." in page
    assert "2 of 3 pages are images and can&#39;t be searched." in page


def test_names_can_not_turn_the_page_around(client: TestClient, database: Database) -> None:
    """Control and direction characters of a name are shown as marks, its HTML as text."""
    rows.add_document(database, "in\u202evoice\n<b>.md", "Words.")
    page = client.get("/library").text
    assert "in�voice�&lt;b&gt;.md" in page
    assert "\u202e" not in page


def test_a_long_path_keeps_both_ends(client: TestClient, database: Database) -> None:
    """The middle goes, the whole path is in the title."""
    path = "folder/" * 30 + "file-name.md"
    rows.add_document(database, path, "Words.")
    page = client.get("/library").text
    assert f'title="{path}"' in page
    assert re.search(r"<bdi>folder/[^<]*…[^<]*file-name\.md</bdi>", page)


def test_filters_narrow_the_list_and_say_when_nothing_fits(client: TestClient, database: Database) -> None:
    """Name, state and collection; a filter that is no choice counts as none."""
    rows.add_document(database, "alpha.md", "Words.")
    rows.add_document(database, "beta.md", failed="corrupt")
    assert "beta.md" not in client.get("/ui/library/files?q=alpha").text
    assert "alpha.md" not in client.get("/ui/library/files?status=look").text
    assert "alpha.md" in client.get("/ui/library/files?status=nonsense&collection=x").text
    nothing = client.get("/ui/library/files?q=gamma").text
    assert "No document has this in its name or title." in nothing
    assert "No document fits these filters." in client.get("/ui/library/files?q=gamma&status=ready").text
    assert 'id="library-counts" hx-swap-oob="true">2 documents' in nothing
    assert "No document fits these filters." in client.get("/ui/library/files?collection=99").text


def test_text_that_is_looked_for_is_found_and_marked(client: TestClient, database: Database, searcher: OneHit) -> None:
    """Names and text with one field: passages that hold the words lead to the reader at their place."""
    searcher.document = rows.add_document(database, "a.md", "Words.")
    page = client.get("/ui/library/files?q=pruning+space&collection=1").text
    assert f'href="/documents/{searcher.document}?chunk=5#passage"' in page
    assert "<mark>Pruning</mark> frees <mark>space</mark> &lt;b&gt;." in page
    assert "… " in page
    assert searcher.asked == [("pruning space", SearchFilters(collections=(1,)))]


def test_nothing_is_searched_without_words(client: TestClient, database: Database, searcher: OneHit) -> None:
    """A list without a query asks no searcher."""
    rows.add_document(database, "a.md", "Words.")
    client.get("/library")
    assert searcher.asked == []


def test_more_rows_come_by_the_key_of_the_last_one(client: TestClient, database: Database) -> None:
    """Fifty at once; the rest is fetched, with and without script, and none is shown twice."""
    for number in range(53):
        rows.add_document(database, f"n{number:02}.md", "Words.")
    first = client.get("/library").text
    assert "1–50 of 53" in main_of(first)
    address = re.search(r'hx-get="(/ui/library/more[^"]*)"', first)
    assert address
    more = client.get(address[1].replace("&amp;", "&")).text
    assert "1–53 of 53" in more
    assert "Show more" not in more
    names = re.findall(r"<bdi>(n\d\d\.md)</bdi>", first) + re.findall(r"<bdi>(n\d\d\.md)</bdi>", more)
    assert sorted(names) == [f"n{number:02}.md" for number in range(53)]
    plain = re.search(r'<a class="foot-link" href="(/library\?[^"]*)"', first)
    assert plain
    assert "n00.md" in client.get(plain[1].replace("&amp;", "&")).text


def test_only_rows_that_changed_are_sent_again(client: TestClient, database: Database) -> None:
    """The poller names what it shows; it gets what differs, and an end once nothing is in work."""
    document = rows.add_document(database, "a.md")
    shown = re.search(r'name="row" value="([^"]+)"', client.get("/library").text)
    assert shown
    same = client.get("/ui/library/working", params={"row": shown[1]}).text
    assert f"file-{document}" not in same
    rows.set_status(database, document, "parsing")
    changed = client.get("/ui/library/working", params={"row": shown[1]}).text
    assert f'id="file-{document}"' in changed
    assert 'hx-swap-oob="true"' in changed
    assert "Reading" in changed
    for none in ({}, {"row": ""}):
        assert client.get("/ui/library/working", params=none).status_code == 286


def test_every_row_in_work_is_asked_about(client: TestClient, database: Database) -> None:
    """Files that came together stand in the same state; each of them is sent again when it changes."""
    together = [rows.add_document(database, f"{name}.md") for name in "abc"]
    shown = re.findall(r'name="row" value="([^"]+)"', client.get("/library").text)
    assert len(shown) == len(together)
    for document in together:
        rows.set_status(database, document, "parsing")
    changed = client.get("/ui/library/working", params={"row": shown}).text
    assert [number for number in together if f'id="file-{number}"' in changed] == together
    assert '<span class="figures" id="side-documents" hx-swap-oob="true">3</span>' in changed


def test_a_failed_file_is_tried_again(client: TestClient, database: Database) -> None:
    """With htmx the row comes back waiting; as a plain form the page does."""
    document = rows.add_document(database, "a.pdf", failed="timeout")
    answer = client.post(f"/ui/documents/{document}/retry", headers=HTMX)
    assert "Waiting" in answer.text
    assert answer.headers["HX-Trigger"] == "library-work"
    plain = client.post(f"/ui/documents/{document}/retry", follow_redirects=False)
    assert (plain.status_code, plain.headers["location"]) == (303, "/library")
    back = client.post(f"/ui/documents/{document}/retry?back=reader", follow_redirects=False)
    assert back.headers["location"] == f"/documents/{document}"


def test_removing_asks_first_and_names_what_is_lost(client: TestClient, database: Database) -> None:
    """The dialog and the plain page ask the same; then the row, its passages and its count go."""
    document = rows.add_document(database, "storage.md", "One.\n\nTwo.")
    for address in (f"/ui/documents/{document}/remove", f"/library/remove/{document}"):
        page = client.get(address).text
        assert "Remove storage.md?" in page
        assert "Its 2 passages go with it; answers that cite it keep their quotes." in page
    gone = client.post(f"/ui/documents/{document}/remove", headers=HTMX)
    assert f'id="file-{document}" hx-swap-oob="delete"' in gone.text
    assert "storage.md removed" in gone.text
    assert "0 documents" in gone.text
    left = database.read(lambda session: documents.counts(session, LOCAL_USER_ID))
    assert (left.documents, left.passages) == (0, 0)
    assert client.post(f"/ui/documents/{document}/remove", headers=HTMX).status_code == 404


def test_a_plain_form_removes_too(client: TestClient, database: Database) -> None:
    """Without script the form leads back to the list."""
    document = rows.add_document(database, "a.md", "One.")
    plain = client.post(f"/ui/documents/{document}/remove", follow_redirects=False)
    assert plain.headers["location"] == "/library"


def test_foreign_documents_can_not_be_touched(client: TestClient, database: Database) -> None:
    """404 for every action on a row that is not yours, and it stays."""
    other = rows.add_user(database)
    foreign = rows.add_document(database, "secret.md", failed="corrupt", user_id=other)
    assert client.get(f"/ui/documents/{foreign}/remove").status_code == 404
    assert client.post(f"/ui/documents/{foreign}/remove").status_code == 404
    assert client.post(f"/ui/documents/{foreign}/retry").status_code == 404
    assert "secret.md" not in client.get("/ui/library/working", params={"row": f"{foreign}.x"}).text
    assert database.read(lambda session: documents.get_document(session, other, foreign)).row.status == "failed"


def test_the_progress_box_counts_and_goes_when_all_is_well(client: TestClient, database: Database) -> None:
    """While work goes on it asks every second and keeps its beginning; without work there is no box."""
    assert 'class="adding"' not in client.get("/ui/library/progress").text
    rows.add_document(database, "a.md", "One.\n\nTwo.")
    rows.add_document(database, "b.md")
    box = client.get("/ui/library/progress")
    assert "Adding 2 files" in box.text
    assert "0 ready · 1 searchable by words · 1 waiting" in box.text
    assert 'hx-trigger="every 1s"' in box.text
    assert "since=" in box.text
    assert box.headers["HX-Trigger"] == "library-changed"
    assert "HX-Trigger" not in client.get("/ui/library/progress?seen=2").headers


def test_a_batch_with_failures_stays_until_it_is_hidden(client: TestClient, database: Database) -> None:
    """What failed must be seen: the box waits for a click instead of five seconds."""
    rows.add_document(database, "b.pdf", failed="corrupt")
    page = client.get("/ui/library/progress", params={"since": "2026-11-01T00:00:00+00:00"}).text
    assert "1 file added" in page
    assert "1 failed" in page
    assert "delay:5s" not in page
    assert ">Hide</button>" in page
    hidden = client.get("/ui/library/progress", params={"since": "2026-11-01T00:00:00+00:00", "hide": "1"}).text
    assert 'class="adding"' not in hidden


def test_files_of_a_plain_form_are_taken(client: TestClient, database: Database) -> None:
    """Without script a form sends them; what is refused is listed with its reason."""
    plain = client.post("/ui/library/files", files={"files": ("../a.md", b"Words.")}, follow_redirects=False)
    assert plain.status_code == 303
    assert ">a.md<" in client.get("/library").text.replace("<bdi>", "<").replace("</bdi>", "<").replace(
        "<a.md<", ">a.md<"
    )


def test_a_file_over_the_limit_is_refused_by_name(settings: Settings) -> None:
    """413 and the limit, on a page that leads back."""
    small = settings.model_copy(update={"upload_max_mb": 1})
    client = TestClient(create_app(small), base_url="http://127.0.0.1:8642")
    page = client.post("/ui/library/files", files={"files": ("big.md", b"x" * 1_100_000)})
    assert page.status_code == 413
    assert "big.md" in page.text
    assert "UPLOAD_MAX_MB" in page.text
    client.app.state.docent.database.close()  # type: ignore[attr-defined]
