"""What the library and the reader say of a document's page: where it is, how old it is, what went wrong. Pure.

Every string comes from the catalog that is passed in. Used by `app.web.library_rows`, `app.web.web_pages` and the
reader.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from app.catalog import Catalog
from app.store.documents import DocumentRow
from app.store.web_pages import PageRow, Refresh

CHOICES: tuple[Refresh, ...] = get_args(Refresh)


@dataclass(frozen=True, slots=True)
class PageView:
    """A page beside its document; all empty for one that has none.

    `note` is how old it is, `reason` what is wrong with it, `status` replaces the document's own where that would be
    less. `state` differs whenever what is shown of work in progress does.
    """

    address: str = ""
    note: str = ""
    reason: str = ""
    status: str = ""
    every: Refresh = "off"
    working: bool = False
    state: str = ""


NO_PAGE = PageView()


def page_view(
    row: DocumentRow, page: PageRow | None, catalog: Catalog, now: datetime, *, limit_mb: int, fetching: bool
) -> PageView:
    """A document's page; `fetching` while it is being asked for, `limit_mb` is UPLOAD_MAX_MB."""
    if page is None:
        return NO_PAGE
    error = catalog.t(f"errors.ingest_{page.error}", limit=limit_mb) if page.error else ""
    return PageView(
        address=page.url,
        note=_note(page, catalog, now),
        reason=_reason(row, page, error, catalog, now),
        status=catalog.t("webpages.fetching") if fetching and row.status == "queued" else "",
        every=page.refresh,
        working=page.is_checking,
        state=f"-{page.is_checking:d}{fetching:d}{page.error or ''}",
    )


def ago(moment: datetime, now: datetime, catalog: Catalog) -> str:
    """ "just now", "5 min ago", "2 h ago", "3 days ago"."""
    minutes = max(0, int((now - moment).total_seconds() // 60))
    if minutes == 0:
        return catalog.t("webpages.ago_now")
    if minutes < 60:
        return catalog.t("webpages.ago_minutes", n=minutes)
    if minutes < 24 * 60:
        return catalog.t("webpages.ago_hours", n=minutes // 60)
    return catalog.t("webpages.ago_days", n=minutes // (24 * 60))


def _note(page: PageRow, catalog: Catalog, now: datetime) -> str:
    words: list[str] = []
    if page.fetched_at is not None:
        words.append(catalog.t("webpages.fetched", ago=ago(page.fetched_at, now, catalog)))
        if page.is_checking:
            words.append(catalog.t("webpages.checking"))
        elif page.checked_at is not None and page.checked_at > page.fetched_at and page.gone_at is None:
            words.append(catalog.t("webpages.unchanged", ago=ago(page.checked_at, now, catalog)))
    if page.refresh != "off":
        words.append(catalog.t(f"webpages.every_{page.refresh}_note"))
    return " · ".join(words)


def _reason(row: DocumentRow, page: PageRow, error: str, catalog: Catalog, now: datetime) -> str:
    """Empty where the document's own reason says it: nothing of the page is here then."""
    if not error or row.status == "failed":
        return ""
    if page.is_checking:
        return catalog.t("webpages.trying", reason=error)
    if page.gone_at is not None:
        return catalog.t("webpages.gone", ago=ago(page.gone_at, now, catalog))
    return catalog.t("webpages.kept", reason=error)
