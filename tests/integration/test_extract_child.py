"""The extraction child as a real process: kept while it behaves, replaced when it does not."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from reportlab.pdfgen.canvas import Canvas

from app.ingest.chunking import chunk
from app.ingest.errors import ExtractorClosedError, IngestError
from app.ingest.extract.dispatch import SizeLimits, extract
from app.ingest.extract.extractor import Extractor, Limits
from tests.waiting import until

GRACE_S = 2


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.md"
    path.write_text("# Pump\n\nTurn the valve — slowly.\n")
    return path


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A document that keeps the child busy for many seconds without much memory."""
    path = tmp_path / "slow.json"
    path.write_bytes(b"[" * 12_000_000)
    return path


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PDF long enough for progress to be told."""
    path = tmp_path_factory.mktemp("book") / "book.pdf"
    canvas = Canvas(str(path))
    for page in range(500):
        for line in range(50):
            canvas.drawString(50, 780 - 14 * line, f"Page {page} line {line} says how the pump is to be started again")
        canvas.showPage()
    canvas.save()
    return path


@pytest.fixture
def extractor() -> Iterator[Extractor]:
    extractor = Extractor()
    yield extractor
    extractor.close()


def children() -> list[psutil.Process]:
    """This process's extraction children that run."""
    return [
        process
        for process in psutil.Process().children()
        if process.status() != psutil.STATUS_ZOMBIE and "app.ingest.extract.child" in process.cmdline()
    ]


def reason_of(extractor: Extractor, path: Path) -> tuple[str, float]:
    """Why a document fails, and after how many seconds."""
    started = time.monotonic()
    with pytest.raises(IngestError) as caught:
        extractor.extract(path, path.name)
    return caught.value.reason, time.monotonic() - started


def test_a_document_read_in_the_child_is_what_it_is_in_process(extractor: Extractor, note: Path) -> None:
    """The child starts with the first document and is kept for the second."""
    assert children() == []
    expected = extract(note, note.name, SizeLimits())

    assert extractor.extract(note, note.name) == (expected, chunk(expected))
    (first,) = children()
    assert extractor.extract(note, note.name)[0] == expected

    assert children() == [first]


def test_names_that_are_no_text_are_taken(extractor: Extractor, tmp_path: Path) -> None:
    """A file name is bytes: a newline, a bidi mark, a byte that is no UTF-8."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\n\xe2\x80\xae\xff.md"))
    path.write_text("# Here")

    assert extractor.extract(path, path.name)[0].title == "Here"


def test_errors_carry_their_reason_across(extractor: Extractor, tmp_path: Path) -> None:
    """And the child lives on."""
    (tmp_path / "empty.md").touch()

    assert reason_of(extractor, tmp_path / "empty.md")[0] == "empty"
    (child,) = children()
    assert reason_of(extractor, tmp_path / "none.md")[0] == "vanished"
    assert children() == [child]


def test_the_wall_clock_ends_a_document_and_not_the_next(note: Path, slow: Path) -> None:
    """Limit plus two seconds at most; a fresh child reads what follows."""
    extractor = Extractor(Limits(wall_s=0.5))
    try:
        reason, seconds = reason_of(extractor, slow)

        assert reason == "timeout"
        assert seconds < 0.5 + GRACE_S
        assert children() == []
        extractor.limits = Limits()
        assert extractor.extract(note, note.name)[0].title == "Pump"
    finally:
        extractor.close()


def test_the_kernel_ends_a_document_that_used_up_its_cpu_time(note: Path, slow: Path) -> None:
    """The same reason as for the clock; the time is granted per document, not per child."""
    extractor = Extractor(Limits(cpu_s=0))
    try:
        assert reason_of(extractor, slow)[0] == "timeout"
        assert extractor.extract(note, note.name)[0].title == "Pump"
    finally:
        extractor.close()


def test_a_document_that_needs_too_much_memory_is_too_long(note: Path, tmp_path: Path) -> None:
    """Only that one: the next is read."""
    hungry = tmp_path / "hungry.md"
    hungry.write_bytes(b"- a\n" * 2_000_000)
    extractor = Extractor(Limits(memory_bytes=160 << 20))
    try:
        assert reason_of(extractor, hungry)[0] == "too_long"
        assert extractor.extract(note, note.name)[0].title == "Pump"
    finally:
        extractor.close()


@pytest.mark.parametrize(
    ("killer", "reason"),
    [
        (signal.SIGKILL, "too_long"),
        (signal.SIGABRT, "too_long"),
        (signal.SIGSEGV, "corrupt"),
        (signal.SIGXCPU, "timeout"),
    ],
)
def test_a_child_that_dies_over_a_document_fails_that_document(
    extractor: Extractor, book: Path, note: Path, killer: signal.Signals, reason: str
) -> None:
    """Killed for memory, crashed in native code, out of CPU time: a reason each, and a new child after it."""
    with pytest.raises(IngestError) as caught:
        extractor.extract(book, book.name, lambda done, total: os.kill(children()[0].pid, killer))

    assert caught.value.reason == reason
    assert extractor.extract(note, note.name)[0].title == "Pump"


def test_a_child_that_cannot_start_is_no_fault_of_the_document(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told as Docent's own error, and worth another try."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    extractor = Extractor()
    try:
        assert reason_of(extractor, note)[0] == "internal"
        assert children() == []
    finally:
        extractor.close()


def test_a_child_that_died_while_idle_is_replaced_unnoticed(extractor: Extractor, note: Path) -> None:
    """Nothing counts on it."""
    extractor.extract(note, note.name)
    (child,) = children()
    child.kill()

    assert extractor.extract(note, note.name)[0].title == "Pump"
    assert children() != [child]


def test_a_child_is_recycled_after_its_share_of_documents(note: Path) -> None:
    """What leaks does not add up."""
    extractor = Extractor(Limits(documents_per_child=2))
    try:
        pids: list[int] = []
        for _ in range(3):
            extractor.extract(note, note.name)
            pids.extend(process.pid for process in children())

        assert len(pids) == 2
        assert len(set(pids)) == 2
    finally:
        extractor.close()


def test_pages_are_told_while_a_long_pdf_is_read(extractor: Extractor, book: Path) -> None:
    """Growing, and out of all of them."""
    told: list[tuple[int, int]] = []

    extraction, chunks = extractor.extract(book, book.name, lambda done, total: told.append((done, total)))

    assert extraction.pages == 500
    assert len(chunks) > 500
    assert told == sorted(set(told))
    assert {total for _, total in told} == {500}


def test_closing_ends_a_document_at_once(extractor: Extractor, slow: Path, note: Path) -> None:
    """A clean stop does not wait for a parser, and says that the document is not to blame."""
    extractor.extract(note, note.name)
    caught: list[BaseException] = []

    def read() -> None:
        try:
            extractor.extract(slow, slow.name)
        except IngestError as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: children()[0].cpu_times().user >= 0.5, "the child is reading", 10)
    started = time.monotonic()
    extractor.close()
    thread.join(10)

    assert time.monotonic() - started < GRACE_S
    assert [type(error) for error in caught] == [ExtractorClosedError]
    assert children() == []
    with pytest.raises(ExtractorClosedError):
        extractor.extract(note, note.name)
    extractor.close()


def test_threads_take_turns(extractor: Extractor, tmp_path: Path) -> None:
    """Each gets its own document back."""
    titles: dict[int, str] = {}

    def read(number: int) -> None:
        path = tmp_path / f"{number}.md"
        path.write_text(f"# Note {number}\n")
        titles[number] = extractor.extract(path, path.name)[0].title

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert titles == {number: f"Note {number}" for number in range(8)}


def test_a_dead_child_leaves_a_line_without_the_document(
    extractor: Extractor, book: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator sees that a parser died, and by which signal."""
    with caplog.at_level(logging.WARNING, "app.ingest"), pytest.raises(IngestError):
        extractor.extract(book, book.name, lambda done, total: children()[0].kill())

    assert [record.getMessage() for record in caplog.records] == ["extract_child_died code=-9"]
