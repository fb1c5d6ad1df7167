"""Pausing what is being taken in: on the page, in the lanes, over a restart, and what the command line says of it."""

import logging
import threading
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.clock import SystemClock
from app.ingest.commands import Ingest, Standing
from app.ingest.pausing import Pausing
from app.ingest.yielding import Yielding
from app.main import create_app
from app.search.embeddings import FloatMatrix
from app.settings import Settings
from app.store import pausing
from app.store.engine import Database
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import RAID, GatedExtractor, found, sections
from tests.integration.library_rows import add_document
from tests.waiting import until


def switch(library: IngestLibrary) -> Pausing:
    """The switch as the page has it."""
    return Pausing(library.database, library.clock, library.worker.wake)


def test_paused_files_wait_and_go_on_when_continued(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """What is added meanwhile is kept and listed; one line for each turn of the switch, none for a second press."""
    with caplog.at_level(logging.INFO, "app.ingest"), IngestLibrary(settings) as library:
        switch(library).turn(True, USER)
        switch(library).turn(True, USER)
        library.start()
        document_id = library.add("raid.md", RAID)
        assert library.worker.batch(USER).total == 1
        assert library.row(document_id).status == "queued"
        switch(library).turn(False, USER)
        library.wait_for(document_id, "ready")
        assert found(library, "raid") == {document_id}
    lines = [record.getMessage() for record in caplog.records if "ingest_pause" in record.getMessage()]
    assert lines == ["ingest_pause on=1 by=1", "ingest_pause on=0 by=1"]


def test_a_pause_outlives_the_process(settings: Settings) -> None:
    """The next life of the library waits, too."""
    with IngestLibrary(settings).start() as library:
        switch(library).turn(True, USER)
    with IngestLibrary(settings).start() as library:
        document_id = library.add("raid.md", RAID)
        assert switch(library).is_on()
        assert library.row(document_id).status == "queued"
        switch(library).turn(False, USER)
        library.wait_for(document_id, "ready")


def test_the_document_in_hand_is_finished_and_the_rest_goes_back(settings: Settings) -> None:
    """A pause while a file is read: that one becomes findable, no other is begun, and none loses its turn."""
    extractor = GatedExtractor()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        ids = library.add_all({f"{number}.md": sections(f"alpha{number}") for number in range(6)})
        until(extractor.asked.is_set, "the first is being read")
        switch(library).turn(True, USER)
        extractor.go.set()
        until(lambda: len(found_of(library, ids)) == 1, "the one in hand is findable")
        assert [library.row(one).status for one in ids].count("queued") == 5
        switch(library).turn(False, USER)
        library.settle()
        assert {library.row(one).status for one in ids} == {"ready"}
        assert_sound(library)


class GatedEmbedder(WordEmbedder):
    """Waits in its first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate, self.batches = threading.Event(), threading.Event(), 0

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        """A row per text, once the gate is open."""
        self.entered.set()
        assert self.gate.wait(30)
        self.batches += 1
        return np.asarray(super().embed_passages(texts))


def test_embedding_rests_between_two_batches(settings: Settings) -> None:
    """The batch in hand is kept, the next one is not begun; words find the document meanwhile."""
    embedder = GatedEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        document_id = library.add("long.md", sections(*(f"alpha{number}" for number in range(20))))
        until(embedder.entered.is_set, "the first batch is being embedded")
        switch(library).turn(True, USER)
        embedder.gate.set()
        until(lambda: library.row(document_id).embedded > 0, "the batch is kept")
        row = library.row(document_id)
        assert (row.status, embedder.batches) == ("embedding", 1)
        assert found(library, "alpha19") == {document_id}
        switch(library).turn(False, USER)
        library.wait_for(document_id, "ready")
        assert embedder.batches > 1


def test_who_is_paused_does_not_go_on() -> None:
    """Giving way says so, as it says that the process wants to end."""
    clock, never = SystemClock(), threading.Event()
    assert not Yielding(clock, lambda: False, never, paused=lambda: True).give_way()
    assert Yielding(clock, lambda: False, never, paused=lambda: False).give_way()


def test_the_box_pauses_and_continues(settings: Settings) -> None:
    """The button changes its word, the title and the note say it; without script the library comes back."""
    # Without its lifespan: no worker runs, so the document stays where it is.
    client = TestClient(create_app(settings), base_url="http://127.0.0.1:8642")
    database: Database = client.app.state.docent.database  # type: ignore[attr-defined]
    add_document(database, "plan.md")
    box = client.get("/ui/library/progress").text
    assert 'value="pause"' in box
    paused = client.post("/ui/library/pause", data={"action": "pause"}, headers={"hx-request": "true"}).text
    assert "Paused with 1 file" in paused
    assert "Nothing is read or embedded until you continue." in paused
    assert 'value="continue"' in paused
    assert database.read(pausing.is_paused)
    assert "Paused with 1 file" in client.get("/library").text
    plain = client.post("/ui/library/pause", data={"action": "continue"}, follow_redirects=False)
    assert (plain.status_code, plain.headers["location"]) == (303, "/library")
    assert not database.read(pausing.is_paused)
    assert client.post("/ui/library/pause", data={"action": "stop"}).status_code == 422
    database.close()


def test_the_command_line_adds_and_says_that_it_is_paused(settings: Settings, tmp_path: Path) -> None:
    """It does not wait for what nobody does."""
    (tmp_path / "raid.md").write_text(RAID)
    with IngestLibrary(settings) as library:
        switch(library).turn(True, USER)
        standings: list[Standing] = []
        command = Ingest(library.database, settings, WordEmbedder(), SystemClock())
        ended = command.run([str(tmp_path / "raid.md")], standings.append)
    assert ended.paused
    assert [(row.path, row.status) for row in ended.rows] == [("raid.md", "queued")]


def found_of(library: IngestLibrary, ids: list[int]) -> list[int]:
    """Those that can be found by now."""
    return [one for one in ids if library.row(one).status in ("embedding", "ready")]
