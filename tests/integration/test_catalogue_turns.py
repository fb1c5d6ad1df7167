"""Turns that no model answers: a count from the catalogue, and an outline where none is connected."""

import logging
from uuid import uuid4

import pytest

from app.main import create_app
from app.settings import Settings
from app.store.models import Message, QueryLog
from tests.asgi import Client, in_app
from tests.fake_embedder import WordEmbedder
from tests.integration.turn_kit import fields, rows, turn_lines
from tests.integration.whole_kit import SUMMARY, Asked, id_of, make_library, with_model
from tests.sse import Frame


@pytest.fixture(scope="module")
def read_library(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The library, made once."""
    return make_library(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def library(read_library: Settings) -> Settings:
    """With a model server."""
    return with_model(read_library)


def test_documents_that_mention_something_are_counted(library: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """With the exact count and its denominator, each linked to where it does; no model is asked, one line is logged."""
    caplog.set_level(logging.INFO)
    asked = Asked(library, questions=["which documents mention retention?"])
    assert asked.text.splitlines()[0] == "2 of 6 documents mention “retention”:"
    assert "- **Backup plan**, 1 passage: Retention is thirty days. [" in asked.text
    assert asked.model.requests == []
    assert asked.start["mode"] == "grounded"
    assert asked.done["citations"] == {"valid": 2, "dropped": 0}
    quotes = {row["path"]: row["quote"] for row in asked.done["sources"]}
    assert quotes == {"plan.md": "Retention is thirty days.", "notes.md": "Retention of mails is a year."}
    assert asked.named("notice") == []
    assert "no passage" not in asked.page.lower()
    assert 'href="/search?q=retention"' in asked.page
    assert "2 of 6 documents" in asked.page
    line = fields(turn_lines(caplog)[-1])
    assert (line["mode"], line["outcome"], line["rounds"], line["cited"]) == ("grounded", "ok", "0", "2")
    assert rows(library, QueryLog)[-1].mode == "grounded"
    assert rows(library, Message)[-1].sources == asked.done["sources"]
    assert "Counted in the catalogue: 2 of 6 documents." in asked.receipt


def test_nothing_that_mentions_it_and_the_count_of_all(library: Settings) -> None:
    """Plain sentences, without a notice that nothing is cited; filters hold."""
    none = Asked(library, questions=["which documents mention zebras?"])
    assert none.text == "None of the 6 documents here mentions “zebras”."
    assert none.named("notice") == []
    assert "cites no passage" not in none.page
    narrow = Asked(library, questions=["which documents mention retention?"], documents=[id_of(library, "plan.md")])
    assert narrow.text.startswith("1 of 1 documents mentions “retention”:")
    every = Asked(library, questions=["how many documents do I have?"])
    assert every.text == "6 documents can be searched here."
    assert 'href="/library"' in every.page


@pytest.mark.parametrize("signs", ["👍", "*", "“—”"])
def test_signs_are_not_said_to_be_mentioned_nowhere(library: Settings, signs: str) -> None:
    """No index knows where signs stand: the question is searched like any other, and no count is made up."""
    asked = Asked(library, questions=[f"which documents mention {signs}?"])
    assert "mentions" not in asked.text
    assert "Counted in the catalogue" not in asked.receipt


def test_without_a_model_a_summary_is_an_outline(read_library: Settings) -> None:
    """The real answerer: headings with a sentence each, cited; the catalogue needs no model either."""
    frames: list[Frame] = []
    app = create_app(read_library, embedder=WordEmbedder())

    async def test(client: Client) -> None:
        for question in (SUMMARY, "which documents mention retention?"):
            frames.append((await (await client.ask(question, client_key=uuid4().hex)).all_frames())[-1])

    in_app(app, test)
    outline, counted = (frame.data for frame in frames)
    assert outline["html"].startswith("<p>No model is connected, so this is an outline of Storage handbook")
    assert outline["citations"]["valid"] == 12
    assert 'class="unbacked"' not in outline["html"]
    assert "<strong>Chapter 12</strong>: " in outline["html"]
    assert counted["citations"] == {"valid": 2, "dropped": 0}
