"""Web pages and a worker that stops, dies or meets a fault; documents that are removed meanwhile."""

import socket
import threading

import pytest

from app.errors import NotFoundError
from app.ingest.egress import Fetched, Order
from app.ingest.fetch_work import Fetching
from app.settings import Settings
from app.store import jobs
from app.store.engine import Session
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import found
from tests.integration.web_library import add, allowing, page_of, quick
from tests.page_server import Page, article, dripping, serving_pages, written
from tests.waiting import until

LONG = "The harbour has a crane that lifts boats out of the water before the first storms of the winter. " * 3


def test_a_stop_puts_a_page_back_and_the_next_life_fetches_it(settings: Settings) -> None:
    """A fetch that is going on ends at once, and is not charged to the page."""
    with serving_pages({"/": dripping}) as server:
        with IngestLibrary(allowing(settings)).start() as library:
            library.pages.add(USER, [server.url])
            until(lambda: library.worker.progress(1) is not None, "it is being fetched")
            assert library.worker.stop()
            assert library.temp_files() == []
        server.pages["/"] = Page(article("Later", LONG))
        with IngestLibrary(allowing(settings)).start() as library:
            library.settle()
            assert library.row(1).title == "Later"
            assert_sound(library)


def test_a_page_removed_while_it_is_fetched_stays_away(settings: Settings) -> None:
    """What comes for it then is dropped."""
    going, go = threading.Event(), threading.Event()

    def held(connection: socket.socket, ending: threading.Event) -> None:
        going.set()
        go.wait(20)
        written(b"HTTP/1.1 200 OK\r\n\r\n# Late\n\n" + LONG.encode())(connection, ending)

    with serving_pages({"/": held}) as server, IngestLibrary(allowing(settings)).start() as library:
        library.pages.add(USER, [server.url])
        assert going.wait(20)
        library.sources.delete_document(USER, 1)
        go.set()
        until(lambda: library.worker.progress(1) is None, "the fetch ended")
        library.settle()
        assert library.rows() == []
        until(lambda: library.temp_files() == [], "nothing lies about")
        assert_sound(library)


def test_only_documents_with_an_address_can_be_fetched_again(settings: Settings) -> None:
    """An upload has none, and what is not the user's is not there."""
    with IngestLibrary(settings) as library:
        upload = library.add("a.md", "# A\n\ntext")
        for number, code in ((upload, "document_without_address"), (999, "not_found")):
            with pytest.raises(NotFoundError, match=code):
                library.pages.refresh(USER, number)
            with pytest.raises(NotFoundError, match=code):
                library.pages.set_refresh(USER, number, "daily")
        assert library.pages.refresh_all(USER) == 0


def test_a_page_whose_fetch_never_comes_back_is_given_up(settings: Settings) -> None:
    """Three workers died over it: it fails with a reason instead of being tried for ever. One that was read before is
    kept as it is."""
    with serving_pages({"/": Page(article("Kept", LONG)), "/b": Page(article("B", LONG))}) as server:
        with IngestLibrary(allowing(settings)).start() as library:
            (kept,) = add(library, server.url)
        with IngestLibrary(allowing(settings)) as library:
            new = library.pages.add(USER, [f"{server.url}/b"])[0].document_id
            assert new is not None
            library.pages.refresh(USER, kept)

            def die(session: Session) -> None:
                for _ in range(jobs.MAX_ATTEMPTS):
                    for _ in jobs.claim(session, "fetch", 1, -1, library.clock.now()):
                        pass

            for _ in range(2):
                library.database.write(die)
            library.start()
            library.settle()
            assert (library.row(new).status, library.row(new).error) == ("failed", "fetch_internal")
            assert (library.row(kept).status, page_of(library, kept).error) == ("ready", "fetch_internal")
            assert len(server.seen) == 1
            assert_sound(library)


class _Broken:
    """An egress with a fault of its own, then a full disk."""

    def __init__(self) -> None:
        self.faults: list[Exception] = [RuntimeError("a fault"), OSError(28, "No space left on device"), ValueError()]

    def fetch(self, order: Order) -> Fetched:
        order.write(b"half a page")
        raise self.faults.pop(0)


def test_a_fault_of_docents_own_is_the_pages_alone(settings: Settings) -> None:
    """It is tried again, and the library goes on; what was half-written is gone."""
    broken = _Broken()
    with IngestLibrary(settings, fetching=Fetching(broken, 0.01)).start() as library:  # pyright: ignore[reportArgumentType] - it has what is used
        (number,) = add(library, "https://example.org/")
        assert broken.faults == []
        assert (library.row(number).status, library.row(number).error) == ("failed", "fetch_internal")
        assert library.worker.is_idle()
        assert_sound(library)


def test_a_page_removed_before_its_turn_is_not_asked_for(settings: Settings) -> None:
    """A collection that is being removed, and a document that is gone: no request is made."""
    with serving_pages({"/": Page(article("Never", LONG))}) as server, IngestLibrary(allowing(settings)) as library:
        (item,) = library.pages.add(USER, [server.url])
        assert item.document_id is not None
        library.sources.delete_document(USER, item.document_id)
        library.start()
        library.settle()
        assert server.seen == []
        assert found(library, "harbour") == set()
        assert_sound(library)


def test_a_busy_server_is_left_alone_for_as_long_as_it_says(settings: Settings) -> None:
    """Its Retry-After wins over the usual wait."""
    page = Page("later", 429, headers={"retry-after": "200"})
    with serving_pages({"/": page}) as server, IngestLibrary(allowing(settings), fetching=quick()).start() as library:
        library.pages.add(USER, [server.url])
        until(lambda: bool(server.seen) and page_of(library, 1).error == "fetch_busy", "the first try")
        due = library.database.read(lambda session: jobs.next_due(session, "fetch", library.clock.now()))
        assert due is not None
        assert 150 < due <= 200
        server.pages["/"] = Page(article("Now", LONG))
        library.pages.refresh(USER, 1)
        library.settle()
        assert library.row(1).status == "ready"
