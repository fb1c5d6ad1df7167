"""`/documents/{id}`: the text, opened at the passage an answer cites; and what is shown when it can't be."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.catalog import load_catalog
from app.main import create_app
from app.settings import Settings
from app.store import intake
from app.store.engine import Database
from tests.integration import library_rows as rows

TEXT = """# Removing snapshots

Use forget with a policy. It keeps what you name.

You might want irregular backups. The 7 snapshots specified with keep-daily might be spread over a longer period.

All the rest is removed by prune."""

ANSWER = "Counts such as `keep-daily` may spread over a longer period. [1] Then prune. [2]"


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        yield client


@pytest.fixture
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def cited(database: Database) -> int:
    """A document whose third and fourth passage an answer cites, as turn `t1`."""
    document = rows.add_document(database, "restic/060_forget.md", TEXT, title="Removing snapshots")
    passages = rows.passages_of(database, document)
    rows.add_answer(database, "t1", "How?", ANSWER, [(document, passages[2]), (document, passages[3])])
    return document


def test_a_citation_opens_at_its_passage_with_the_supporting_sentence_marked(
    client: TestClient, database: Database, cited: int
) -> None:
    """The passage carries the anchor, the words that back the claim are marked, nothing else is."""
    chunk = rows.passages_of(database, cited)[2].id
    page = client.get(f"/documents/{cited}?chunk={chunk}&turn=t1&n=1").text
    passage = page.split('id="passage"', 1)[1].split("</section>", 1)[0]
    assert "<mark>The 7 snapshots specified with keep-daily might be spread over a longer period.</mark>" in passage
    assert page.count("<mark>") == 1
    assert "All the rest" not in passage
    assert "All the rest is removed by prune." in page


def test_the_reader_knows_the_answer_it_was_opened_from(client: TestClient, database: Database, cited: int) -> None:
    """Citation k of m, the sentence it backs without its markers, the way back, and the next citation."""
    first, second = (passage.id for passage in rows.passages_of(database, cited)[2:4])
    page = client.get(f"/documents/{cited}?chunk={first}&turn=t1&n=1").text
    assert "Citation 1 of 2" in page
    assert '“Counts such as <span class="whole">keep-daily</span> may spread over a longer period.”' in page
    assert f'href="/documents/{cited}?chunk={second}&amp;turn=t1&amp;n=2#passage" rel="next"' in page
    assert 'rel="prev"' not in page
    back = re.search(r'class="reader-back" href="([^"#]+)#([^"]+)"', page)
    assert back
    assert f'id="{back[2]}"' in client.get(back[1]).text
    assert "Citation 2 of 2" in client.get(f"/documents/{cited}?chunk={second}&turn=t1&n=2").text


def test_a_source_that_was_given_and_not_cited_has_no_sentence(client: TestClient, database: Database) -> None:
    """ "Also read" opens too, without claiming that it backs anything."""
    document = rows.add_document(database, "a.md", TEXT)
    passages = rows.passages_of(database, document)
    rows.add_answer(database, "t2", "How?", "Use forget. [1]", [(document, passages[1]), (document, passages[3])])
    page = client.get(f"/documents/{document}?chunk={passages[3].id}&turn=t2&n=2").text
    assert "Source 2" in page
    assert "The sentence it backs" not in page


def test_a_document_without_a_citation_shows_its_facts(client: TestClient, database: Database) -> None:
    """Opened from the library it is the text and what is known of the file."""
    document = rows.add_document(database, "notes/a.md", TEXT, title="Removing snapshots", pages=3)
    page = client.get(f"/documents/{document}").text
    for words in ("<h1", "Removing snapshots", "notes/a.md", "utf-8", "Passages", "text/markdown", "download"):
        assert words in page, words
    assert 'id="passage"' not in page
    assert f'href="/api/documents/{document}/file"' in page


def test_an_old_answer_finds_its_words_in_a_document_that_was_read_again(
    client: TestClient, database: Database, cited: int
) -> None:
    """Passages got new ids and moved; the quote is looked for by its words."""
    old = rows.passages_of(database, cited)[2].id
    rows.read_again(database, cited, "A new first paragraph.\n\n" + TEXT)
    page = client.get(f"/documents/{cited}?chunk={old}&turn=t1&n=1").text
    passage = page.split('id="passage"', 1)[1].split("</section>", 1)[0]
    assert "The 7 snapshots specified with keep-daily" in passage


def test_a_passage_that_is_gone_is_said_with_the_words_cited_then(
    client: TestClient, database: Database, cited: int
) -> None:
    """The document changed under the answer: nothing is marked in its place, the old words are quoted."""
    old = rows.passages_of(database, cited)[2].id
    rows.read_again(database, cited, "Everything is different now.")
    page = client.get(f"/documents/{cited}?chunk={old}&turn=t1&n=1").text
    assert "this passage is no longer in it" in page
    assert "The 7 snapshots specified with keep-daily" in page
    assert 'id="passage"' not in page


def test_a_removed_document_keeps_what_the_answer_quoted(client: TestClient, database: Database, cited: int) -> None:
    """404, and yet the reader of the answer sees the words it rests on."""
    database.write(lambda session: intake.drop_documents(session, [cited]))
    page = client.get(f"/documents/{cited}?chunk=1&turn=t1&n=1")
    assert page.status_code == 404
    assert "This document was removed." in page.text
    assert "The 7 snapshots specified with keep-daily" in page.text


def test_unknown_and_foreign_documents_look_the_same(client: TestClient, database: Database) -> None:
    """404 for both, with the same page."""
    foreign = rows.add_document(database, "secret.md", "Secret words.", user_id=rows.add_user(database))
    pages = [client.get(f"/documents/{number}") for number in (foreign, 9999)]
    assert [page.status_code for page in pages] == [404, 404]
    assert all("Secret words" not in page.text and "secret.md" not in page.text for page in pages)
    assert pages[0].text == pages[1].text


def test_a_chunk_of_another_document_marks_nothing(client: TestClient, database: Database, cited: int) -> None:
    """An address somebody put together by hand shows the document, no false passage."""
    other = rows.add_document(database, "b.md", "Other words.")
    chunk = rows.passages_of(database, other)[0].id
    page = client.get(f"/documents/{cited}?chunk={chunk}")
    assert page.status_code == 200
    assert 'id="passage"' not in page.text


def test_a_failed_document_says_why_and_offers_another_try(client: TestClient, database: Database) -> None:
    """The reason in plain words and one action."""
    document = rows.add_document(database, "locked.pdf", failed="encrypted")
    page = client.get(f"/documents/{document}").text
    assert load_catalog().t("errors.ingest_encrypted") in page
    assert f'action="/ui/documents/{document}/retry?back=reader"' in page


def test_a_document_in_work_is_shown_as_soon_as_it_is_read(client: TestClient, database: Database) -> None:
    """While it waits the page asks again; once there is text the page is loaded anew."""
    document = rows.add_document(database, "a.md")
    page = client.get(f"/documents/{document}").text
    assert "Waiting" in page
    assert f'hx-get="/ui/documents/{document}/state"' in page
    state = client.get(f"/ui/documents/{document}/state")
    assert "HX-Refresh" not in state.headers
    rows.read_again(database, document, "Text at last.")
    assert client.get(f"/ui/documents/{document}/state").headers["HX-Refresh"] == "true"
    assert "Text at last." in client.get(f"/documents/{document}").text


def test_text_of_documents_is_never_markup(client: TestClient, database: Database) -> None:
    """Markup, htmx attributes and links in a document are shown as the characters they are."""
    hostile = "<img src=x onerror=alert(1)>\n\n<div hx-get='/api/chats'>x</div>\n\n[a](javascript:alert(1))"
    document = rows.add_document(database, "<b>x</b>.md", hostile, title="<script>alert(1)</script>")
    page = client.get(f"/documents/{document}").text
    assert "<img src=x" not in page
    assert "<div hx-get='/api" not in page
    assert "<script>alert" not in page
    assert "<b>x</b>.md" not in page
    assert 'class="reader-text" hx-disable' in page


def test_a_megabyte_of_text_is_one_page(client: TestClient, database: Database) -> None:
    """A long document is one page: it stays searchable with the browser's own search."""
    paragraph = "Some `code` and **words** about [a thing](b.md) that go on for a while. " * 6
    document = rows.add_document(database, "long.md", "\n\n".join([paragraph] * 2400))
    chunk = rows.passages_of(database, document)[2000].id
    page = client.get(f"/documents/{document}?chunk={chunk}")
    assert len(page.text) > 1_000_000
    assert 'id="passage"' in page.text
