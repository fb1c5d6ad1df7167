"""The index of parts of words in a library that is older than it."""

import logging

import pytest
from sqlalchemy import text

from app.cli import main
from app.clock import SystemClock
from app.ingest.extract.extractor import Extractor
from app.ingest.part_filling import PartFilling
from app.ingest.stored_files import StoredFiles
from app.ingest.worker import Tools, Worker
from app.search import fulltext, grams
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store.engine import Database, Session
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import add_document
from tests.waiting import until


@pytest.fixture
def old(database: Database) -> Database:
    """Seven passages, none of which is in the index."""

    def work(session: Session) -> None:
        add_document(session, "a.md", *(f"备份 {number}" for number in range(7)))
        session.execute(text("INSERT INTO chunks_grams(chunks_grams) VALUES ('delete-all')"))

    database.write(work)
    return database


def test_it_is_filled_a_little_at_a_time_and_told(old: Database, caplog: pytest.LogCaptureFixture) -> None:
    """Begin and end are in the log; then there is nothing to do."""
    caplog.set_level(logging.INFO)
    filling = PartFilling(old, batch=3)
    lefts: list[int] = []
    while filling.step() is not None:
        lefts.append(old.read(grams.left))

    assert lefts == [7, 4, 1, 0]
    assert [record.getMessage() for record in caplog.records if "parts_" in record.getMessage()] == [
        "parts_filling left=7",
        "parts_filled",
    ]
    old.write(fulltext.check)


def test_a_library_that_has_it_is_left_alone(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """One look, no line."""
    caplog.set_level(logging.INFO)
    database.write(lambda session: add_document(session, "a.md", "备份"))
    filling = PartFilling(database)
    writes = database.writes

    assert [filling.step(), filling.step()] == [0, None]
    assert database.writes == writes
    assert "parts_" not in caplog.text


def test_two_at_once_do_no_row_twice(old: Database) -> None:
    """A worker beside the server."""
    both = [PartFilling(old, batch=2), PartFilling(old, batch=2)]
    while [one.step() for one in both] != [None, None]:
        pass
    old.write(fulltext.check)
    assert old.read(grams.left) == 0


class TestDoctor:
    """`docent doctor` and `docent rebuild-index`."""

    @pytest.fixture(autouse=True)
    def _environment(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        root = logging.getLogger()
        monkeypatch.setattr(root, "handlers", root.handlers[:])
        monkeypatch.setattr(root, "level", root.level)
        monkeypatch.setenv("DATA_DIR", str(settings.data_dir))

    def test_it_tells_what_is_missing_and_mends_it(self, old: Database, capsys: pytest.CaptureFixture[str]) -> None:
        """In words, and with the exit code of something found."""
        assert main(["doctor"]) == 1
        assert "7 passages that can't be found by parts of words yet" in capsys.readouterr().out
        main(["doctor", "--repair"])
        assert "parts of words" not in capsys.readouterr().out.split("After the repair:")[1]
        assert old.read(grams.left) == 0

    def test_rebuilding_the_index_builds_both(self, old: Database) -> None:
        """Words and parts of words."""
        assert main(["rebuild-index"]) == 0
        assert old.read(grams.left) == 0
        old.write(fulltext.check)

    def test_a_row_without_its_passage_is_told(self, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
        """As left by whoever deletes passages by hand."""
        database.write(lambda session: add_document(session, "a.md", "备份", "恢复"))
        database.write(lambda session: session.execute(text("DELETE FROM chunks WHERE text = '恢复'")))

        assert main(["doctor"]) == 1
        assert "1 row of parts of words without a passage" in capsys.readouterr().out


def test_the_worker_fills_it(old: Database, settings: Settings) -> None:
    """Without being asked, at its next start."""
    worker = Worker(
        old, settings, SystemClock(), Tools(StoredFiles(settings.data_dir), Extractor(), WordEmbedder(), VectorIndex())
    )
    worker.start()
    try:
        until(lambda: old.read(grams.left) == 0, "the index to be full")
    finally:
        worker.stop()
