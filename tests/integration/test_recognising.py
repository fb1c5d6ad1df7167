"""Pages that are pictures: drawn in the child, recognised by a program under limits, read as any other page."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ingest.errors import IngestError
from app.ingest.extract import wire
from app.ingest.extract.extractor import Extractor
from app.ingest.tesseract import Tesseract, find_tesseract, installed_languages
from tests.scanned_pdf import fake_tesseract, write_scan


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    extractor = Extractor()
    yield extractor
    extractor.close()


def test_a_page_is_drawn_grey_at_200_dots_an_inch(extractor: Extractor, tmp_path: Path) -> None:
    picture = extractor.picture(write_scan(tmp_path / "scan.pdf", [None, "BOILER"]), 1)
    assert picture.pgm.startswith(b"P5\n1653 2339\n255\n")
    assert (picture.pages, picture.height) == (2, 842.0)
    assert len(picture.pgm) == len(b"P5\n1653 2339\n255\n") + 1653 * 2339


def test_a_page_that_is_not_there_is_an_error_and_not_a_crash(extractor: Extractor, tmp_path: Path) -> None:
    with pytest.raises(IngestError) as caught:
        extractor.picture(write_scan(tmp_path / "scan.pdf", [None]), 5)
    assert caught.value.reason == "corrupt"


def test_only_a_pdf_has_pages_to_draw(extractor: Extractor, tmp_path: Path) -> None:
    note = tmp_path / "note.pdf"
    note.write_text("# not a PDF")
    with pytest.raises(IngestError) as caught:
        extractor.picture(note, 0)
    assert caught.value.reason == "unsupported"


def test_recognised_words_stand_where_their_page_had_none(extractor: Extractor, tmp_path: Path) -> None:
    path = write_scan(tmp_path / "scan.pdf", [None, "any picture", None])
    reader = Tesseract(str(fake_tesseract(tmp_path, "Receipt", "2025-0417")), "eng")
    found = reader.read(extractor.picture(path, 1))
    extraction, drafts = extractor.extract(path, "scan.pdf", recognised={1: wire.pack_lines(found)})
    assert [block.page for block in extraction.blocks] == [1, 2, 3]
    assert extraction.blocks[1].text == "Receipt 2025-0417"
    assert extraction.text_yield is not None
    assert all(extraction.text_yield)
    assert any("Receipt 2025-0417" in draft.text for draft in drafts)


def test_recognised_words_never_replace_a_page_that_has_text(extractor: Extractor, tmp_path: Path) -> None:
    path = write_scan(tmp_path / "scan.pdf", [None])
    reader = Tesseract(str(fake_tesseract(tmp_path, "other")), "eng")
    lines = wire.pack_lines(reader.read(extractor.picture(path, 0)))
    extraction, _ = extractor.extract(path, "scan.pdf", recognised={0: lines})
    assert "typed" in extraction.text
    assert "other" not in extraction.text


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$"])
def test_a_program_that_fails_is_an_error_of_its_own(body: str, extractor: Extractor, tmp_path: Path) -> None:
    path = write_scan(tmp_path / "scan.pdf", ["x"])
    with pytest.raises(IngestError) as caught:
        Tesseract(str(fake_tesseract(tmp_path, "x", body=body)), "eng").read(extractor.picture(path, 0))
    assert caught.value.reason == "internal"


def test_a_program_that_is_gone_is_an_error_of_its_own(extractor: Extractor, tmp_path: Path) -> None:
    picture = extractor.picture(write_scan(tmp_path / "scan.pdf", ["x"]), 0)
    with pytest.raises(IngestError):
        Tesseract(str(tmp_path / "nowhere"), "eng").read(picture)
    assert installed_languages(str(tmp_path / "nowhere")) == ()


def test_the_languages_of_the_setting_are_read_where_they_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_tesseract(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_tesseract("on") == Tesseract(str(program), "eng")
    assert find_tesseract("deu+fra+eng") == Tesseract(str(program), "deu+eng")
    assert find_tesseract("fra") is None


def test_a_machine_without_the_program_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tesseract("on") is None


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed on this machine")
def test_the_real_program_reads_the_real_picture(extractor: Extractor, tmp_path: Path) -> None:
    reader = find_tesseract("on")
    assert reader is not None
    picture = extractor.picture(write_scan(tmp_path / "scan.pdf", ["HARDWARE STORE\nReceipt 2025-0417"]), 0)
    assert [line.text for line in reader.read(picture).lines] == ["HARDWARE STORE", "Receipt 2025-0417"]
