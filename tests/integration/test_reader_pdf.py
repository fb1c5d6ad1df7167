"""A PDF in the reader: its pages as pictures, boxed, for those who may read it and for nobody else."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from reportlab.pdfgen.canvas import Canvas
from selectolax.lexbor import LexborHTMLParser

from app.settings import Settings
from app.store import documents, intake
from app.store.engine import Database
from tests.integration import library_rows as rows
from tests.library_api import serving, settle, upload
from tests.png import RULE, WASH, Pixels

SAID = "The valve has to be opened by hand before the pump is started again."
ANSWER = "Open the valve by hand before starting the pump [1]. Later the lamp turns green [2]."


def pdf(*pages: tuple[str, ...]) -> bytes:
    """A PDF with these lines on its pages, the first of each a heading; a page without lines holds a drawing."""
    data = io.BytesIO()
    canvas = Canvas(data)
    for lines in pages:
        for number, line in enumerate(lines):
            canvas.setFont("Helvetica", 10 if number else 20)
            canvas.drawString(60, 700 - 20 * number, line)
        canvas.rect(60, 100, 200, 200)
        canvas.showPage()
    canvas.save()
    return data.getvalue()


FILLER = tuple(f"Line {n} tells more of what this pump was made for by its builders in those years" for n in range(24))
MANUAL = pdf(
    ("About", *FILLER),
    ("Starting", SAID, *FILLER),
    ("Lamps", "The lamp turns green later, if all is well.", *FILLER),
)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with serving(settings) as client:
        yield client


@pytest.fixture
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


def add(client: TestClient, name: str, data: bytes) -> int:
    document: int = upload(client, (name, data)).json()["documents"][0]["id"]
    settle(client)
    return document


@pytest.fixture
def cited(client: TestClient, database: Database) -> tuple[int, str]:
    """A manual of three pages, and the address of an answer's first citation of it, on page 2."""
    document = add(client, "pump.pdf", MANUAL)
    passages = rows.passages_of(database, document)
    on_two = next(one for one in passages if SAID in one.text)
    on_three = passages[-1]
    rows.add_answer(database, "t1", "How?", ANSWER, [(document, on_two), (document, on_three)])
    return document, f"/documents/{document}?chunk={on_two.id}&turn=t1&n=1"


def page(client: TestClient, address: str) -> LexborHTMLParser:
    reply = client.get(address)
    assert reply.status_code == 200, reply.text
    return LexborHTMLParser(reply.text)


def words(tree: LexborHTMLParser, selector: str) -> str:
    found = tree.css_first(selector)
    assert found is not None, selector
    return found.text()


def href(tree: LexborHTMLParser, selector: str) -> str:
    found = tree.css_first(selector)
    assert found is not None, selector
    return str(found.attributes["href"])


def image(tree: LexborHTMLParser) -> dict[str, Any]:
    found = tree.css_first(".reader-page img")
    assert found is not None
    return found.attributes


def toggles(tree: LexborHTMLParser) -> dict[str, str]:
    return {link.text(): str(link.attributes["href"]) for link in tree.css(".reader-views a")}


def test_a_citation_in_a_pdf_can_be_seen_on_its_page(client: TestClient, cited: tuple[int, str]) -> None:
    """Text and Page are links; the page has its size, its words for those who don't see it, and the passage as text."""
    _, address = cited
    text = page(client, address)
    assert toggles(text).keys() == {"Text", "Page"}
    assert text.css_first(".reader-page") is None
    shown = page(client, toggles(text)["Page"])
    picture = image(shown)
    assert picture["alt"] == "Page 2 of 3 of pump.pdf, the passage boxed"
    marked = " ".join(mark.text() for mark in shown.css(".reader-said mark"))
    assert "".join(marked.split()) == "".join(SAID.split())
    assert "Citation 1 of 2" in words(shown, ".reader-step")

    reply = client.get(str(picture["src"]))
    assert reply.headers["content-type"] == "image/png"
    pixels = Pixels(reply.content)
    assert (str(pixels.width), str(pixels.height)) == (picture["width"], picture["height"])
    assert pixels.extent(WASH)
    assert pixels.extent(RULE)


def test_the_way_between_citations_keeps_the_view(client: TestClient, cited: tuple[int, str]) -> None:
    """Next leads to the next citation's page, back to the answer's numeral."""
    shown = page(client, cited[1] + "&view=page")
    following = page(client, href(shown, "a[rel=next]"))
    assert image(following)["alt"] == "Page 3 of 3 of pump.pdf, the passage boxed"
    assert href(following, ".reader-back").endswith("#c-t1-2")


def test_pages_beside_are_a_link_away(client: TestClient, cited: tuple[int, str]) -> None:
    """They show no box of another page's passage; there is none before the first and after the last."""
    links = page(client, cited[1] + "&view=page").css(".reader-page figcaption a")
    before, after = (page(client, str(link.attributes["href"])) for link in links)
    assert image(before)["alt"] == "Page 1 of 3 of pump.pdf"
    assert Pixels(client.get(str(image(before)["src"])).content).extent(RULE) is None
    assert image(after)["alt"] == "Page 3 of 3 of pump.pdf"
    for tree in (before, after):
        assert len(tree.css(".reader-page figcaption a")) == 1
    assert "Page 2 of 3" in words(page(client, cited[1] + "&view=page"), "figcaption")


def test_a_picture_is_kept_by_the_browser_and_asked_for_again(client: TestClient, cited: tuple[int, str]) -> None:
    """Private, with a tag of what it shows: another passage has another."""
    source = str(image(page(client, cited[1] + "&view=page"))["src"])
    first = client.get(source)
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get(source, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    bare = client.get(f"/documents/{cited[0]}/pages/2.png", headers={"If-None-Match": first.headers["etag"]})
    assert bare.status_code == 200
    assert Pixels(bare.content).extent(WASH) is None


def test_a_picture_is_its_owners_only(client: TestClient, database: Database, cited: tuple[int, str]) -> None:
    """404, as for a document that is not there, and as for one without pages."""
    foreign = rows.add_document(
        database, "secret.pdf", "Secret words.", user_id=rows.add_user(database), mime="application/pdf", pages=1
    )
    note = rows.add_document(database, "note.md", "Words.")
    tag = client.get(f"/documents/{cited[0]}/pages/1.png").headers["etag"]
    for document in (foreign, 9999, note):
        reply = client.get(f"/documents/{document}/pages/1.png", headers={"If-None-Match": tag})
        assert reply.status_code == 404
    assert client.get(f"/documents/{cited[0]}/pages/0.png").status_code == 422
    assert client.get(f"/documents/{cited[0]}/pages/9.png").status_code == 422
    assert client.get(f"/documents/{cited[0]}/pages/x.png").status_code == 422
    assert toggles(page(client, f"/documents/{note}?view=page")) == {}


def test_a_scan_without_text_is_seen_as_its_pages(client: TestClient) -> None:
    """It could not be read, and still can be looked at."""
    document = add(client, "scan.pdf", pdf((), ()))
    tree = page(client, f"/documents/{document}")
    assert image(tree)["alt"] == "Page 1 of 2 of scan.pdf"
    assert toggles(tree) == {}
    assert client.get(str(image(tree)["src"])).status_code == 200


def test_a_page_that_can_not_be_drawn_leaves_the_text(
    client: TestClient, database: Database, cited: tuple[int, str]
) -> None:
    """One sentence, and the text with its passage as ever; also where the file itself is gone."""
    tree = page(client, cited[1] + "&view=page&page=7")
    assert "Page 7 can't be shown as a picture." in words(tree, ".lost")
    assert SAID in " ".join(words(tree, "#passage").split())
    broken = add(client, "broken.pdf", b"%PDF-1.4\nnothing")
    assert "Page 1 can't be shown as a picture." in words(page(client, f"/documents/{broken}"), ".lost")
    lost = rows.add_document(database, "lost.pdf", "Words that were read.", mime="application/pdf", pages=1)
    tree = page(client, f"/documents/{lost}?view=page")
    assert "Page 1 can't be shown as a picture." in words(tree, ".lost")
    assert "Words that were read." in tree.text()
    assert client.get(f"/documents/{lost}/pages/1.png").status_code == 404


def test_a_removed_document_is_a_stop_on_the_way(
    client: TestClient, database: Database, cited: tuple[int, str]
) -> None:
    """Its quote stands in its place, and previous and next lead on."""
    other = rows.add_document(database, "note.md", "The lamp turns green once the pump runs well.")
    gone = rows.add_document(database, "gone.md", SAID)
    given = [(gone, rows.passages_of(database, gone)[0]), (other, rows.passages_of(database, other)[0])]
    rows.add_answer(database, "t2", "How?", ANSWER, given)
    database.write(lambda session: intake.drop_documents(session, [gone]))
    reply = client.get(f"/documents/{gone}?chunk=1&turn=t2&n=1")
    assert reply.status_code == 404
    tree = LexborHTMLParser(reply.text)
    assert "Citation 1 of 2" in words(tree, ".reader-step")
    assert SAID in words(tree, "blockquote")
    following = page(client, href(tree, "a[rel=next]"))
    assert href(following, "a[rel=prev]").startswith(f"/documents/{gone}?")
    assert words(following, "#passage mark") == "The lamp turns green once the pump runs well."


def test_each_mention_opens_at_its_own_sentence(client: TestClient, database: Database) -> None:
    """An answer that cites a passage twice leads to two sentences, and back to two numerals."""
    text = "The pump starts at noon. The lamp turns green after a minute."
    document = rows.add_document(database, "note.md", text)
    answer = "It starts at noon [1]. The lamp is green after one minute [1]."
    begun = rows.add_answer(database, "t3", "When?", answer, [(document, rows.passages_of(database, document)[0])])
    chat = page(client, f"/chats/{begun.chat_id}")
    cites = chat.css("a.cite")
    expected = ["The pump starts at noon.", "The lamp turns green after a minute."]
    backs = ["“It starts at noon.”", "“The lamp is green after one minute.”"]
    for cite, sentence, said in zip(cites, expected, backs, strict=True):
        tree = page(client, str(cite.attributes["href"]))
        assert words(tree, "#passage mark") == sentence
        assert words(tree, ".reader-backs") == said
        assert href(tree, ".reader-back").endswith(f"#{cite.attributes['id']}")


def test_a_passage_of_neighbours_is_shown_whole(client: TestClient, database: Database) -> None:
    """What the model was given as one is one in the reader, though its address names the better part."""
    text = "The pump starts at noon.\n\nThe lamp turns green after a minute."
    document = rows.add_document(database, "note.md", text)
    first, second = rows.passages_of(database, document)
    merged = first.__class__(**{**_fields(first), "text": text, "char_end": second.char_end})
    rows.add_answer(database, "t4", "When?", "The lamp is green after one minute [1].", [(document, merged)])
    tree = page(client, f"/documents/{document}?chunk={first.id}&turn=t4&n=1")
    assert words(tree, "#passage mark") == "The lamp turns green after a minute."
    assert "noon" in words(tree, "#passage")


def _fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def test_the_owner_check_stands_before_the_file(client: TestClient, database: Database) -> None:
    """No document of another's is opened to learn its pages."""
    foreign = rows.add_document(database, "secret.pdf", None, user_id=rows.add_user(database), failed="no_text")
    assert client.get(f"/documents/{foreign}").status_code == 404
    assert database.read(lambda session: documents.count_matching(session, 1, documents.DocumentFilters())) == 0
