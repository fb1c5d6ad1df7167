"""What a row says of a document's page: its age, what is going on, what went wrong."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.catalog import load_catalog
from app.ingest.fetch_errors import REASONS
from app.store.documents import DocumentRow
from app.store.web_pages import PageRow
from app.web.web_page_view import NO_PAGE, PageView, ago, page_view

CATALOG = load_catalog()
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
PAGE = PageRow(
    document_id=1,
    url="https://example.org/guide",
    final_url="https://example.org/guide",
    fetched_at=NOW - timedelta(hours=2, minutes=59),
    checked_at=NOW - timedelta(hours=2, minutes=59),
    refresh="off",
    next_check_at=None,
    gone_at=None,
    error=None,
    is_checking=False,
)
ROW = DocumentRow(
    *(1, 1, "Library", "url", "example.org/guide", "Guide", "text/html", "", 10, None, None, (), "ready", None),
    *(1, 1, NOW, NOW, NOW),
)


def _view(row: DocumentRow = ROW, *, fetching: bool = False, **changes: Any) -> PageView:
    return page_view(row, replace(PAGE, **changes), CATALOG, NOW, limit_mb=200, fetching=fetching)


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=2), "2 h ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (DAY, "1 day ago"),
        (20 * DAY, "20 days ago"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(age: timedelta, words: str) -> None:
    """A clock that runs a little ahead counts as now."""
    assert ago(NOW - age, NOW, CATALOG) == words


def test_a_page_says_how_old_it_is_and_when_it_was_last_the_same() -> None:
    """And how often it is looked at by itself."""
    assert _view().note == "Fetched 2 h ago"
    looked_at = _view(checked_at=NOW - timedelta(minutes=5), refresh="weekly")
    assert looked_at.note == "Fetched 2 h ago · unchanged 5 min ago · again every week"
    assert _view(is_checking=True).note == "Fetched 2 h ago · being fetched again"
    assert (_view(is_checking=True).working, _view().working) == (True, False)
    assert _view(fetched_at=None, checked_at=None).note == ""


def test_what_went_wrong_stands_beside_what_is_kept() -> None:
    """A document that failed says it itself; one that is there says what is kept, or that another try follows."""
    assert _view(error="fetch_timeout").reason == "The server didn't answer in time. What was read before is kept."
    trying = _view(error="fetch_timeout", is_checking=True)
    assert trying.reason == "The server didn't answer in time. It is tried again."
    gone = _view(error="fetch_not_found", gone_at=NOW - DAY, checked_at=NOW)
    assert gone.reason == "The server has no such page any more (noticed 1 day ago). What was read is kept."
    assert gone.note == "Fetched 2 h ago"
    assert _view(replace(ROW, status="failed", error="fetch_timeout"), error="fetch_timeout").reason == ""


def test_a_first_fetch_is_a_status_of_its_own() -> None:
    """Before anything came the document waits; while it is asked for, it says so. Every change changes the state."""
    waiting = replace(ROW, status="queued")
    assert _view(waiting, fetched_at=None, is_checking=True).status == ""
    assert _view(waiting, fetched_at=None, is_checking=True, fetching=True).status == "Fetching"
    states = [_view(), _view(is_checking=True), _view(is_checking=True, fetching=True), _view(error="fetch_tls")]
    assert len({view.state for view in states}) == 4


def test_a_document_without_an_address_says_nothing() -> None:
    """An upload's row is as it was."""
    assert page_view(ROW, None, CATALOG, NOW, limit_mb=200, fetching=False) == NO_PAGE


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_has_its_sentence(reason: str) -> None:
    """Of its own, not the one for whatever is unknown."""
    assert _view(error=reason).reason.endswith(" What was read before is kept.")
