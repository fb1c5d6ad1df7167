"""What a question names, over HTTP: what is searched, what the model is asked, what frames, pages and receipts say."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from app.main import create_app
from app.settings import Settings
from app.store import collections
from app.store.engine import Database
from app.store.models.chats import Turn
from app.store.scope import EVERYWHERE, SearchFilters
from tests.asgi import Client, in_app
from tests.integration.library_rows import add_document, add_user
from tests.integration.openai_kit import standing
from tests.integration.turn_kit import ANSWER, app_of, rows
from tests.scripted import ScriptedModel, ScriptedSearch, hit
from tests.sse import Frame


@pytest.fixture
def library(database: Database) -> dict[str, int]:
    """Two documents in the library, and their collection."""
    ids = {path: add_document(database, path, "Backups are made at two.") for path in ("a.md", "b c.md")}
    ids["library"] = database.read(lambda session: collections.list_collections(session, 1)[0].id)
    return ids


def talk(
    settings: Settings, *questions: dict[str, Any] | str
) -> tuple[list[list[Frame]], ScriptedSearch, ScriptedModel]:
    """Questions asked one after the other in one chat; each one's frames."""
    search, model = ScriptedSearch(hit(1), hit(2)), ScriptedModel([ANSWER])
    answers: list[list[Frame]] = []

    async def test(client: Client) -> None:
        chat: dict[str, Any] = {}
        for question in questions:
            more = dict(question) if isinstance(question, dict) else {"message": question}
            reply = await client.ask(**more, **chat)
            assert reply.status == 200
            answers.append(await reply.all_frames())
            chat = {"chat_id": answers[-1][0].data["chat_id"]}

    in_app(app_of(settings, model, search), test)
    return answers, search, model


def notices(frames: list[Frame]) -> dict[str, str]:
    return {frame.data["code"]: frame.data["message"] for frame in frames if frame.event == "notice"}


def test_chips_filter_the_search_and_the_model_reads_names(settings: Settings, library: dict[str, int]) -> None:
    """The question is stored as typed; its numbers keep what held."""
    question = 'How often in @a.md and @"b c.md" #library type:md since:2024?'
    (frames,), search, model = talk(settings, question)
    ((query, _, _, filters),) = search.asked
    assert query == "How often in and?"
    ids = (library["a.md"], library["b c.md"])
    assert filters == SearchFilters((library["library"],), ids, types=("markdown",), since=filters.since)
    assert (filters.since and filters.since.isoformat()) == "2024-01-01T00:00:00+00:00"
    assert model.requests[0][-1]["content"] == "How often in a.md and b c.md Library?"
    assert [(chip["kind"], chip["label"]) for chip in frames[0].data["chips"]] == [
        ("document", "a.md"),
        ("document", "b c.md"),
        ("collection", "Library"),
        ("type", "markdown"),
        ("since", "from 2024-01-01"),
    ]
    (turn,) = rows(settings, Turn)
    assert turn.numbers["chips"] == frames[0].data["chips"]
    assert turn.numbers["filters"]["documents"] == list(ids)
    assert notices(frames) == {}


def test_a_question_without_marks_is_asked_as_it_was(settings: Settings, library: dict[str, int]) -> None:
    """Not a character of it changes, and nothing narrows it."""
    question = "  How often?  Mail a@b.c,\n\tsee #1 and `@a.md`"
    (frames,), search, model = talk(settings, question)
    assert search.asked[0][0] == model.requests[0][-1]["content"] == question.strip()
    assert search.asked[0][3] == EVERYWHERE
    assert frames[0].data["chips"] == []


def test_chips_stay_within_what_the_request_names(settings: Settings, library: dict[str, int]) -> None:
    """Collections stay with the chat and documents hold for the turn, as before; chips narrow both."""
    both = [library["a.md"], library["b c.md"]]
    first = {"message": "How often? type:md", "collections": [library["library"]], "documents": both}
    (_, second), search, _ = talk(settings, first, "Which sourdough recipe needs the longest time? #library")
    assert search.asked[0][3] == SearchFilters((library["library"],), tuple(both), types=("markdown",))
    assert search.asked[1][3] == SearchFilters((library["library"],))
    assert notices(second) == {}


def test_a_follow_up_is_asked_of_the_same_and_says_so(settings: Settings, library: dict[str, int]) -> None:
    """Its own text has no chip; the earlier one's names are words for the model and nothing for the search."""
    (_, frames), search, model = talk(settings, "How often are backups made in #library?", "And how long does it take?")
    assert search.asked[1][3] == SearchFilters((library["library"],))
    assert search.asked[1][0] == "How often are backups made in? And how long does it take?"
    assert [(chip["label"], chip["carried"]) for chip in frames[0].data["chips"]] == [("Library", True)]
    assert model.requests[1][1]["content"] == "How often are backups made in Library?"


def test_what_leads_nowhere_is_said_live_and_later(settings: Settings, library: dict[str, int]) -> None:
    """The same sentence in the stream and on the page."""
    (frames,), search, _ = talk(settings, "How often, @nobody?")
    sentence = "No document is called “nobody”, so that was read as text."
    assert notices(frames) == {"chip_no_document": sentence}
    assert search.asked[0][3] == EVERYWHERE
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        page = client.get(f"/ui/turns/{frames[0].data['turn_id']}").text
    assert sentence in page


def test_without_documents_names_are_words(settings: Settings, library: dict[str, int]) -> None:
    """Nothing is searched, so nothing is filtered, and nothing is said of it."""
    question = {"message": "How often in @a.md and @nobody?", "without_documents": True}
    (frames,), search, model = talk(settings, question)
    assert (search.asked, frames[0].data["chips"], notices(frames)) == ([], [], {})
    assert model.requests[0][-1]["content"] == "How often in a.md and @nobody?"


def test_page_and_receipt_show_what_was_asked_of(settings: Settings, library: dict[str, int]) -> None:
    """Chips in the given line, one line on the receipt; names are text whatever they hold."""
    (frames,), _, _ = talk(settings, "How often are backups made in #library before:2030?")
    turn_id = frames[0].data["turn_id"]
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        turn = HTMLParser(client.get(f"/ui/turns/{turn_id}").text)
        receipt = HTMLParser(client.get(f"/turns/{turn_id}").text)
    assert [chip.text() for chip in turn.css(".given .chip")] == ["Library", "before 2030-01-01"]
    words = receipt.css_first(".receipt-words")
    assert words is not None
    assert "Library · before 2030-01-01" in words.text()


def test_a_v1_request_names_documents_too(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same reading; the model's collection is the scope, so that a name outside of it leads nowhere."""
    search = ScriptedSearch(hit(1), hit(2))
    folder = tmp_path_factory.mktemp("docent")
    with standing(folder, chat_for=ScriptedModel([ANSWER]), searcher=search) as docent:
        ids = [add_document(docent.services.database, path, "Backups.") for path in ("a.md", "b.md")]
        place = docent.services.database.read(lambda session: collections.list_collections(session, 1)[0].id)
        docent.client.chat.completions.create(
            model="docent/library", messages=[{"role": "user", "content": "How often in @a.md and @b.md?"}]
        )
    assert search.asked[0][0] == "How often in and?"
    assert search.asked[0][3] == SearchFilters((place,), tuple(ids))


@pytest.fixture
def offers(settings: Settings, database: Database) -> Any:
    """`offers(typed)` gives the rows' texts and what is shown."""
    add_document(database, "notes/plan of <b>.md", "Words.", title="The <i>plan</i>")
    add_document(database, "notes/plan.md", "Words.")
    add_document(database, "secret plan.md", "Words.", user_id=add_user(database))

    def get(typed: str | None) -> list[tuple[str | None, str]]:
        with TestClient(create_app(settings), base_url="http://localhost") as client:
            reply = client.get("/ui/chat/suggest", params={} if typed is None else {"typed": typed})
        assert reply.status_code == 200
        assert "<b>" not in reply.text
        found = HTMLParser(reply.text).css("[role=option]")
        return [(row.attributes["data-text"], " ".join(row.text().split())) for row in found]

    return get


def test_suggestions_are_what_can_be_typed(offers: Any) -> None:
    """In quotes where the name needs them; nobody else's; markup is text."""
    assert offers("@pla") == [
        ("@notes/plan.md", "plan.md notes/ · Library"),
        ('@"notes/plan of <b>.md"', "plan of <b>.md The <i>plan</i> · notes/ · Library"),
    ]
    assert [text for text, _ in offers('@"notes/plan o')] == ['@"notes/plan of <b>.md"']
    assert offers("#lib") == [("#library", "library Library")]


@pytest.mark.parametrize(
    "typed", [None, "", "x", "@nothing", "@notes/plan.md", '@"notes/plan of <b>.md"', "#library", "@\x00", '@"']
)
def test_nothing_is_suggested_for_a_whole_name_or_none(offers: Any, typed: str | None) -> None:
    """Then Enter asks."""
    assert offers(typed) == [] or typed == '@"'
