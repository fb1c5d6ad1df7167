"""Scanned documents: found by the words in their pictures once that was asked for, kept through restart and edit."""

import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.ingest.blocks import Extraction
from app.ingest.chunking import ChunkDraft
from app.ingest.progress import PageCallback
from app.settings import Settings
from app.store import readings
from app.store.models.readings import RecognisedPage
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import GatedExtractor, found, watch
from tests.scanned_pdf import fake_tesseract, write_scan

Install = Callable[..., Path]


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a program that finds these words in every picture on the PATH."""
    folder = tmp_path_factory.mktemp("bin")

    def install(*words: str, body: str = "") -> Path:
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        return fake_tesseract(folder, *words, body=body)

    return install


def scan(tmp_path: Path, *pages: str | None) -> bytes:
    return write_scan(tmp_path / "made.pdf", list(pages)).read_bytes()


def ocr(library: IngestLibrary, document_id: int) -> readings.ReadingRow:
    return library.database.read(lambda session: readings.rows_of(session, [document_id])).get(
        document_id, readings.ReadingRow()
    )


def kept_pages(library: IngestLibrary) -> int:
    return library.database.read(lambda session: session.scalar(select(func.count()).select_from(RecognisedPage))) or 0


def test_a_scan_is_not_recognised_unless_it_is_asked_for(
    settings: Settings, tmp_path: Path, installed: Install
) -> None:
    installed("boiler")
    with IngestLibrary(settings).start() as library:
        number = library.add("scan.pdf", scan(tmp_path, "x"))
        row = library.wait_for(number, "failed")
        library.settle()
        assert (row.error, ocr(library, number).ocr) == ("no_text", None)


def test_a_scan_that_was_asked_for_is_found_by_its_words(
    settings: Settings, tmp_path: Path, installed: Install
) -> None:
    installed("Receipt", "boiler")
    with IngestLibrary(settings).start() as library:
        number = library.add("scan.pdf", scan(tmp_path, "x", None, "y"))
        library.wait_for(number, "ready")
        assert found(library, "boiler") == set()
        library.sources.recognise(USER, number)
        library.settle()
        assert found(library, "boiler") == {number}
        assert library.row(number).empty_pages == ()
        assert ocr(library, number) == readings.ReadingRow("done", recognised=2, words=2)
        assert_sound(library)


def test_a_document_of_pictures_only_lives_after_it(settings: Settings, tmp_path: Path, installed: Install) -> None:
    installed("Receipt", "boiler")
    with IngestLibrary(settings).start() as library:
        number = library.add("scan.pdf", scan(tmp_path, "x"))
        library.wait_for(number, "failed")
        library.sources.recognise(USER, number)
        library.settle()
        assert library.row(number).status == "ready"
        assert found(library, "boiler") == {number}


def test_the_setting_asks_for_every_scan(settings: Settings, tmp_path: Path, installed: Install) -> None:
    installed("boiler")
    with IngestLibrary(settings.model_copy(update={"ocr": "on"})).start() as library:
        numbers = [library.add("a.pdf", scan(tmp_path, "x")), library.add("b.pdf", scan(tmp_path, None, "y"))]
        typed = library.add("c.pdf", scan(tmp_path, None))
        library.settle()
        assert found(library, "boiler") == set(numbers)
        assert ocr(library, typed).ocr is None


def test_pictures_without_words_are_looked_at_once_and_again_when_asked(
    settings: Settings, tmp_path: Path, installed: Install
) -> None:
    installed()
    with IngestLibrary(settings.model_copy(update={"ocr": "on"})).start() as library:
        number = library.add("a.pdf", scan(tmp_path, "x", None))
        library.settle()
        assert ocr(library, number) == readings.ReadingRow("done", recognised=1, words=0)
        installed("boiler")
        library.sources.recognise(USER, number)
        library.settle()
        assert found(library, "boiler") == {number}


def test_a_machine_without_the_program_says_so_and_keeps_the_rest(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = scan(tmp_path, None, "x")
    monkeypatch.setenv("PATH", str(tmp_path))
    with IngestLibrary(settings).start() as library:
        number = library.add("a.pdf", content)
        library.wait_for(number, "ready")
        library.sources.recognise(USER, number)
        library.settle()
        assert ocr(library, number).ocr == "failed"
        assert library.row(number).status == "ready"
    assert "document_not_recognised" in caplog.text


def test_a_stop_in_the_middle_costs_one_page(settings: Settings, tmp_path: Path, installed: Install) -> None:
    """The next life goes on behind the last page that was kept."""
    seen = tmp_path / "seen"
    installed("boiler", body=f"echo page >> '{seen}'; [ $(wc -l < '{seen}') -lt 3 ] || sleep 1")
    number = 0
    with IngestLibrary(settings).start() as library:
        number = library.add("a.pdf", scan(tmp_path, "x", "x", "x", "x"))
        library.wait_for(number, "failed")
        library.sources.recognise(USER, number)
        while kept_pages(library) < 2:
            threading.Event().wait(0.02)
    before = len(seen.read_text().splitlines())
    with IngestLibrary(settings).start() as library:
        library.settle()
        assert ocr(library, number) == readings.ReadingRow("done", recognised=4, words=4)
        assert found(library, "boiler") == {number}
    assert len(seen.read_text().splitlines()) <= before + 2


def test_another_version_of_the_file_forgets_what_was_recognised(
    settings: Settings, tmp_path: Path, installed: Install
) -> None:
    installed("boiler")
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.pdf").write_bytes(scan(tmp_path, "x", None))
    with IngestLibrary(settings).start() as library:
        collection = watch(library, root)
        library.settle()
        (number,) = (row.id for row in library.rows())
        library.sources.recognise(USER, number)
        library.settle()
        assert found(library, "boiler") == {number}
        (root / "a.pdf").write_bytes(write_scan(tmp_path / "b.pdf", [None], typed="All was typed anew").read_bytes())
        library.scan(collection)
        library.settle()
        assert found(library, "boiler") == set()
        assert found(library, "anew") == {number}


def test_what_was_recognised_goes_with_its_document(settings: Settings, tmp_path: Path, installed: Install) -> None:
    installed("boiler")
    with IngestLibrary(settings).start() as library:
        number = library.add("a.pdf", scan(tmp_path, "x"))
        library.wait_for(number, "failed")
        library.sources.recognise(USER, number)
        library.settle()
        assert kept_pages(library) == 1
        library.sources.delete_document(USER, number)
        assert kept_pages(library) == 0
        assert_sound(library)


class CuttingExtractor(GatedExtractor):
    """Says of files with "long" in their name that it left out the end of a table."""

    def extract(
        self,
        path: Path,
        name: str,
        on_page: PageCallback | None = None,
        recognised: Mapping[int, Mapping[str, Any]] | None = None,
        charset: str | None = None,
    ) -> tuple[Extraction, list[ChunkDraft]]:
        extraction, drafts = super().extract(path, name, on_page, recognised, charset)
        return replace(extraction, cut=b"long" in path.read_bytes()), drafts


def test_a_table_that_was_cut_is_remembered_until_it_is_not(settings: Settings) -> None:
    extractor = CuttingExtractor()
    extractor.go.set()
    with IngestLibrary(settings, extractor=extractor).start() as library:
        number = library.add("table.csv", "a,b\nlong,1\n")
        whole = library.add("other.csv", "a,b\nshort,1\n")
        library.settle()
        assert (ocr(library, number).cut, ocr(library, whole).cut) == (True, False)
        library.add("table.csv", "a,b\nshort,1\n")
        library.settle()
        assert not ocr(library, number).cut


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed on this machine")
def test_the_given_scans_yield_what_they_say(settings: Settings) -> None:
    """The corpus names words that only recognising can find."""
    folder = Path(__file__).resolve().parents[3] / "shared/corpus/formats"
    if not folder.is_dir():
        pytest.skip("the corpus is not here")
    with IngestLibrary(settings.model_copy(update={"ocr": "on"})).start() as library:
        names = ("receipt-scan.pdf", "ups-manual-scan.pdf")
        receipt, manual = (library.add(name, (folder / name).read_bytes()) for name in names)
        library.settle()
        assert "Receipt 2025-0417" in (library.detail(receipt).text or "")
        text = library.detail(manual).text or ""
        assert "RB-1290" in text
        assert "Disconnect the black cable first" in text
