"""What a document's row says of pictures among its pages: badges, how far recognising is, what can be done. Pure.

Used by `app.web.library_rows`.
"""

from dataclasses import dataclass
from typing import Literal

from app.catalog import Catalog
from app.ingest.progress import Stage
from app.store.documents import DocumentRow
from app.store.readings import NO_TEXT, ReadingRow


@dataclass(frozen=True, slots=True)
class OcrView:
    """`badges` are facts. `words` is a sentence beside the reason, empty where there is nothing to say; `offer` whether
    the pictures can be asked to be read; `working` whether that is going on; `state` changes with all of these.
    `instead`: a file of nothing but pictures that is being read has not failed, it waits or is read; `words` is its
    status then."""

    badges: tuple[str, ...] = ()
    words: str = ""
    offer: bool = False
    working: bool = False
    state: str = ""
    instead: Literal["queued", "parsing"] | None = None


NO_PICTURES = OcrView()


def ocr_view(
    row: DocumentRow, reading: ReadingRow, catalog: Catalog, *, available: bool, stage: Stage | None
) -> OcrView:
    """The view of a row; `available` is whether the machine can recognise text at all."""
    badges = _badges(row, reading, catalog)
    if reading.ocr == "asked":
        has_failed = row.status == "failed"
        words, is_read = _progress(reading, stage, catalog, "library.status_ocr" if has_failed else "library.ocr")
        instead = ("parsing" if is_read else "queued") if has_failed else None
        return OcrView(badges, words, working=True, state=_state(reading, stage), instead=instead)
    if not _has_pictures(row):
        return OcrView(badges)
    if not available:
        return OcrView(badges, catalog.t("library.ocr_missing"))
    tried = {"done": "library.ocr_wordless", "failed": "library.ocr_failed"}.get(reading.ocr or "")
    return OcrView(badges, catalog.t(tried) if tried else "", offer=True)


def _has_pictures(row: DocumentRow) -> bool:
    """Whether a page without text may hold a picture of one: PDFs only."""
    if row.status == "failed":
        return row.error == NO_TEXT and row.path.lower().endswith(".pdf")
    return bool(row.empty_pages) and row.mime == "application/pdf"


def _badges(row: DocumentRow, reading: ReadingRow, catalog: Catalog) -> tuple[str, ...]:
    badges: list[str] = []
    if row.status != "failed" and row.pages and row.empty_pages:
        badges.append(catalog.t("library.badge_pages", read=row.pages - len(row.empty_pages), pages=row.pages))
    if reading.words and row.status != "failed":
        badges.append(catalog.t("library.badge_ocr"))
    if reading.cut:
        badges.append(catalog.t("library.badge_cut"))
    return tuple(badges)


def _progress(reading: ReadingRow, stage: Stage | None, catalog: Catalog, key: str) -> tuple[str, bool]:
    """How far it is, in words whose keys begin with `key`, and whether it has begun."""
    if stage is not None and stage.name == "recognising" and stage.page and stage.pages:
        return catalog.t(f"{key}_page", page=stage.page, pages=stage.pages), True
    if reading.recognised:
        return catalog.t(f"{key}_so_far", n=reading.recognised), True
    return catalog.t(f"{key}_waiting"), False


def _state(reading: ReadingRow, stage: Stage | None) -> str:
    return f"-ocr{reading.recognised}-{stage.page or 0 if stage else 0}"
