"""From a queued file to a ready document: states, edits, duplicates, deletes, progress. Extraction is real."""

import logging
import re
import threading
from pathlib import Path

import pytest

from app.ingest.uploads import Arrival
from app.search.embeddings import FloatMatrix
from app.settings import Settings
from app.store import documents
from app.store.models.library import Chunk, Job
from app.store.models.vectors import Vector
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import RAID, CountingEmbedder, GatedExtractor, count, fill, found, sections
from tests.waiting import until

WORDS = ("oak", "elm", "ash", "fir", "yew", "fig", "bay", "box", "lime", "pine")


class BatchEmbedder(WordEmbedder):
    """Remembers how many texts it was given at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        self.batches.append(len(texts))
        return super().embed_passages(texts)


def test_an_upload_becomes_findable_and_then_ready(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """One line a document, its fields in their order; text, offsets and vectors are there."""
    with caplog.at_level(logging.INFO, "app.ingest"), IngestLibrary(settings).start() as library:
        document_id = library.add("notes/raid.md", RAID)
        row = library.wait_for(document_id, "ready")
        assert (row.title, row.mime, row.chunks, row.embedded, row.error) == ("Disks", "text/markdown", 1, 1, None)
        assert found(library, "disks") == {document_id}
        assert found(library, "raid") == {document_id}
        detail = library.detail(document_id)
        assert detail.text == RAID
        assert_sound(library)
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("document ")]
    assert len(lines) == 1
    names = " ".join(re.findall(r"(\w+)=", lines[0]))
    assert names == "id collection source status reason bytes chars chunks pages extract_ms store_ms total_ms"
    assert f"id={document_id} collection=1 source=upload status=embedding reason=- bytes={len(RAID)} chars=" in lines[0]


def test_many_uploads_all_end_ready_and_nothing_is_doubled(settings: Settings) -> None:
    """Claims in batches, one transaction for many documents."""
    with IngestLibrary(settings).start() as library:
        ids = [library.add(f"{number}.md", sections(f"alpha{number}", f"beta{number}")) for number in range(60)]
        library.settle(60)
        assert {row.status for row in library.rows()} == {"ready"}
        assert len(library.rows()) == len(ids) == 60
        assert count(library, Vector) == count(library, Chunk) == 120
        assert count(library, Job) == 0
        assert_sound(library)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.md", b"", "empty"),
        ("blank.txt", b" \n\t\n", "empty"),
        ("fake.docx", b"PK\x03\x04 not a zip at all", "corrupt"),
        ("broken.pdf", b"%PDF-1.7\n1 0 obj\n<< /Type", "corrupt"),
        ("firmware.bin", bytes(range(256)) * 40, "unsupported"),
    ],
)
def test_a_file_that_cannot_be_read_fails_with_its_reason(
    settings: Settings, name: str, content: bytes, reason: str
) -> None:
    """Failed, kept, on top of the list; nothing half-written."""
    with IngestLibrary(settings).start() as library:
        good = library.add("good.md", RAID)
        bad = library.add(name, content)
        library.settle()
        row = library.row(bad)
        assert (row.status, row.error, row.chunks, row.needs_look) == ("failed", reason, 0, True)
        assert library.row(good).status == "ready"
        assert_sound(library)
        page = library.database.read(
            lambda session: documents.list_documents(session, USER, documents.DocumentFilters())
        )
        assert [item.id for item in page.rows] == [bad, good]


def test_another_content_under_the_same_name_replaces_the_document(settings: Settings) -> None:
    """Same row; only the passage that changed is embedded; the old words are gone, and the old file."""
    embedder = CountingEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        first = library.add("guide.md", sections("install", "backup", "restore"))
        library.settle()
        assert len(embedder.texts) == 3
        second = library.add("guide.md", sections("install", "archive", "restore"))
        library.settle()
        assert second == first
        assert len(embedder.texts) == 4
        assert "archive" in embedder.texts[3]
        assert found(library, "backup") == set()
        assert found(library, "archive") == {first}
        assert library.row(first).status == "ready"
        assert_sound(library)


def test_what_a_replaced_document_held_stays_findable_until_the_new_text_is_there(settings: Settings) -> None:
    """No gap: old passages and the old text serve while the new file is read."""
    extractor = GatedExtractor()
    extractor.go.set()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        document_id = library.add("guide.md", sections("backup"))
        library.wait_for(document_id, "ready")
        extractor.go.clear()
        extractor.asked.clear()
        library.add("guide.md", sections("archive"))
        assert extractor.asked.wait(10)
        assert library.row(document_id).status == "parsing"
        assert found(library, "backup") == {document_id}
        extractor.go.set()
        library.wait_for(document_id, "ready")
        assert found(library, "backup") == set()


def test_the_same_content_again_is_no_work(settings: Settings) -> None:
    """Same name: nothing happens. Another name: a row of its own, the file stored once, nothing embedded again."""
    embedder = CountingEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        first = library.add("a.md", RAID)
        library.settle()
        row = library.row(first)
        assert library.add("a.md", RAID) == first
        library.settle()
        assert library.row(first) == row
        copy = library.add("b.md", RAID)
        library.settle()
        assert copy != first
        assert library.row(copy).status == "ready"
        assert len(embedder.texts) == 1
        assert len(library.stored_files()) == 1
        assert_sound(library)
        library.sources.delete_document(USER, first)
        assert library.row(copy).chunks == 1
        assert found(library, "disks") == {copy}
        assert_sound(library)
        library.sources.delete_document(USER, copy)
        assert count(library, Vector) == 0
        assert library.stored_files() == []


def test_the_same_name_twice_in_one_request_is_one_document(settings: Settings) -> None:
    """The later content wins; the earlier file is not kept."""
    with IngestLibrary(settings).start() as library:
        arrivals: list[Arrival] = []
        for content in (sections("winter"), sections("summer")):
            incoming = library.files.begin()
            incoming.write(content.encode())
            arrivals.append(Arrival("a.md", incoming.done()))
        first, second = library.sources.add_uploads(USER, arrivals)
        library.settle()
        assert first is not None
        assert second is not None
        assert (first.document_id, first.outcome, second.outcome) == (second.document_id, "added", "replaced")
        assert found(library, "winter") == set()
        assert found(library, "summer") == {first.document_id}
        assert_sound(library)


def test_a_document_deleted_while_it_is_read_stays_deleted(settings: Settings) -> None:
    """The job goes with the row, so what was read finds no place; the next document is not disturbed."""
    extractor = GatedExtractor()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        document_id = library.add("a.md", RAID)
        assert extractor.asked.wait(10)
        library.sources.delete_document(USER, document_id)
        extractor.go.set()
        other = library.add("b.md", sections("garden"))
        library.settle()
        assert [row.id for row in library.rows()] == [other]
        assert found(library, "disks") == set()
        assert_sound(library)


def test_a_content_replaced_while_the_old_one_is_read_wins(settings: Settings) -> None:
    """The reading of the older bytes is thrown away."""
    extractor = GatedExtractor()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        document_id = library.add("a.md", sections("winter"))
        assert extractor.asked.wait(10)
        library.add("a.md", sections("summer"))
        extractor.go.set()
        library.settle()
        assert library.row(document_id).status == "ready"
        assert found(library, "winter") == set()
        assert found(library, "summer") == {document_id}
        assert_sound(library)


def test_embedding_gives_way_while_an_answer_streams(settings: Settings) -> None:
    """No passage is embedded as long as a turn streams, but it does go on within seconds if turns never end."""
    streaming = threading.Event()
    streaming.set()
    embedder = CountingEmbedder()
    with IngestLibrary(settings, embedder=embedder, busy=streaming.is_set).start() as library:
        document_id = library.add("a.md", RAID)
        library.wait_for(document_id, "embedding")
        assert embedder.texts == []
        streaming.clear()
        library.wait_for(document_id, "ready")
        streaming.set()
        later = library.add("b.md", sections("garden"))
        library.wait_for(later, "ready")


def test_passages_are_embedded_one_by_one_where_someone_asks(settings: Settings) -> None:
    """A question that comes meanwhile shares the cores with one passage, not with eight."""
    streaming = threading.Event()
    streaming.set()
    embedder = BatchEmbedder()
    with IngestLibrary(settings, embedder=embedder, busy=streaming.is_set).start() as library:
        library.add("a.md", sections(*WORDS))
        until(lambda: embedder.batches != [], "the first one did not wait for ever")
        streaming.clear()
        library.settle()
        assert embedder.batches == [1] * len(WORDS)


def test_passages_are_embedded_by_the_batch_where_nobody_asks(settings: Settings) -> None:
    """Each once, eight at a time."""
    embedder = BatchEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        library.add("a.md", sections(*WORDS))
        library.settle()
    assert embedder.batches == [8, len(WORDS) - 8]


def test_every_file_lets_a_turn_that_begins_go_first(settings: Settings, tmp_path: Path) -> None:
    """Asked before each file that is read, and before each that is compared; a turn that never ends stops neither."""
    looks: list[bool] = []

    def starting() -> bool:
        looks.append(len(looks) % 4 < 2)
        return looks[-1]

    with IngestLibrary(settings, starting=starting).start() as library:
        library.add_all({f"{number}.md": sections(f"alpha{number}") for number in range(5)})
        library.settle()
        assert len(looks) >= 5
        seen = len(looks)
        fill(tmp_path / "notes", **{f"n{number}": sections(f"beta{number}") for number in range(5)})
        library.folders.add_folder(USER, str(tmp_path / "notes"))
        library.settle()
        assert len(looks) - seen >= 10
        assert {row.status for row in library.rows()} == {"ready"}


def test_the_batch_tells_how_far_it_is(settings: Settings) -> None:
    """Total, searchable, done, failed; a batch that is over is gone after a moment."""
    streaming = threading.Event()
    streaming.set()
    with IngestLibrary(settings, busy=streaming.is_set).start() as library:
        library.add("a.md", sections("one", "two"))
        bad = library.add("b.md", b"")
        library.wait_for(bad, "failed")
        until(lambda: library.worker.batch(USER).searchable == 1, "one is searchable")
        batch = library.worker.batch(USER)
        assert (batch.total, batch.done, batch.failed, batch.passages, batch.is_over) == (2, 1, 1, 2, False)
        streaming.clear()
        library.settle()
        batch = library.worker.batch(USER)
        assert (batch.total, batch.done, batch.is_over) == (2, 2, True)
