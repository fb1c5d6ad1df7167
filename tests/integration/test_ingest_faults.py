"""What goes wrong around a document: crashes, embedders that are down, stops, leases. Nothing is lost or doubled."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from app.ingest.blocks import Extraction
from app.ingest.chunking import ChunkDraft
from app.ingest.progress import PageCallback
from app.search.embeddings import FloatMatrix
from app.settings import Settings
from app.store import intake, jobs
from app.store.models.library import Job
from app.store.models.vectors import Vector
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import RAID, GatedExtractor, count, fill, found, sections
from tests.waiting import until


def test_a_crash_that_is_not_the_files_fault_is_tried_again(settings: Settings) -> None:
    """Up to three times, with growing pauses; then it is ready."""
    extractor = GatedExtractor()
    extractor.go.set()
    extractor.crashes = 1
    with IngestLibrary(settings, extractor=extractor).start() as library:
        document_id = library.add("a.md", RAID)
        assert library.wait_for(document_id, "ready").error is None
        assert_sound(library)


def test_a_failed_document_can_be_retried(settings: Settings) -> None:
    """It goes the whole way again; retrying a ready one changes nothing."""
    extractor = GatedExtractor()
    extractor.go.set()
    extractor.crashes = 100
    with IngestLibrary(settings, extractor=extractor).start() as library:
        document_id = library.add("a.md", RAID)
        assert library.wait_for(document_id, "failed").error == "internal"
        extractor.crashes = 0
        library.sources.retry(USER, document_id)
        row = library.wait_for(document_id, "ready")
        library.sources.retry(USER, document_id)
        library.settle()
        assert library.row(document_id) == row
        extractor.crashes = 100
        assert library.add("a.md", RAID) == document_id
        assert_sound(library)


def test_a_document_waits_findable_while_the_embedder_is_down(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Its state says why; nothing fails; once the embedder answers, a retry makes it ready."""
    embedder = WordEmbedder()
    embedder.is_down = True
    with caplog.at_level(logging.WARNING, "app.ingest"), IngestLibrary(settings, embedder=embedder).start() as library:
        document_id = library.add("a.md", RAID)
        until(lambda: library.row(document_id).error == "embed_unavailable", "the reason is shown")
        row = library.row(document_id)
        assert (row.status, row.chunks, row.embedded) == ("embedding", 1, 0)
        assert found(library, "disks") == {document_id}
        assert library.orphans().is_sound
        embedder.is_down = False
        library.sources.retry(USER, document_id)
        assert library.wait_for(document_id, "ready").error is None
        assert_sound(library)
    assert [record.getMessage() for record in caplog.records if "embedding_waits" in record.getMessage()]


def test_a_down_embedder_is_asked_again_without_being_told(settings: Settings) -> None:
    """The job is due later, its attempt not counted."""
    embedder = WordEmbedder()
    embedder.is_down = True
    with IngestLibrary(settings, embedder=embedder).start() as library:
        document_id = library.add("a.md", RAID)
        until(lambda: library.row(document_id).error == "embed_unavailable", "the reason is shown")

        def due(session: object) -> float | None:
            return jobs.next_due(session, "embed", library.clock.now())  # pyright: ignore[reportArgumentType]

        wait = library.database.read(due)
        assert wait is not None
        assert 0 < wait <= 5
        attempts = library.database.read(lambda session: list(session.scalars(select(Job.attempts))))
        assert attempts == [0]


def test_an_embedder_that_answers_nonsense_is_given_up_after_three_tries(settings: Settings) -> None:
    """The document stays findable by words and says so."""

    class Crooked(WordEmbedder):
        def embed_passages(self, texts: list[str]) -> FloatMatrix:
            return np.zeros((len(texts), 3), dtype=np.float32)

    with IngestLibrary(settings, embedder=Crooked()) as library:
        document_id = library.add("a.md", RAID)
        library.worker.start()
        library.wait_for(document_id, "embedding")

        def expire(session: object) -> None:
            past = library.clock.now() - timedelta(seconds=1)
            session.execute(update(Job).where(Job.state == "running").values(lease_until=past))  # type: ignore[attr-defined]

        def is_given_up() -> bool:
            library.database.write(expire)
            library.worker.wake()
            return library.row(document_id).error == "embed_failed"

        until(is_given_up, "given up", 60)
        assert found(library, "disks") == {document_id}
        assert library.orphans().is_sound


def test_a_stop_gives_back_what_was_being_read(settings: Settings) -> None:
    """Within two seconds, without counting an attempt; the next life goes on at once."""
    extractor = GatedExtractor()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        ids = [library.add(f"{number}.md", sections(f"part{number}")) for number in range(20)]
        assert extractor.asked.wait(10)
        assert library.worker.stop()
        rows = [library.row(document_id) for document_id in ids]
        assert {row.status for row in rows} == {"queued"}
        attempts = library.database.read(lambda session: set(session.scalars(select(Job.attempts))))
        assert attempts == {0}
    with IngestLibrary(settings).start() as library:
        library.settle()
        assert {row.status for row in library.rows()} == {"ready"}
        assert_sound(library)


def test_what_a_killed_process_held_is_taken_over_at_once_when_nobody_else_lives(settings: Settings) -> None:
    """Running jobs, half-read documents, temporary and unneeded files of an earlier life."""
    with IngestLibrary(settings) as library:
        document_id = library.add("a.md", RAID)

        def hold(session: object) -> None:
            jobs.claim(session, "ingest", 9, 3600, library.clock.now())  # pyright: ignore[reportArgumentType]
            intake.mark_parsing(session, [document_id])  # pyright: ignore[reportArgumentType]

        library.database.write(hold)
        (settings.data_dir / "tmp" / "in-half").write_bytes(b"half a file")
        stray = library.files.begin()
        stray.write(b"no row needs this")
        library.files.place(stray.done())
        assert len(library.stored_files()) == 2
    with IngestLibrary(settings).start() as library:
        library.wait_for(document_id, "ready", timeout_s=10)
        assert_sound(library)


def test_a_job_another_living_worker_holds_is_left_until_its_lease_runs_out(settings: Settings) -> None:
    """No two workers on one document; then the lease decides, and the late one finds its fence gone."""
    with IngestLibrary(settings) as library, IngestLibrary(settings) as other:
        document_id = library.add("a.md", RAID)
        now = library.clock.now()
        (held,) = library.database.write(lambda session: jobs.claim(session, "ingest", 1, 3600, now))
        assert not other.database.write(lambda session: jobs.claim(session, "ingest", 1, 60, now))
        later = now + timedelta(hours=2)
        (taken,) = other.database.write(lambda session: jobs.claim(session, "ingest", 1, 60, later))
        assert (taken.id, taken.document_id, taken.fence) == (held.id, document_id, held.fence + 1)
        assert library.database.read(lambda session: jobs.held(session, [held])) == set()
        assert other.database.read(lambda session: jobs.held(session, [taken])) == {taken.id}


def test_a_document_that_takes_the_process_down_three_times_fails_alone(settings: Settings) -> None:
    """It was claimed alone after the first time, so its neighbours are not charged for it."""
    with IngestLibrary(settings) as library:
        bad, good = library.add("bad.md", RAID), library.add("good.md", sections("garden"))
        for expected in (2, 1, 1):
            claimed = library.database.write(lambda session: jobs.claim(session, "ingest", 9, 60, library.clock.now()))
            assert len(claimed) == expected

            def die(session: object, document_id: int = claimed[0].document_id or 0) -> None:
                query = update(Job).where(Job.document_id == document_id, Job.state == "running")
                session.execute(query.values(state="queued"))  # type: ignore[attr-defined]
                session.execute(update(Job).where(Job.state == "running").values(state="queued", attempts=0))  # type: ignore[attr-defined]

            library.database.write(die)
        library.worker.start()
        assert library.wait_for(bad, "failed").error == "internal"
        library.wait_for(good, "ready")
        assert_sound(library)


def test_another_embedder_makes_every_document_embed_anew(settings: Settings) -> None:
    """Vectors of two models never mix; documents stay findable by words meanwhile."""
    with IngestLibrary(settings).start() as library:
        ids = [library.add(f"{number}.md", sections(f"part{number}")) for number in range(3)]
        library.settle()
    with IngestLibrary(settings, embedder=WordEmbedder("other-model", dim=32)).start() as library:
        ids.append(library.add("new.md", RAID))
        until(lambda: all(library.row(known).status == "ready" for known in ids), "all embedded anew")
        library.settle()
        assert count(library, Vector) == 3 + 4
        assert library.orphans().is_sound


def test_a_text_the_database_refuses_fails_alone(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """What goes wrong for one document of a transaction takes none of the others with it."""

    class Spoiling(GatedExtractor):
        def extract(
            self,
            path: Path,
            name: str,
            on_page: PageCallback | None = None,
            recognised: Mapping[int, Mapping[str, Any]] | None = None,
            charset: str | None = None,
        ) -> tuple[Extraction, list[ChunkDraft]]:
            extraction, drafts = super().extract(path, name, on_page, recognised, charset)
            return (replace(extraction, title="\ud800") if name == "bad.md" else extraction), drafts

    extractor = Spoiling()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        ids = library.add_all({"a.md": sections("one"), "bad.md": sections("two"), "c.md": sections("three")})
        extractor.go.set()
        library.settle()
        assert [(row.path, row.status, row.error) for row in map(library.row, ids)] == [
            ("a.md", "ready", None),
            ("bad.md", "failed", "internal"),
            ("c.md", "ready", None),
        ]
        assert_sound(library)
    assert [record for record in caplog.records if "document_not_stored" in record.getMessage()]


def test_a_file_renamed_while_it_is_read_is_read_under_its_new_name(settings: Settings, tmp_path: Path) -> None:
    """The job goes back and finds it; no failed row stays behind."""
    fill(tmp_path / "notes", old=sections("apples"))
    extractor = GatedExtractor()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        collection_id = library.folders.add_folder(USER, str(tmp_path / "notes"))
        assert extractor.asked.wait(20)
        (tmp_path / "notes" / "old.md").rename(tmp_path / "notes" / "new.md")
        library.folders.request_scan(USER, collection_id)
        until(lambda: library.paths() == ["new.md"], "the new name is seen")
        extractor.go.set()
        library.settle()
        (row,) = library.rows()
        assert (row.path, row.status) == ("new.md", "ready")
        assert found(library, "new") == {row.id}
        assert_sound(library)
