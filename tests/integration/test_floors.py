"""What unrelated texts have in common with an embedder: measured once, in the background, and counted as nothing."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.edge.deps import Services
from app.main import create_app
from app.search.builtin import BuiltinEmbedder
from app.search.embeddings import FloatMatrix, FloatVector
from app.search.errors import EmbedError
from app.search.floor import RULE
from app.settings import Settings
from app.store import generations
from app.store.models.vectors import Generation
from tests.embed_server import EmbedServer, embed_server, squeezed
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import IngestLibrary
from tests.ingest_parts import sections
from tests.integration.generation_kit import NEW, Library
from tests.library_api import settle, upload
from tests.sse import Decoder
from tests.waiting import until

DOCUMENTS = {
    "hives.md": "A colony raises new queens in spring and half of the bees leave the hive with the old one. Beekeepers "
    "hang up an empty box nearby to catch them.",
    "trains.md": "Passengers who miss their connection because of a delay may board the next service without buying "
    "another fare. The conductor stamps the document on request.",
    "bread.md": "Flour, water and salt rise slowly with a ripe starter. Leave the dough in the refrigerator overnight "
    "and put it into a hot oven the next morning.",
}
ANSWERED = (
    "Why do insects swarm away from their home in April?",
    "Can somebody travel later when the first railway ride was late?",
    "How is sourdough baked?",
)
UNANSWERED = (
    "Who painted the ceiling of the Sistine Chapel?",
    "Which vitamins are found in spinach?",
    "Wie hoch ist der Mount Everest?",
)


@pytest.fixture(scope="module")
def real() -> Iterator[BuiltinEmbedder]:
    embedder = BuiltinEmbedder()
    yield embedder
    embedder.close()


@contextmanager
def running(settings: Settings, server: EmbedServer) -> Iterator[TestClient]:
    behind = Settings(
        _env_file=None, data_dir=settings.data_dir, embed_base_url=server.url, embed_model="words-embed", ocr="off"
    )
    with TestClient(create_app(behind), base_url="http://127.0.0.1:8642") as client:
        yield client


def floor_of(client: TestClient) -> float | None:
    services: Services = client.app.state.docent  # type: ignore[attr-defined]
    row = services.database.read(lambda session: generations.get(session, "active"))
    return row.floor if row is not None else None


def turn(client: TestClient, question: str) -> tuple[str, float]:
    """How it was answered, and the best score."""
    reply = client.post("/api/chat", json={"message": question, "client_key": question})
    start: dict[str, Any] = next(event.data for event in Decoder().feed(reply.content) if event.event == "start")
    return start["mode"], max(source["score"] for source in [*start["sources"], *start["nearest"]])


def test_behind_an_endpoint_that_finds_all_texts_alike_questions_are_judged_as_ever(
    settings: Settings, real: BuiltinEmbedder
) -> None:
    """All cosines between 0.7 and 1: what the documents answer is answered from them, what they don't is not; the
    scores are those of the same embedder without that, within what measuring costs."""
    with embed_server(embed=squeezed(real, 0.7)) as server, running(settings, server) as client:
        upload(client, *DOCUMENTS.items())
        settle(client)
        until(lambda: floor_of(client) is not None, "measured", timeout_s=120)
        assert floor_of(client) == pytest.approx(0.7, abs=0.02)
        told = {question: turn(client, question) for question in (*ANSWERED, *UNANSWERED)}
    passages = real.embed_passages(list(DOCUMENTS.values()))
    for question, (mode, score) in told.items():
        assert mode == ("grounded" if question in ANSWERED else "deflected"), (question, score)
        assert 0 <= score <= 1
        if question in ANSWERED:
            assert score == pytest.approx(float((passages @ real.embed_query(question)).max()), abs=0.12)


def test_it_is_measured_once_and_again_by_another_rule(settings: Settings) -> None:
    """Not at a restart; but where an older rule found what is stored, and only once something is there to search."""
    with embed_server() as server:
        with running(settings, server) as client:
            assert server.texts == 0
            upload(client, ("raid.md", sections("raid")))
            settle(client)
            until(lambda: floor_of(client) is not None, "measured")
            before, texts = floor_of(client), server.texts
            services: Services = client.app.state.docent  # type: ignore[attr-defined]
        with running(settings, server) as client:
            upload(client, ("garden.md", sections("garden")))
            settle(client)
            assert (floor_of(client), server.texts) == (before, texts + 1)
            services = client.app.state.docent  # type: ignore[attr-defined]
            services.database.write(lambda session: session.execute(update(Generation).values(floor_rule="0")))
        with running(settings, server) as client:
            until(lambda: server.texts > texts + 50, "measured again")
            until(lambda: not rules(client) - {RULE}, "noted")
            assert floor_of(client) == before


def rules(client: TestClient) -> set[str | None]:
    services: Services = client.app.state.docent  # type: ignore[attr-defined]
    return services.database.read(lambda session: {row.floor_rule for row in session.query(Generation)})


class NoQuestions(WordEmbedder):
    """Embeds passages but no questions until it is let."""

    floor = None

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.fails = True

    def embed_query(self, text: str) -> FloatVector:
        self.asked += 1
        if self.fails:
            raise EmbedError
        return super().embed_query(text)


def test_while_it_can_not_be_measured_everything_else_goes_on(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Documents get ready, the failure is noted once a minute, and nothing is stored."""
    caplog.set_level(logging.INFO)
    embedder = NoQuestions()
    with IngestLibrary(settings, embedder=embedder) as library:
        library.start()
        library.add_all({"raid.md": sections("raid"), "garden.md": sections("garden")})
        library.settle()
        until(lambda: embedder.asked == 1, "tried")
        library.add("backup.md", sections("backup"))
        library.settle()
        assert embedder.asked == 1
        row = library.database.read(lambda session: generations.get(session, "active"))
        assert row is not None
        assert row.floor is None
    assert caplog.text.count("floor_waits") == 1
    embedder.fails = False
    with IngestLibrary(settings, embedder=embedder) as library:
        library.start()
        until(lambda: "floor_measured" in caplog.text, "measured in the next life")


class AllAlike(WordEmbedder):
    """One vector for everything."""

    floor = None

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        self.queries += len(texts)
        return np.tile(np.eye(1, self.dim, dtype=np.float32), (len(texts), 1))


def test_an_embedder_that_tells_nothing_apart_is_not_measured_for_ever(settings: Settings) -> None:
    """It has no floor, and that is noted."""
    embedder = AllAlike()
    with IngestLibrary(settings, embedder=embedder) as library:
        library.start()
        library.add("raid.md", sections("raid"))
        library.settle()
        until(lambda: not library.database.read(lambda session: generations.unmeasured(session, RULE)), "noted")
        row = library.database.read(lambda session: generations.get(session, "active"))
        assert row is not None
        assert row.floor is None


def test_what_is_built_has_its_floor_before_the_switch(settings: Settings) -> None:
    """The comparison and the first question after the switch are counted from it."""
    new = WordEmbedder("new", 32, {"flowers": "garden"})
    new.floor = None
    with Library(settings, new).filled() as library:
        library.decide.choose(1, NEW, 32)
        library.until_built()
        measured = library.row("new").floor
        assert measured is not None
        assert library.row("old").floor is None, "it names its own"
        library.decide.switch(1, library.row("new").id)
        assert library.finds_by_meaning()
        library.decide.choose(1, type(NEW)("new", "http://elsewhere.invalid/v1"), 32)
        until(lambda: not library.life.database.read(lambda s: generations.unmeasured(s, RULE)), "measured there, too")
        assert library.row("new").floor == measured
