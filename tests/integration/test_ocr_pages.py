"""What the library says of scans: facts as badges, what can be done, how far it is."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.catalog import load_catalog
from app.ingest.progress import Stage
from app.settings import Settings
from app.store.documents import DocumentRow
from app.store.readings import ReadingRow
from app.web.library_view import file_row
from app.web.ocr_view import OcrView, ocr_view
from tests.library_api import documents, serving, settle, upload
from tests.scanned_pdf import fake_tesseract, write_scan
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNREAD = ReadingRow()


DOCUMENT = DocumentRow(
    id=1,
    collection_id=1,
    collection="Library",
    source="upload",
    path="a.pdf",
    title="A",
    mime="application/pdf",
    sha256="0",
    bytes=1,
    encoding=None,
    pages=5,
    empty_pages=(3,),
    status="ready",
    error=None,
    chunks=4,
    embedded=4,
    created_at=NOW,
    updated_at=NOW,
    indexed_at=NOW,
)


def document(**values: Any) -> DocumentRow:
    return replace(DOCUMENT, **values)


def view(row: DocumentRow, reading: ReadingRow = UNREAD, *, available: bool = True, at: Stage | None = None) -> OcrView:
    return ocr_view(row, reading, load_catalog(), available=available, stage=at)


def test_pages_that_are_pictures_are_counted_and_can_be_read() -> None:
    assert view(document()) == OcrView(badges=("4 of 5 pages",), offer=True)


def test_a_file_of_pictures_only_can_be_read_too() -> None:
    failed = document(status="failed", error="no_text", mime="", pages=None, empty_pages=())
    assert view(failed).offer
    assert not view(document(status="failed", error="no_text", path="a.docx", empty_pages=())).offer
    assert not view(document(status="failed", error="encrypted", empty_pages=())).offer


def test_a_machine_without_the_program_says_what_is_missing() -> None:
    shown = view(document(), available=False)
    assert (shown.offer, shown.words) == (False, "The program tesseract would read it; it is not installed.")


@pytest.mark.parametrize(
    ("reading", "stage", "words"),
    [
        (ReadingRow("asked"), None, "Waiting to be read with OCR."),
        (ReadingRow("asked", recognised=2), None, "Reading with OCR, 2 pages so far."),
        (ReadingRow("asked"), Stage("recognising", 3, 9), "Reading with OCR, page 3 of 9."),
    ],
)
def test_work_says_how_far_it_is(reading: ReadingRow, stage: Stage | None, words: str) -> None:
    shown = view(document(), reading, at=stage)
    assert (shown.words, shown.working, shown.offer) == (words, True, False)


@pytest.mark.parametrize(
    ("stage", "status", "words"),
    [
        (None, "queued", "Waiting to be read with OCR"),
        (Stage("recognising", 1, 2), "parsing", "Reading with OCR, page 1 of 2"),
    ],
)
def test_a_file_of_pictures_that_is_being_read_has_not_failed(stage: Stage | None, status: str, words: str) -> None:
    """Its status says what is done, in place of the failure, its reason and another try of what can't work."""
    failed = document(status="failed", error="no_text", mime="", pages=None, empty_pages=(), chunks=0)
    catalog = load_catalog()
    ocr = ocr_view(failed, ReadingRow("asked"), catalog, available=True, stage=stage)
    row = file_row(failed, catalog, NOW, upload_max_mb=1, stage=stage, ocr=ocr)
    assert (row.status, row.words, row.working, row.retry) == (status, words, True, False)
    assert (row.reason, row.ocr.words, row.ocr.offer) == ("", "", False)
    shown = file_row(failed, catalog, NOW, upload_max_mb=1, ocr=view(failed))
    assert (shown.status, shown.retry, shown.ocr.offer) == ("failed", True, True)


def test_every_step_of_the_work_changes_the_row() -> None:
    steps = [Stage("recognising", page, 9) for page in (1, 2)]
    assert len({view(document(), ReadingRow("asked"), at=step).state for step in steps}) == 2


@pytest.mark.parametrize(
    ("state", "words"), [("done", "OCR found no words there."), ("failed", "OCR could not read it.")]
)
def test_what_did_not_help_is_said_and_may_be_tried_again(state: str, words: str) -> None:
    shown = view(document(), ReadingRow(state))  # type: ignore[arg-type]
    assert (shown.words, shown.offer) == (words, True)


def test_a_text_that_was_recognised_wears_a_badge() -> None:
    assert view(document(empty_pages=()), ReadingRow("done", 2, 2)) == OcrView(badges=("OCR",))


def test_a_table_that_was_cut_wears_a_badge() -> None:
    assert view(document(empty_pages=()), ReadingRow(cut=True)).badges == ("Cut",)


def test_a_scan_is_read_from_the_page(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload, the offer beside the reason, the words found; by form and by API."""
    content = write_scan(tmp_path / "a.pdf", ["x"]).read_bytes()
    fake_tesseract(tmp_path, "boiler")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with serving(settings) as client:
        upload(client, ("a.pdf", content), ("b.pdf", content))
        settle(client)
        page = client.get("/library").text
        assert page.count("Read it with OCR") == 2
        second, first = sorted(row["id"] for row in documents(client))
        assert f'action="/ui/documents/{first}/ocr?back=reader"' in client.get(f"/documents/{first}").text
        row = client.post(f"/ui/documents/{first}/ocr", headers={"HX-Request": "true"})
        assert "with OCR" in row.text
        assert row.headers["HX-Trigger"] == "library-work"
        assert client.post(f"/api/documents/{second}/ocr").status_code == 202
        until(lambda: [row["status"] for row in documents(client)] == ["ready", "ready"], "both scans read", 30)
        assert 'class="badge">OCR<' in client.get("/library").text
        plain = client.post(f"/ui/documents/{first}/ocr", follow_redirects=False)
        assert (plain.status_code, plain.headers["location"]) == (303, "/library")
        assert client.post("/api/documents/999/ocr").status_code == 404
