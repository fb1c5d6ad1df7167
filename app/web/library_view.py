"""What the library shows, computed from rows: file rows, the progress box, the counts. Pure.

No database and no request here; every string comes from the catalog that is passed in. Used by `app.web.library`,
`app.web.folders` and `app.web.settings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from app.catalog import Catalog
from app.ingest.progress import Batch, Stage
from app.render.names import plain_name, shown_name
from app.store.documents import Counts, DocumentFilters, DocumentRow
from app.web.ocr_view import NO_PICTURES, OcrView
from app.web.web_page_view import NO_PAGE, PageView

WORKING = ("queued", "parsing", "embedding")


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of the list. `fingerprint` changes whenever what the row shows of work in progress does."""

    id: int
    path: str
    name: str
    title: str
    collection: str
    status: str
    words: str
    passages: str
    size: str
    added: str
    reason: str
    retry: bool
    working: bool
    fingerprint: str
    ocr: OcrView = NO_PICTURES
    page: PageView = NO_PAGE


@dataclass(frozen=True, slots=True)
class Adding:
    """The progress box. `progress` of `total` drives the bar; `left` is empty while no rate is known. `paused`: work is
    left, and rests."""

    title: str
    counts: str
    label: str
    left: str
    note: str
    total: int
    progress: float
    working: bool
    failed: int
    paused: bool = False


def file_row(
    row: DocumentRow,
    catalog: Catalog,
    now: datetime,
    *,
    upload_max_mb: int,
    stage: Stage | None = None,
    ocr: OcrView | None = None,
) -> FileRow:
    """A document as a row of the list; `stage` is where the worker stands in it, while it does."""
    pictures = ocr or NO_PICTURES
    name = shown_name(row.path)
    title = "" if row.title == row.path.rsplit("/", 1)[-1] else shown_name(row.title)
    return FileRow(
        id=row.id,
        path=plain_name(row.path),
        name=name,
        title=title,
        collection=plain_name(row.collection),
        status=pictures.instead or row.status,
        words=pictures.words if pictures.instead else status_words(row, stage, catalog),
        passages=catalog.number(row.chunks) if row.chunks else "–",
        size=catalog.size(row.bytes),
        added=catalog.when(row.created_at, now),
        reason="" if pictures.instead else reason_words(row, catalog, upload_max_mb=upload_max_mb),
        retry=row.status == "failed" and not pictures.instead,
        working=row.status in WORKING or pictures.working,
        fingerprint=fingerprint(row, stage) + pictures.state,
        ocr=replace(pictures, words="") if pictures.instead else pictures,
    )


def fingerprint(row: DocumentRow, stage: Stage | None) -> str:
    """`<id>.<what the row shows of its state>`: the poller sends it back and gets the row only when it changed."""
    page = stage.page or 0 if stage else 0
    return f"{row.id}.{row.status}-{page}-{row.embedded}-{row.chunks}-{row.error or ''}"


def status_words(row: DocumentRow, stage: Stage | None, catalog: Catalog) -> str:
    """The status beside its mark."""
    if row.status == "parsing" and stage is not None and stage.page and stage.pages:
        return catalog.t("library.status_parsing_page", page=stage.page, pages=stage.pages)
    if row.status == "embedding" and row.chunks and not row.error:
        percent = min(99, row.embedded * 100 // row.chunks)
        return catalog.t("library.status_embedding_share", percent=percent)
    return catalog.t(f"library.status_{row.status}")


def reason_words(row: DocumentRow, catalog: Catalog, *, upload_max_mb: int) -> str:
    """Why a file failed, or what is missing of it; empty when there is nothing to say."""
    if row.status == "failed":
        key = f"errors.ingest_{row.error}"
        facts = {"size": catalog.size(row.bytes), "limit_mb": upload_max_mb, "limit": upload_max_mb}
        return catalog.t(key if catalog.has(key) else "errors.ingest_internal", **facts)
    if row.error and catalog.has(f"errors.{row.error}"):
        return catalog.t(f"errors.{row.error}")
    if row.empty_pages and row.pages:
        if len(row.empty_pages) == 1:
            return catalog.t("library.page_empty", page=row.empty_pages[0], pages=row.pages)
        return catalog.t("library.pages_empty", count=len(row.empty_pages), pages=row.pages)
    return ""


def counts_words(counts: Counts, catalog: Catalog) -> str:
    """The line under the page's title."""
    words = [catalog.t("library.documents", n=counts.documents), catalog.t("library.passages", n=counts.passages)]
    if counts.look:
        words.append(catalog.t("library.attention", n=counts.look))
    return " · ".join(words)


def adding(batch: Batch, catalog: Catalog, *, paused: bool = False) -> Adding | None:
    """The box of a batch; None when nothing is in it. `paused`: nothing is done to it until somebody continues."""
    if not batch.total:
        return None
    working = not batch.is_over
    resting = working and paused
    by_words, waiting = batch.searchable + batch.failed - batch.done, batch.total - batch.searchable - batch.failed
    words = [catalog.t("library.ready_count", n=batch.done - batch.failed)]
    for name, number in (("searchable", by_words), ("waiting", waiting), ("failed", batch.failed)):
        if number:
            words.append(catalog.t(f"library.{name}_count", n=number))
    share = batch.embedded / batch.passages if batch.passages else 0.0
    return Adding(
        title=catalog.t(f"library.{_adding_title(working, resting)}", n=batch.total),
        counts=" · ".join(words),
        label=catalog.t("library.progress_label", done=batch.done, total=batch.total),
        left=_left_words(batch.eta_s, catalog) if working and not resting else "",
        note=catalog.t("library.paused_note") if resting else _adding_note(batch, by_words, catalog),
        total=batch.total,
        progress=round(batch.done + by_words * share, 2),
        working=working,
        failed=batch.failed,
        paused=resting,
    )


def page_address(base: str, filters: DocumentFilters, after: str, shown: int) -> str:
    """The address of the list behind `after`, filters kept; `shown` is how many rows stand before it."""
    values = {
        "q": filters.q,
        "collection": filters.collection,
        "status": filters.status,
        "after": after,
        "shown": shown,
    }
    return f"{base}?{urlencode({key: value for key, value in values.items() if value is not None})}"


def _left_words(eta_s: int | None, catalog: Catalog) -> str:
    if eta_s is None:
        return ""
    return catalog.t("library.minutes_left", n=round(eta_s / 60)) if eta_s >= 60 else catalog.t("library.seconds_left")


def _adding_title(working: bool, resting: bool) -> str:
    if resting:
        return "adding_paused"
    return "adding" if working else "added"


def _adding_note(batch: Batch, by_words: int, catalog: Catalog) -> str:
    if batch.is_over:
        return catalog.t("library.some_failed" if batch.failed else "library.all_ready")
    if not by_words or not batch.passages:
        return catalog.t("library.reading_first")
    facts: dict[str, object] = {"embedded": batch.embedded, "total": batch.passages}
    if batch.rate is None:
        return catalog.t("library.words_first", **facts)
    return catalog.t("library.words_first_rate", **facts, rate=max(1, round(batch.rate)))


def statuses() -> Sequence[str]:
    """The choices of the status filter, in order."""
    return ("look", "queued", "parsing", "embedding", "ready", "failed")
