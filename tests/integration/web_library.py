"""A library that fetches from servers on this machine: what tests of web pages act on."""

from datetime import timedelta
from ipaddress import ip_network

from sqlalchemy import update

from app.clock import SystemClock
from app.ingest.egress import Egress, Limits
from app.ingest.fetch_rules import Rules
from app.ingest.fetch_work import Fetching
from app.settings import Settings
from app.store import web_pages
from app.store.models.web_pages import WebPage
from app.store.web_pages import PageRow
from tests.ingest_library import USER, IngestLibrary

LOOPBACK = ip_network("127.0.0.0/8")
QUICK = Limits(max_bytes=300_000, connect_s=5, idle_s=0.3, total_s=5)


def allowing(settings: Settings) -> Settings:
    """Settings under which pages of this machine are fetched."""
    return settings.model_copy(update={"fetch_allow_cidrs": (LOOPBACK,)})


def quick(retry_s: float = 0.01) -> Fetching:
    """Fetching with short clocks, from this machine."""
    return Fetching(Egress(Rules((LOOPBACK,)), QUICK, SystemClock()), retry_s)


def add(library: IngestLibrary, *urls: str) -> list[int]:
    """Adds pages, none of which may be refused, and waits until they are through."""
    added = library.pages.add(USER, urls)
    assert [item.error for item in added] == [None] * len(urls)
    library.settle()
    return [item.document_id for item in added if item.document_id is not None]


def refresh(library: IngestLibrary, document_id: int) -> PageRow:
    """Fetches a page again, and waits until all is settled."""
    library.pages.refresh(USER, document_id)
    library.settle()
    return page_of(library, document_id)


def page_of(library: IngestLibrary, document_id: int) -> PageRow:
    """What is known of a page now."""
    return library.database.read(lambda session: web_pages.get_pages(session, USER, [document_id]))[document_id]


def make_due(library: IngestLibrary, document_id: int) -> None:
    """Lets the time of a page's next check come."""

    def work(session: web_pages.Session) -> None:
        past = library.clock.now() - timedelta(seconds=1)
        session.execute(update(WebPage).where(WebPage.document_id == document_id).values(next_check_at=past))

    library.database.write(work)
