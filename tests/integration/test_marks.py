"""Marks under answers: what they save, in the chat, in the reader and over the API."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from selectolax.lexbor import LexborHTMLParser

from app.main import create_app
from app.rag.turn import TurnStats
from app.settings import Settings
from app.store import eval_questions, turns
from app.store.engine import Database, Session
from app.store.eval_questions import EvalQuestion
from app.store.models.setup import LOCAL_USER_ID
from app.turns.settle import Draft, Ending, settle
from tests.integration import library_rows as rows

TEXT = "# Backups\n\nThe nightly job starts at 02:00.\n\nIt keeps seven daily snapshots of each."
QUESTION = "When does the nightly job start?"
HTMX = {"HX-Request": "true", "Origin": "http://127.0.0.1:8642"}


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642", follow_redirects=False) as client:
        yield client


@pytest.fixture
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def document(database: Database) -> int:
    """A document, and turn `t1` whose answer cites its second passage and was given the third."""
    document = rows.add_document(database, "notes/backup.md", TEXT, title="Backups")
    given = rows.passages_of(database, document)[1:]
    rows.add_answer(database, "t1", QUESTION, "It starts at 02:00 [1].", [(document, one) for one in given])
    return document


def saved(database: Database) -> list[EvalQuestion]:
    return database.read(lambda session: eval_questions.questions_of(session, LOCAL_USER_ID))


def press(client: TestClient, path: str, **fields: str) -> LexborHTMLParser:
    reply = client.post(path, data=fields, headers=HTMX)
    assert reply.status_code == 200, reply.text
    return LexborHTMLParser(reply.text)


def pressed(page: LexborHTMLParser) -> list[str]:
    return [button.text().strip() for button in page.css('button[aria-pressed="true"]')]


def deflected(
    database: Database, document: int, turn_id: str = "t2", *, chat: int | None = None, text: str = "Why?", **facts: Any
) -> int:
    """A turn that nothing was close enough for; with `facts` a passage came near, known by its chunk only."""
    chunk = rows.passages_of(database, document)[1]
    near = {"n": 1, "document_id": document, "chunk_id": chunk.id, "path": "notes/backup.md", "score": 0.2}

    def work(session: Session) -> int:
        begun = turns.begin_turn(session, turns.NewTurn(turn_id, LOCAL_USER_ID, chat, None, text, rows.NOW))
        stats = TurnStats(turn=turn_id, chat=begun.chat_id, user=LOCAL_USER_ID, mode="deflected")
        sources = [near] if facts else []
        draft = Draft(begun.message_id, "Nothing about that.", sources=sources, facts=facts)
        settle(session, Ending("answer"), stats, draft, now=rows.NOW)
        return begun.chat_id

    return database.write(work)


@pytest.mark.usefixtures("document")
def test_helpful_saves_the_question_with_what_the_answer_cites(client: TestClient, database: Database) -> None:
    """The page shows it after a reload; a second press takes both back."""
    page = press(client, "/ui/turns/t1/mark", verdict="helpful")
    assert pressed(page) == ["Helpful", "This passage was right"]
    assert "with the passage that was right" in page.css_first("#marks-t1").text()
    (question,) = saved(database)
    assert [one.quote for one in question.passages] == ["The nightly job starts at 02:00."]
    assert (question.question, question.kind, question.turn_id, question.by_mark) == (QUESTION, "question", "t1", True)
    chat = LexborHTMLParser(client.get("/chats/1").text)
    assert pressed(chat) == ["Helpful", "This passage was right"]
    again = chat.css_first("#helpful-t1").attributes["value"] or ""
    assert pressed(press(client, "/ui/turns/t1/mark", verdict=again)) == []
    assert saved(database) == []


@pytest.mark.usefixtures("document")
def test_not_helpful_saves_nothing_and_asks_what_would_be_right(client: TestClient, database: Database) -> None:
    """In place of a Helpful it takes back what that saved; a reason can be said; the passages stand open."""
    press(client, "/ui/turns/t1/mark", verdict="helpful")
    page = press(client, "/ui/turns/t1/mark", verdict="not_helpful", reason="Too short")
    assert pressed(page) == ["Not helpful"]
    assert page.css_first("details").attributes.keys() >= {"open"}
    assert page.css_first("input[name=reason]").attributes["value"] == "Too short"
    assert saved(database) == []
    listed = client.get("/queries").text
    assert "Answers marked as not helpful" in listed
    assert "Too short" in listed


@pytest.mark.usefixtures("document")
def test_a_passage_marked_by_hand_stays_when_the_verdict_goes(client: TestClient, database: Database) -> None:
    """Each can be taken back; without any the question is not saved any more."""
    press(client, "/ui/turns/t1/mark", verdict="helpful")
    page = press(client, "/ui/turns/t1/passages", right="2")
    assert pressed(page).count("This passage was right") == 2
    assert page.css_first("details").attributes.keys() >= {"open"}
    press(client, "/ui/turns/t1/mark", verdict="")
    assert len(saved(database)[0].passages) == 2
    page = press(client, "/ui/turns/t1/passages", wrong="1")
    assert [one.quote for one in saved(database)[0].passages] == ["It keeps seven daily snapshots of each."]
    press(client, "/ui/turns/t1/passages", wrong="2")
    assert saved(database) == []


@pytest.mark.usefixtures("document")
def test_helpful_leaves_what_was_saved_by_hand(client: TestClient, database: Database) -> None:
    """The reader knows better than the answer."""
    press(client, "/ui/turns/t1/passages", right="2")
    press(client, "/ui/turns/t1/mark", verdict="helpful")
    assert [one.quote[:8] for one in saved(database)[0].passages] == ["It keeps"]
    refused = client.post("/ui/turns/t1/passages", data={"unanswerable": "1"}, headers=HTMX)
    assert refused.status_code == 409
    assert "Unmark them first" in refused.text


def test_a_question_can_be_saved_as_one_the_documents_do_not_answer(
    client: TestClient, database: Database, document: int
) -> None:
    """Under a deflected answer and under a wrong one; what came near can be the right passage all the same."""
    chat_id = deflected(database, document, searched="ada")
    assert (
        "The documents don't say" in LexborHTMLParser(client.get(f"/chats/{chat_id}").text).css_first(".marks").text()
    )
    assert pressed(press(client, "/ui/turns/t2/passages", unanswerable="1")) == ["The documents don't say"]
    assert (saved(database)[0].is_answerable, saved(database)[0].kind) == (False, "unanswerable")
    press(client, "/ui/turns/t2/passages", unanswerable="0")
    assert saved(database) == []
    assert pressed(press(client, "/ui/turns/t2/passages", right="1")) == ["This passage was right"]
    assert saved(database)[0].passages[0].path == "notes/backup.md"


def test_helpful_on_a_deflected_answer_means_that_the_documents_do_not_say(
    client: TestClient, database: Database, document: int
) -> None:
    """Unless the documents were left out: then nothing is known of them."""
    deflected(database, document, searched="ada")
    deflected(database, document, "t3")
    press(client, "/ui/turns/t2/mark", verdict="helpful")
    assert [question.is_answerable for question in saved(database)] == [False]
    press(client, "/ui/turns/t3/mark", verdict="helpful")
    assert len(saved(database)) == 1


def test_a_question_keeps_what_it_leans_on(client: TestClient, database: Database, document: int) -> None:
    """The turns before it, where it points back at them."""
    deflected(database, document, chat=1, text="And when does it end?", searched="end")
    said = client.put("/api/turns/t2/passages/1").json()
    assert said["saved"]["kind"] == "followup"
    assert said["saved"]["history"] == [{"question": QUESTION, "answer": "It starts at 02:00 [1]."}]


@pytest.mark.usefixtures("document")
def test_the_reader_marks_the_passage_of_a_citation(client: TestClient, database: Database) -> None:
    """Beside the citation it was opened for; without script the same page comes back."""
    address = "/documents/1?chunk=2&turn=t1&n=1"
    page = LexborHTMLParser(client.get(address).text)
    assert page.css_first("#reader-right button").attributes["name"] == "right"
    page = press(client, "/ui/turns/t1/passages", right="1", view="reader")
    assert pressed(page) == ["This passage was right"]
    assert pressed(LexborHTMLParser(client.get(address).text)) == ["This passage was right"]
    reply = client.post("/ui/turns/t1/passages", data={"wrong": "1", "view": "reader"})
    assert (reply.status_code, reply.headers["location"]) == (303, f"{address}#passage")
    assert saved(database) == []


@pytest.mark.usefixtures("document")
def test_marks_work_without_script(client: TestClient) -> None:
    """The form leads back to the answer."""
    reply = client.post("/ui/turns/t1/mark", data={"verdict": "helpful"})
    assert (reply.status_code, reply.headers["location"]) == (303, "/chats/1#turn-t1")


def test_a_passage_is_found_by_its_words_in_a_document_that_was_read_again(
    client: TestClient, database: Database, document: int
) -> None:
    """Where they are gone it is refused in a sentence; where the document is gone, too."""
    rows.read_again(database, document, "# New\n\nOther.\n\nThe nightly job starts at 02:00. More.")
    press(client, "/ui/turns/t1/passages", right="1")
    assert saved(database)[0].passages[0].char_start == 15
    rows.read_again(database, document, "# New")
    refused = client.put("/api/turns/t1/passages/2")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "eval_passage_changed")
    press(client, "/ui/turns/t1/mark", verdict="helpful")
    assert client.delete(f"/api/documents/{document}").status_code in (200, 204)
    assert client.put("/api/turns/t1/passages/1").status_code == 404


@pytest.mark.usefixtures("document")
def test_the_api_says_the_same(client: TestClient) -> None:
    """Put, see, take back; what is no turn, source or verdict is refused."""
    said = client.put("/api/turns/t1/mark", json={"verdict": "helpful", "reason": "Good"}).json()
    assert (said["mark"]["reason"], said["right"], said["saved"]["by_mark"]) == ("Good", [1], True)
    assert client.delete("/api/turns/t1/mark").json() == {"mark": None, "saved": None, "right": []}
    assert client.put("/api/turns/t1/passages/2").json()["right"] == [2]
    assert client.delete("/api/turns/t1/passages/2").json()["saved"] is None
    assert client.put("/api/turns/t1/unanswerable").json()["saved"]["passages"] == []
    assert client.delete("/api/turns/t1/unanswerable").json()["saved"] is None
    for method, path, status in (
        ("put", "/api/turns/t9/passages/1", 404),
        ("put", "/api/turns/t1/passages/9", 404),
        ("delete", "/api/turns/t9/mark", 404),
    ):
        assert client.request(method, path).status_code == status
    assert client.put("/api/turns/t1/mark", json={"verdict": "great"}).status_code == 422
    assert client.put("/api/turns/t1/mark", json={"verdict": "helpful", "stars": 5}).status_code == 422
