"""The chat pages and their fragments, rendered by the real application from real rows."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from selectolax.lexbor import LexborHTMLParser

from app.edge.answers import locator_of
from app.main import create_app
from app.rag.turn import TurnStats
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database
from app.store.models.setup import LOCAL_USER_ID
from app.turns.settle import Draft, Ending, settle
from tests.integration import library_rows as rows

TEXT = "# Backups\n\nThe nightly job starts at 02:00.\n\nIt keeps seven snapshots."
QUESTION = "When does <b>it</b> start?"
HTMX = {"HX-Request": "true", "Origin": "http://127.0.0.1:8642"}


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642", follow_redirects=False) as client:
        yield client


@pytest.fixture
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def chat_id(database: Database) -> int:
    """A chat with one cited answer, turn `t1`."""
    document = rows.add_document(database, "notes/backup.md", TEXT, title="Backups")
    passages = rows.passages_of(database, document)
    begun = rows.add_answer(
        database, "t1", QUESTION, "It starts at 02:00 [1].", [(document, passages[1]), (document, passages[2])]
    )
    return begun.chat_id


def tree(html: str) -> LexborHTMLParser:
    return LexborHTMLParser(html)


def end_turn(database: Database, turn_id: str, ending: Ending, content: str = "", **draft: object) -> int:
    """A turn that ended otherwise than by an answer; gives its chat."""

    def work(session: object) -> int:
        begun = turns.begin_turn(session, turns.NewTurn(turn_id, LOCAL_USER_ID, None, None, "Why?", rows.NOW))  # type: ignore[arg-type]
        stats = TurnStats(turn=turn_id, chat=begun.chat_id, user=LOCAL_USER_ID, mode="grounded", total_ms=1200)
        settle(session, ending, stats, Draft(begun.message_id, content, **draft), now=rows.NOW)  # type: ignore[arg-type]
        return begun.chat_id

    return database.write(work)


def test_the_first_run_page_leads_to_documents_and_a_model(client: TestClient) -> None:
    """Three steps, the manual one click away, and a composer that says why it is closed."""
    page = tree(client.get("/").text)
    text = page.body.text() if page.body else ""
    assert "Ask your own documents." in text
    assert page.css_first('form[action="/ui/library/sample"] button') is not None
    assert page.css_first("textarea").attributes["placeholder"] == "Add a document first"
    assert "disabled" in page.css_first("textarea").attributes
    assert page.css_first(".note .quote mark") is not None
    assert "Your chats will be listed here." in text
    assert "Nothing to read yet." in text


def test_a_new_chat_in_a_filled_library_is_open(client: TestClient, chat_id: int) -> None:
    """Counts in the side bar, the scope, and a draft from the address."""
    page = tree(client.get("/?q=Why+<not>?").text)
    assert page.css_first("textarea").text() == "Why <not>?"
    assert "disabled" not in page.css_first("textarea").attributes
    assert [option.text() for option in page.css("select[name=scope] option")] == ["Whole library", "Library"]
    assert page.css_first('.side-row[href="/library"] .figures').text() == "1"


def test_a_chat_shows_its_turns_with_notes_and_list(client: TestClient, chat_id: int) -> None:
    """Question as heading, given line, the sentence with its numeral and note, the same source in the list."""
    page = tree(client.get(f"/chats/{chat_id}").text)
    assert page.css_first("h2.question").text() == QUESTION
    assert "2 passages given, 1 cited" in page.css_first(".given").text()
    assert page.css_first(".said").text() == "It starts at 02:00."
    assert page.css_first(".note .note-title").text() == "Backups"
    assert page.css_first(".sources b").text() == "Backups"
    assert page.css_first(".also a") is not None
    assert page.css_first(".receipt").attributes["href"] == "/turns/t1"
    assert page.css_first('.side-row[aria-current="page"]').text() == QUESTION


def test_what_was_typed_is_escaped_wherever_it_stands(client: TestClient, chat_id: int) -> None:
    """Title, heading, side bar, data attributes."""
    html = client.get(f"/chats/{chat_id}").text
    assert "<b>it</b>" not in html
    assert html.count("&lt;b&gt;it&lt;/b&gt;") >= 4


def test_a_turns_fragment_is_what_the_page_holds(client: TestClient, chat_id: int) -> None:
    """One partial for both, byte for byte."""
    fragment = client.get("/ui/turns/t1").text
    assert fragment.strip() in client.get(f"/chats/{chat_id}").text


def test_a_deflected_turn_lists_the_nearest_on_their_scale(client: TestClient, database: Database) -> None:
    """Scores, the tick at the threshold, and no numeral: nothing here is evidence."""
    document = rows.add_document(database, "notes/backup.md", TEXT)
    begun = rows.add_answer(
        database, "t2", "Pie?", "Your documents don't say. [1]", [(document, rows.passages_of(database, document)[1])],
        mode="deflected",
    )  # fmt: skip
    page = tree(client.get(f"/chats/{begun.chat_id}").text)
    assert page.css_first(".nearest .figures").text() == "0.80"
    assert page.css_first(".score-bar .value").attributes["width"] == "32.0"
    assert page.css_first(".cite") is None
    assert "turn=" not in (page.css_first(".nearest a").attributes["href"] or "")
    assert page.css_first("[data-without]") is not None


def test_a_stopped_turn_keeps_its_text_and_can_go_on(client: TestClient, database: Database) -> None:
    """Continue comes first among the actions."""
    page = tree(client.get(f"/chats/{end_turn(database, 't3', Ending('stopped'), 'Half an')}").text)
    assert page.css_first(".answer").text().strip() == "Half an"
    assert "Stopped. What arrived is kept." in page.css_first(".turn .notice").text()
    assert page.css_first(".actions > button").text() == "Continue"


def test_a_turn_stopped_before_its_first_word_claims_no_text(client: TestClient, database: Database) -> None:
    """Nothing arrived, so nothing is said to be kept, and there is nothing to go on with."""
    page = tree(client.get(f"/chats/{end_turn(database, 't3', Ending('stopped'), '')}").text)
    assert "Stopped before the answer began." in page.css_first(".turn .notice").text()
    assert page.css_first(".actions [data-continue]") is None


def test_a_malformed_turn_says_what_happened_and_what_is_kept(client: TestClient, database: Database) -> None:
    """The contract's sentence, one plain line, and a way to try again."""
    page = tree(client.get(f"/chats/{end_turn(database, 't4', Ending('malformed', 'malformed_reply'))}").text)
    alert = page.css_first("[role=alert].notice.wrong:not([hidden])")
    assert "The model returned a malformed reply — please try again." in alert.text()
    assert "It was asked twice and sent no readable text. Your question is kept." in alert.text()
    assert alert.css_first("[data-again]") is not None


def test_an_interrupted_turn_keeps_what_arrived(client: TestClient, database: Database) -> None:
    """Text above, sentence below."""
    page = tree(client.get(f"/chats/{end_turn(database, 't5', Ending('interrupted', 'interrupted'), 'Some.')}").text)
    assert page.css_first(".answer").text().strip() == "Some."
    assert "Docent was stopped while it was answering" in page.css_first("[data-problem]").text()


def test_a_running_turn_is_marked_for_the_script(client: TestClient, database: Database) -> None:
    """The page that comes in the middle follows it."""
    begun = database.write(
        lambda session: turns.begin_turn(session, turns.NewTurn("t6", LOCAL_USER_ID, None, None, "Now?", rows.NOW))
    )
    article = tree(client.get(f"/chats/{begun.chat_id}").text).css_first("#turn-t6")
    assert "data-running" in article.attributes
    assert article.attributes["aria-busy"] == "true"
    assert article.css_first(".actions") is None


def test_an_answer_that_cites_nothing_says_so(client: TestClient, database: Database) -> None:
    """Unless it says that the documents hold no answer."""
    document = rows.add_document(database, "a.md", TEXT)
    given = [(document, rows.passages_of(database, document)[1])]
    first = rows.add_answer(database, "t7", "A?", "It simply does.", given, finish_reason="length")
    page = tree(client.get(f"/chats/{first.chat_id}").text)
    assert [notice.text().strip() for notice in page.css(".turn .notice")] == [
        "The answer reached the model's length limit and breaks off here.",
        "The answer cites no passage, so nothing here backs it.",
    ]
    second = rows.add_answer(database, "t8", "B?", "Your documents don't say.", given)
    assert tree(client.get(f"/chats/{second.chat_id}").text).css_first(".turn .notice") is None


@pytest.mark.parametrize(
    "path", ["/chats/999", "/ui/turns/none", "/ui/chats/999/rename", "/chats/99999999999999999999"]
)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    """Also for numbers no row can have."""
    assert client.get(path).status_code in (404, 422)


def test_another_persons_chat_looks_like_a_missing_one(client: TestClient, database: Database) -> None:
    """On every route that takes its number."""
    other = rows.add_user(database)
    chat = database.write(lambda session: chats.create_chat(session, other, "Private", rows.NOW))
    assert client.get(f"/chats/{chat.id}").status_code == 404
    assert client.get(f"/ui/chats/{chat.id}/delete").status_code == 404
    assert client.post(f"/ui/chats/{chat.id}/delete", headers=HTMX).status_code == 404
    assert client.post(f"/ui/chats/{chat.id}/rename", data={"title": "x"}, headers=HTMX).status_code == 404
    assert "Private" not in client.get("/ui/chats").text


def test_a_renamed_chat_renames_its_own_page(client: TestClient, chat_id: int) -> None:
    """The page that shows it takes the title; another page takes the row only."""
    address, fields = f"/ui/chats/{chat_id}/rename", {"title": "New name"}
    here = {"HX-Current-URL": f"http://127.0.0.1:8642/chats/{chat_id}#turn-t1"}
    assert "<title>New name · Docent</title>" in client.post(address, data=fields, headers=HTMX | here).text
    assert "<title>" not in client.post(address, data=fields, headers=HTMX).text


def test_a_chat_is_renamed_in_place_and_without_script(client: TestClient, chat_id: int) -> None:
    """htmx gets the row, a plain form the page; Cancel brings the row back."""
    assert 'name="title"' in client.get(f"/ui/chats/{chat_id}/rename").text
    row = client.post(f"/ui/chats/{chat_id}/rename", data={"title": " New  name "}, headers=HTMX).text
    assert tree(row).css_first("a").text() == "New name"
    plain = client.post(
        f"/ui/chats/{chat_id}/rename", data={"title": "Other"}, headers={"Origin": "http://127.0.0.1:8642"}
    )
    assert (plain.status_code, plain.headers["location"]) == (303, f"/chats/{chat_id}")
    assert "Other" in client.get(f"/ui/chats/{chat_id}/row").text


def test_an_empty_name_is_refused_with_its_sentence(client: TestClient, chat_id: int) -> None:
    """Nothing changes."""
    refused = client.post(f"/ui/chats/{chat_id}/rename", data={"title": "  "}, headers=HTMX)
    assert (refused.status_code, refused.text) == (422, "A chat needs a name.")


def test_deleting_asks_first_and_leaves_the_open_chat(client: TestClient, chat_id: int) -> None:
    """The dialog names the chat; deleting the open one leads to a new chat, another only renews the list."""
    assert "Delete “" in client.get(f"/ui/chats/{chat_id}/delete").text
    here = {"HX-Current-URL": f"http://127.0.0.1:8642/chats/{chat_id}?x=1#turn-t1"}
    gone = client.post(f"/ui/chats/{chat_id}/delete", headers={**HTMX, **here})
    assert gone.headers["HX-Redirect"] == "/"
    assert client.get(f"/chats/{chat_id}").status_code == 404


def test_deleting_from_elsewhere_renews_the_list(client: TestClient, database: Database, chat_id: int) -> None:
    """And without script it leads to the start."""
    elsewhere = {**HTMX, "HX-Current-URL": "http://127.0.0.1:8642/library"}
    assert "Your chats will be listed here." in client.post(f"/ui/chats/{chat_id}/delete", headers=elsewhere).text
    other = database.write(lambda session: chats.create_chat(session, LOCAL_USER_ID, "Other", rows.NOW))
    plain = client.post(f"/ui/chats/{other.id}/delete", headers={"Origin": "http://127.0.0.1:8642"})
    assert (plain.status_code, plain.headers["location"]) == (303, "/")


def test_deleting_a_chat_stops_what_is_being_written_in_it(client: TestClient, database: Database) -> None:
    """A turn that is marked running but is not here doesn't hold it up."""
    begun = database.write(
        lambda session: turns.begin_turn(session, turns.NewTurn("t9", LOCAL_USER_ID, None, None, "Now?", rows.NOW))
    )
    assert client.post(f"/ui/chats/{begun.chat_id}/delete", headers=HTMX).status_code == 200
    assert client.get(f"/chats/{begun.chat_id}").status_code == 404


def test_places_of_sources_are_short_and_exact(client: TestClient) -> None:
    """Lines for text, pages for PDF, and the path alone where nothing more is known."""
    row = {"path": "a/b.md", "line_start": 3, "line_end": 3}
    assert locator_of(row) == "a/b.md:3"
    assert locator_of({**row, "line_end": 9}) == "a/b.md:3–9"
    assert locator_of({**row, "page": 7}) == "a/b.md, p. 7"
    assert locator_of({"path": "a/b.md"}) == "a/b.md"


def test_the_list_marks_the_open_chat(client: TestClient, chat_id: int) -> None:
    """For the page that just got a chat of its own."""
    current = tree(client.get(f"/ui/chats?current={chat_id}").text).css_first('[aria-current="page"]')
    assert current.attributes["href"] == f"/chats/{chat_id}"


def test_the_footnote_names_the_model_but_no_secret(settings: Settings) -> None:
    """User and password of an address are not shown."""
    given = Settings(
        _env_file=None, data_dir=settings.data_dir, llm_base_url="http://me:pw@nas.lan:1/v1", llm_model="q"
    )  # type: ignore[call-arg]
    with TestClient(create_app(given), base_url="http://127.0.0.1:8642") as client:
        foot = tree(client.get("/").text).css_first(".side-foot").text()
    assert "Answers with q on nas.lan:1" in foot
    assert "pw" not in foot
