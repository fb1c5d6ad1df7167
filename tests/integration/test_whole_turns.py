"""Turns about a whole document, over a real library: frames, rows, receipt and the line."""

import logging
from uuid import uuid4

import pytest

from app.main import create_app
from app.rag.errors import LLMError
from app.rag.prompts import parse_passages
from app.rag.whole_prompts import parse_notes, parse_section
from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import migrate
from app.store.models import Turn
from tests.asgi import Client, in_app
from tests.fake_embedder import WordEmbedder
from tests.integration.library_rows import add_document
from tests.integration.turn_kit import fields, rows, turn_lines
from tests.integration.whole_kit import HANDBOOK, SUMMARY, Asked, id_of, make_library, with_model
from tests.scripted import Gate, ScriptedModel, Step
from tests.sse import Frame


@pytest.fixture(scope="module")
def read_library(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The library, made once."""
    return make_library(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def library(read_library: Settings) -> Settings:
    """With a model server."""
    return with_model(read_library)


@pytest.fixture
def small(read_library: Settings) -> Settings:
    """The same with a window that holds no long document."""
    return with_model(read_library, llm_context_tokens=2_400)


def test_a_document_that_fits_is_given_whole(library: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """One request with all of its text in order, no tools, sources that open it, a line and a receipt that say so."""
    caplog.set_level(logging.INFO)
    asked = Asked(library, ["Chapters about pumps [2]."], questions=[SUMMARY])
    (request,) = asked.model.requests
    passages = parse_passages(request)
    assert "".join("".join(one.text.split()) for one in passages) == "".join(HANDBOOK.split())
    assert asked.model.tools == [None]
    assert (asked.start["mode"], asked.start["nearest"]) == ("grounded", [])
    assert len(asked.start["sources"]) == len(passages)
    (cited,) = [row for row in asked.done["sources"] if row["cited"]]
    assert (cited["n"], cited["path"], cited["heading"]) == (2, "storage-handbook.md", "Storage handbook › Chapter 2")
    assert [doc["path"] for doc in asked.done["read_docs"]] == ["storage-handbook.md"]
    line = fields(turn_lines(caplog)[-1])
    assert (line["mode"], line["rounds"], line["read_docs"], line["tool_calls"]) == ("grounded", "1", "1", "0")
    whole = asked.turn(library).numbers["whole"]
    assert (whole["title"], whole["passages"]) == ("Storage handbook", len(passages))
    assert "read whole" in asked.page
    assert "The whole document was given to the model at once: Storage handbook." in asked.receipt
    assert "fits best" not in asked.receipt


def test_a_long_document_is_read_section_by_section(small: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """A frame as each section begins and ends, stored like tool calls; the answer's markers are real passages."""
    caplog.set_level(logging.INFO)
    model_says: list[list[Step]] = [["A pump [1]."]] * 40
    probe = Asked(small, *model_says, questions=[SUMMARY])
    total = probe.turn(small).numbers["whole"]["sections"]
    assert total > 2
    last = [row["n"] for row in probe.start["sources"]][-1]
    scripts: list[list[Step]] = [[f"Noted [{row['n']}]."] for row in probe.start["sources"]]
    asked = Asked(small, *scripts, [f"All of it is about pumps in the cellar [1][{last}]. Nothing else [99]."],
                  questions=[SUMMARY])  # fmt: skip
    tools = asked.named("tool")
    assert [step["status"] for step in tools] == ["start", "ok"] * total
    assert [step["summary"] for step in tools[::2]] == [f"section {n} of {total}" for n in range(1, total + 1)]
    assert tools[0]["args"]["path"] == "/library/storage-handbook.md"
    assert tools[1]["summary"].startswith(f"section 1 of {total} · ")
    assert [parse_section(request) for request in asked.model.requests[:-1]] == [
        (n, total) for n in range(1, total + 1)
    ]
    assert len(parse_notes(asked.model.requests[-1])) == total
    assert asked.done["citations"] == {"valid": 2, "dropped": 1}
    cited = [row for row in asked.done["sources"] if row["cited"]]
    assert [row["n"] for row in cited] == [1, last]
    for row in cited:
        assert "pump in cellar" in row["quote"]
        assert HANDBOOK[row["support"][0] : row["support"][1]].startswith("The pump in cellar")
    turn = asked.turn(small)
    assert [step["name"] for step in turn.numbers["tools"]] == ["read"] * total
    assert turn.numbers["whole"]["read"] == total
    line = fields(turn_lines(caplog)[-1])
    assert (line["rounds"], line["read_docs"], line["cited"]) == (str(total + 1), "1", "2")
    assert f"{total} of {total} sections read" in asked.page
    assert f"section {total} of {total}" in asked.page
    assert f"Read section by section: {total} of {total} sections of Storage handbook." in asked.receipt


def test_sections_that_could_not_be_read_are_said_in_a_notice_and_after_a_reload(small: Settings) -> None:
    """The answer stands; the page says how many are missing."""
    broken = LLMError("llm_incomplete", reason="cut")
    asked = Asked(small, ["A pump [1]."], [broken], [broken], ["Noted."], questions=[SUMMARY])
    (notice,) = [data for data in asked.named("notice") if data["code"] == "sections_unread"]
    assert notice["message"] in asked.page
    assert asked.turn(small).numbers["whole"]["failed"] == [2]
    assert "could not be read" in next(step["summary"] for step in asked.named("tool") if step["status"] == "error")
    assert asked.done


def test_a_stop_ends_the_reading_within_a_section_and_between_two(small: Settings) -> None:
    """At once; what was read stays in the receipt, and no further request is made."""
    gate = Gate()
    model = ScriptedModel(["A pump [1]."], [gate, "never"])
    app = create_app(small, chat_for=model, embedder=WordEmbedder())
    ends: list[Frame] = []

    async def test(client: Client) -> None:
        reply = await client.ask(SUMMARY, client_key=uuid4().hex)
        start = (await reply.until("start"))[-1].data
        await gate.reached()
        await client.post(f"/api/turns/{start['turn_id']}/stop")
        ends.extend(await reply.all_frames())

    in_app(app, test)
    assert ends[-1].event == "stopped"
    assert len(model.requests) == 2
    assert model.closed == 2
    turn = rows(small, Turn)[-1]
    turn = next(one for one in rows(small, Turn) if one.state == "stopped")
    assert (turn.outcome, turn.numbers["whole"]["read"]) == ("stopped", 1)


def test_a_question_about_one_document_reads_it_whole_where_it_fits_else_searches_in_it(small: Settings) -> None:
    """Named by a filter: no other document is ever given."""
    short = Asked(small, questions=["when do the backups run?"], documents=[id_of(small, "plan.md")])
    assert set(short.given) == {"plan.md"}
    assert "whole" in short.turn(small).numbers
    long = Asked(small, questions=["who looks after the pump in cellar 7?"],
                 documents=[id_of(small, "storage-handbook.md")])  # fmt: skip
    assert set(long.given) == {"storage-handbook.md"}
    assert "whole" not in long.turn(small).numbers
    assert long.turn(small).numbers["searched"]
    part = Asked(small, questions=["summarise the part on cellar 7"], documents=[id_of(small, "storage-handbook.md")])
    assert "whole" not in part.turn(small).numbers


def test_what_was_talked_about_can_be_summarised(library: Settings) -> None:
    """The one document that the last answer cites; after an answer from several the question is an ordinary one."""
    asked = Asked(
        library, ["At two [1]."], ["So [1]."], questions=["when do the backups run every night?", "summarise it"]
    )
    assert asked.turn(library).numbers["whole"]["title"] == "Backup plan"
    first = Asked(library, questions=["summarise it"])
    assert "whole" not in first.turn(library).numbers


@pytest.mark.parametrize(
    "question",
    [
        "summarise the same",
        "summarise same.md",
        "summarise the unknown handbook",
        "when do the backups run every night?",
    ],
)
def test_what_names_no_document_or_several_is_an_ordinary_question(library: Settings, question: str) -> None:
    """It is searched for like any other."""
    turn = Asked(library, questions=[question]).turn(library)
    assert "whole" not in turn.numbers
    assert turn.numbers["searched"]


def test_a_name_of_several_documents_is_said_with_the_way_to_choose(library: Settings) -> None:
    """Beside the answer, which is an ordinary one, and after a reload; not where the question says which."""
    asked = Asked(library, questions=["summarise the file same.md"])
    (notice,) = asked.named("notice")
    assert notice["code"] == "name_of_several"
    assert notice["message"].startswith("“same.md” is the name of 2 documents, so none of them was read as a whole.")
    assert "type @ and its path" in notice["message"]
    assert notice["message"] in asked.page
    for question in (
        "summarise a/same.md",
        "summarise @a/same.md",
        "summarise the unknown handbook",
        "what is the same?",
    ):
        assert not Asked(library, questions=[question]).named("notice"), question


@pytest.mark.parametrize(
    "name",
    [
        "plan.md",
        "the backup plan",
        "“Backup plan”",
        "the file plan.md",
        "/library/plan.md",
        "a/same.md",
        "the network runbook",
    ],
)
def test_a_document_goes_by_its_title_its_file_and_its_path(library: Settings, name: str) -> None:
    """With what is said around a name."""
    assert Asked(library, questions=[f"summarise {name}"]).turn(library).numbers.get("whole")


def test_a_document_that_is_not_read_yet_is_named(settings: Settings) -> None:
    """The sentence says to ask again; no model is asked."""
    database = Database(settings.database)
    migrate(database)
    waiting = add_document(database, "late.md")
    database.close()
    asked = Asked(with_model(settings), questions=["summarise it"], documents=[waiting])
    assert asked.text == "“late.md” is still being read. Ask again when it is ready."
    assert asked.model.requests == []


def test_a_document_outside_of_the_turns_scope_is_not_read(library: Settings) -> None:
    """A filter holds for names, too."""
    asked = Asked(
        library, questions=["summarise plan.md"], documents=[id_of(library, n) for n in ("notes.md", "a/same.md")]
    )
    assert "plan.md" not in asked.given
    assert "whole" not in asked.turn(library).numbers


def test_a_translation_of_more_than_fits_is_refused_in_words(small: Settings) -> None:
    """Notes are no translation; no model is asked."""
    asked = Asked(small, questions=["translate the storage handbook to German"])
    assert "can't be translated at once" in asked.text
    assert asked.model.requests == []
    assert Asked(small, questions=["translate plan.md to German"]).given == ["plan.md"]


@pytest.mark.parametrize(
    ("path", "words"),
    [("blank.md", "could not be read"), ("broken.pdf", "could not be read")],
)
def test_a_document_that_failed_is_named_with_its_reason(library: Settings, path: str, words: str) -> None:
    """A plain sentence instead of an answer from elsewhere."""
    asked = Asked(library, questions=["what does it say about backups?"], documents=[id_of(library, path)])
    assert words in asked.text
    assert path in asked.text
    assert asked.model.requests == []
    assert asked.start["mode"] == "deflected"
    assert [data["code"] for data in asked.named("notice")] == ["chip_failed"]
    assert "nothing to read" in asked.page
    assert "has no text to read" in asked.receipt


def test_a_turn_without_documents_stays_without(library: Settings) -> None:
    """It was asked for."""
    asked = Asked(library, ["No."], questions=[SUMMARY], without_documents=True)
    assert asked.start["mode"] == "deflected"
    assert "whole" not in asked.turn(library).numbers
