"""`docent doctor` and `docent rebuild-index`: what belongs to nothing is found, what can be made again is made."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, text, update

from app.catalog import load_catalog
from app.cli import main
from app.clock import SystemClock
from app.ingest import upkeep
from app.settings import Settings
from app.store.models.library import Chunk, Document, Job
from app.store.models.vectors import Vector
from tests.ingest_library import IngestLibrary, assert_sound
from tests.ingest_parts import CountingEmbedder, count, found, sections

CATALOG = load_catalog()


@pytest.fixture
def library(settings: Settings) -> Iterator[IngestLibrary]:
    """Two documents, all at rest, no worker."""
    with IngestLibrary(settings).start() as first:
        first.add_all({"a.md": sections("apples", "pears"), "b.md": sections("plums")})
        first.settle()
    with IngestLibrary(settings) as library:
        yield library


def damage(library: IngestLibrary) -> None:
    """What no crash is known to leave: each kind of orphan once."""

    def work(session) -> None:  # type: ignore[no-untyped-def]
        first, second = (row.id for row in library.rows())
        lost = session.query(Chunk.sha256).filter(Chunk.document_id == first).first()[0]
        session.execute(delete(Vector).where(Vector.sha256 == lost))
        session.execute(
            text(
                "INSERT INTO vectors (generation_id, sha256, embedding) "
                "SELECT generation_id, :sha, embedding FROM vectors LIMIT 1"
            ),
            {"sha": "0" * 64},
        )
        kept = session.query(Chunk.sha256).filter(Chunk.document_id == second).first()[0]
        session.execute(update(Vector).where(Vector.sha256 == kept).values(embedding=b"short"))
        session.execute(text("INSERT INTO chunks_fts(chunks_fts) VALUES ('delete-all')"))
        session.execute(update(Document).where(Document.id == second).values(status="embedding"))

    library.database.write(work)
    stray = library.files.path_of("f" * 64)
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("nobody's")


def test_a_sound_library_has_nothing_to_repair(library: IngestLibrary) -> None:
    """And repairing it changes nothing that a search sees."""
    sound = upkeep.examine(library.database, library.files)
    assert sound.is_sound
    assert upkeep.as_lines(sound, CATALOG) == ["Everything belongs to something: nothing to repair."]
    before = library.rows()
    assert upkeep.mend(library.database, library.files, SystemClock()).is_sound
    assert library.rows() == before
    assert found(library, "apples")


def test_each_kind_of_damage_is_told_and_repaired(library: IngestLibrary, settings: Settings) -> None:
    """After it the worker makes the vectors that were missing, and searches find everything again."""
    damage(library)
    bad = upkeep.examine(library.database, library.files)
    assert (bad.orphans.vectors, bad.orphans.stuck, bad.orphans.unready, bad.stray) == (1, 1, 1, 1)
    assert bad.orphans.unindexed == count(library, Chunk)
    assert not bad.is_fulltext_true
    lines = "\n".join(upkeep.as_lines(bad, CATALOG))
    assert bad.orphans.misfits == 1
    for part in (
        "1 vector that no",
        "1 vector that does not fit",
        "1 document that waits",
        "without all its vectors",
        "1 stored file that",
    ):
        assert part in lines
    left = upkeep.mend(library.database, library.files, SystemClock())
    assert left.is_sound, left
    assert found(library, "plums")
    library.start()
    library.settle()
    assert {row.status for row in library.rows()} == {"ready"}
    assert_sound(library)


def test_a_file_that_is_gone_is_told_and_nothing_else_is_lost(library: IngestLibrary) -> None:
    """Its text can still be searched; nobody can make the file again."""
    library.files.remove(library.rows()[0].sha256)
    left = upkeep.mend(library.database, library.files, SystemClock())
    assert left.missing == (library.rows()[0].sha256,)
    assert "Add it again." in upkeep.as_lines(left, CATALOG)[0]
    assert found(library, "apples")


def test_vectors_are_made_anew_by_whoever_is_alone(library: IngestLibrary, settings: Settings) -> None:
    """Each passage once; beside a process that works on the folder the work is left to it."""
    embedder, told = CountingEmbedder(), list[int]()
    assert upkeep.rebuild_vectors(library.database, settings, embedder, SystemClock(), told.append)
    assert len(embedder.texts) == count(library, Chunk) == count(library, Vector)
    assert told
    assert count(library, Job) == 0
    library.start()
    assert not upkeep.rebuild_vectors(library.database, settings, embedder, SystemClock(), told.append)
    library.worker.wake()
    library.settle()
    assert_sound(library)


def test_the_commands_say_what_they_found_and_did(
    library: IngestLibrary, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code tells whether something is left; without a library both say so."""
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("LOG_LEVEL", "ERROR")
    assert main(["doctor"]) == 0
    damage(library)
    assert main(["doctor"]) == 1
    assert "After the repair" not in capsys.readouterr().out
    assert main(["doctor", "--repair"]) == 0
    assert capsys.readouterr().out.endswith("After the repair:\nEverything belongs to something: nothing to repair.\n")
    assert main(["rebuild-index"]) == 0
    assert capsys.readouterr().out == "Full text is built anew.\n"
    assert found(library, "plums")


def test_without_a_library_both_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looking makes no database."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "none"))
    for command in ("doctor", "rebuild-index"):
        assert main([command]) == 1
    assert "docent: " in capsys.readouterr().err
    assert not (tmp_path / "none" / "docent.db").exists()
