"""Web pages as documents: fetched, read, fetched again, kept when they are gone."""

import gzip
from datetime import timedelta

import pytest

from app.errors import InvalidInputError, NotFoundError
from app.settings import Settings
from app.store.models.library import Job
from app.store.models.vectors import Vector
from app.store.web_pages import Refresh
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import CountingEmbedder, count, found
from tests.integration.web_library import add, allowing, make_due, page_of, quick, refresh
from tests.page_server import Page, Raw, article, endless, moved, serving_pages, silent, written
from tests.waiting import until

LONG = "The harbour has a crane that lifts boats out of the water before the first storms of the winter. " * 3


def test_a_page_becomes_a_document(settings: Settings) -> None:
    """Named by its address, titled by its content, without its furniture; its bytes are kept as they came."""
    with (
        serving_pages({"/guide/crane": Page(article("The crane", LONG), etag='"1"')}) as server,
        IngestLibrary(allowing(settings)).start() as library,
    ):
        (number,) = add(library, f"{server.url}/guide/crane#how")
        row, page = library.row(number), page_of(library, number)
        assert (row.source, row.status, row.title) == ("url", "ready", "The crane")
        assert row.path == f"127.0.0.1:{server.port}/guide/crane"
        assert (page.url, page.final_url, page.error) == (f"{server.url}/guide/crane",) * 2 + (None,)
        assert page.fetched_at == page.checked_at is not None
        assert found(library, "harbour") == {number}
        assert found(library, "never") == set()
        with library.sources.opened(USER, number) as (name, file):
            assert (name, file.read()) == ("crane", article("The crane", LONG).encode())
        assert [path for path, _ in server.seen] == ["/guide/crane"]
        assert_sound(library)


def test_what_a_page_is_decides_its_bytes(settings: Settings) -> None:
    """Not what the server calls it, nor the ending of its address."""
    pages = {
        "/index.php?title=Crane": Page(article("Called PHP", LONG), kind="application/x-php"),
        "/notes.md": Page("# Called a picture\n\n" + LONG, kind="image/png"),
        "/picture": Page(b"\x89PNG\r\n\x1a\n" + bytes(500), kind="text/html"),
        "/packed": Page(gzip.compress(article("Packed", LONG).encode()), headers={"content-encoding": "gzip"}),
        "/empty": Page(""),
    }
    with serving_pages(pages) as server, IngestLibrary(allowing(settings)).start() as library:
        ids = add(library, *(server.url + path for path in pages))
        rows = [library.row(number) for number in ids]
        assert [row.title for row in rows][:2] == ["Called PHP", "Called a picture"]
        assert [row.mime for row in rows][:2] == ["text/html", "text/markdown"]
        assert [row.error for row in rows] == [None, None, "unsupported", None, "empty"]
        assert rows[3].title == "Packed"
        assert_sound(library)


def test_a_page_that_is_the_same_costs_nothing(settings: Settings) -> None:
    """Neither said by the server (304), nor found by comparing: nothing is read, nothing is embedded."""
    pages = {"/tagged": Page(article("Tagged", LONG), etag='"1"'), "/plain": Page(article("Plain", LONG))}
    embedder = CountingEmbedder()
    with serving_pages(pages) as server, IngestLibrary(allowing(settings), embedder=embedder).start() as library:
        ids = add(library, *(server.url + path for path in pages))
        texts, before = len(embedder.texts), [library.row(number) for number in ids]
        for number in ids:
            was, now = page_of(library, number), refresh(library, number)
            assert now.fetched_at == was.fetched_at
            assert now.checked_at is not None
            assert was.checked_at is not None
            assert now.checked_at > was.checked_at
        assert [library.row(number) for number in ids] == before
        assert len(embedder.texts) == texts
        assert server.asked("/tagged")[1]["if-none-match"] == '"1"'
        assert len(server.asked("/plain")) == 2
        assert_sound(library)


def test_of_a_page_that_changed_only_what_changed_is_embedded(settings: Settings) -> None:
    """What it held stays findable until the new text is in; its old bytes go."""
    parts = [f"<h2>Part {name}</h2><p>{name} {LONG}</p>" for name in ("anchor", "buoy", "chain")]
    embedder = CountingEmbedder()
    with (
        serving_pages({"/": Page(article("Parts", *parts), etag='"1"')}) as server,
        IngestLibrary(allowing(settings), embedder=embedder).start() as library,
    ):
        (number,) = add(library, server.url)
        chunks, texts = library.row(number).chunks, len(embedder.texts)
        assert chunks == texts
        parts[1] = parts[1].replace("buoy", "beacon")
        server.pages["/"] = Page(article("Parts", *parts), etag='"2"')
        page = refresh(library, number)
        assert len(embedder.texts) == texts + 1
        assert (library.row(number).chunks, count(library, Vector)) == (chunks, chunks)
        assert (found(library, "beacon"), found(library, "buoy")) == ({number}, set())
        assert page.fetched_at == page.checked_at
        assert_sound(library)


def test_a_page_that_is_gone_is_marked_and_kept(settings: Settings) -> None:
    """A server's 404 takes nothing out of the library; when the page is there again the mark goes."""
    with (
        serving_pages({"/": Page(article("Kept", LONG))}) as server,
        IngestLibrary(allowing(settings)).start() as library,
    ):
        (number,) = add(library, server.url)
        for status in (404, 410):
            server.pages["/"] = Page("gone", status)
            page = refresh(library, number)
            assert page.error == "fetch_not_found"
            assert page.gone_at is not None
            assert library.row(number).status == "ready"
            assert found(library, "harbour") == {number}
        server.pages["/"] = Page(article("Kept", LONG))
        page = refresh(library, number)
        assert (page.gone_at, page.error) == (None, None)
        assert_sound(library)


def test_a_page_that_turns_into_something_else_keeps_its_text(settings: Settings) -> None:
    """An archive, nothing at all, a broken PDF: the reason stands beside the text, until the page can be read again."""
    with (
        serving_pages({"/": Page(article("Kept", LONG))}) as server,
        IngestLibrary(allowing(settings)).start() as library,
    ):
        (number,) = add(library, server.url)
        for body, reason in ((b"PK\x03\x04" + bytes(40), "unsupported"), (b"%PDF-1.4 broken", "corrupt")):
            server.pages["/"] = Page(body)
            for _ in range(2):  # the same bytes again are still unread
                page = refresh(library, number)
                library.settle()
                assert page_of(library, number).error == reason
                assert library.row(number).status == "ready"
                assert found(library, "harbour") == {number}
        server.pages["/"] = Page(article("Kept", LONG.replace("harbour", "anchorage")))
        page = refresh(library, number)
        assert (page.error, found(library, "harbour"), found(library, "anchorage")) == (None, set(), {number})
        assert_sound(library)


def test_what_fails_for_a_moment_is_tried_again(settings: Settings) -> None:
    """Three times in all; a page that comes with the second try is as good as any."""
    with serving_pages({"/": Page("later", 503, headers={"retry-after": "0"})}) as server:
        with IngestLibrary(allowing(settings), fetching=quick(0.3)).start() as library:
            library.pages.add(USER, [server.url])
            until(lambda: len(server.seen) == 1, "the first try")
            until(lambda: library.rows()[0].status == "queued" and page_of(library, 1).error is not None, "noted")
            assert page_of(library, 1).is_checking
            server.pages["/"] = Page(article("At last", LONG))
            library.settle()
            assert library.row(1).status == "ready"
            assert page_of(library, 1).error is None
            assert len(server.seen) == 2
        server.pages["/never"] = Page("no", 500)
        with IngestLibrary(allowing(settings), fetching=quick()).start() as library:
            (number,) = add(library, f"{server.url}/never")
            assert (library.row(number).status, library.row(number).error) == ("failed", "fetch_server")
            assert len(server.asked("/never")) == 3
            assert_sound(library)


UNUSABLE: dict[str, tuple[Page | Raw, str]] = {
    "/missing": (Page("no", 404), "fetch_not_found"),
    "/forbidden": (Page("no", 403), "fetch_denied"),
    "/inside": (moved("http://10.0.0.1/"), "fetch_private"),
    "/file": (moved("file:///etc/passwd"), "fetch_scheme"),
    "/circle": (moved("/circle"), "fetch_redirects"),
    "/large": (Page(b"x" * 300_001), "fetch_too_large"),
    "/endless": (endless, "fetch_too_large"),
    "/bomb": (Page(gzip.compress(bytes(50_000_000)), headers={"content-encoding": "gzip"}), "fetch_too_large"),
    "/odd": (Page("x", headers={"content-encoding": "br"}), "fetch_encoding"),
    "/silent": (silent, "fetch_timeout"),
    "/cut": (written(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"), "fetch_broken"),
}


def test_pages_that_can_not_be_had_say_why(settings: Settings) -> None:
    """Each stands in the library as failed, with nothing half-fetched left on disk, and can be removed."""
    pages = {path: page for path, (page, _) in UNUSABLE.items()}
    with serving_pages(pages) as server, IngestLibrary(allowing(settings), fetching=quick()).start() as library:
        ids = add(library, *(server.url + path for path in pages))
        rows = [library.row(number) for number in ids]
        assert [row.error for row in rows] == [reason for _, reason in UNUSABLE.values()]
        assert {row.status for row in rows} == {"failed"}
        assert [page_of(library, row.id).error for row in rows] == [row.error for row in rows]
        with pytest.raises(NotFoundError, match="document_file_gone"), library.sources.opened(USER, ids[0]):
            pass
        assert_sound(library)
        for number in ids:
            library.sources.delete_document(USER, number)
        assert library.rows() == []
        assert count(library, Job) == 0
        assert_sound(library)


def test_a_failed_page_is_fetched_again_when_asked(settings: Settings) -> None:
    """By "Try again", and by adding its address once more; bytes that can't be read are fetched anew, too."""
    with (
        serving_pages({"/": Page("no", 404), "/b": Page(b"\0\1\2" * 50)}) as server,
        IngestLibrary(allowing(settings)).start() as library,
    ):
        first, second = add(library, server.url, f"{server.url}/b")
        assert [library.row(number).error for number in (first, second)] == ["fetch_not_found", "unsupported"]
        server.pages["/"] = server.pages["/b"] = Page(article("Here", LONG), etag='"1"')
        library.sources.retry(USER, first)
        assert library.pages.add(USER, [f"{server.url}/b/"])[0].document_id == second
        library.settle()
        assert [library.row(number).status for number in (first, second)] == ["ready", "ready"]
        assert_sound(library)


def test_addresses_that_are_known_are_linked(settings: Settings) -> None:
    """The same page by another spelling, twice in one request, or from before; the same content is stored once."""
    page = Page(article("Same", LONG))
    with (
        serving_pages({"/": page, "/copy": page, "/a/": page}) as server,
        IngestLibrary(allowing(settings)).start() as library,
    ):
        (first,) = add(library, server.url)
        spellings = [f"{server.url}/", f"{server.url}#top", f"{server.url}/copy", f"{server.url}/copy/"]
        added = library.pages.add(USER, spellings)
        library.settle()
        assert [item.outcome for item in added] == ["unchanged", "unchanged", "added", "added"]
        assert added[0].document_id == added[1].document_id == first
        assert added[2].document_id == added[3].document_id
        assert len(library.stored_files()) == 1
        assert len(server.asked("/")) == 1
        library.sources.delete_document(USER, first)
        assert len(library.stored_files()) == 1
        assert found(library, "harbour") == {added[2].document_id}
        assert_sound(library)


def test_what_is_refused_at_once_makes_no_document(settings: Settings) -> None:
    """Each address has its own answer; a request with none, or far too many, is none."""
    with IngestLibrary(settings) as library:
        added = library.pages.add(USER, ["file:///etc/passwd", "http://10.1.1.1/", "http://8.8.8.8:22/", "example.org"])
        reasons = [item.error and item.error.code for item in added]
        assert reasons == ["ingest_fetch_scheme", "ingest_fetch_private", "ingest_fetch_port", None]
        assert library.paths() == ["example.org"]
        with pytest.raises(InvalidInputError, match="pages_none"):
            library.pages.add(USER, [])
        with pytest.raises(InvalidInputError, match="pages_too_many"):
            library.pages.add(USER, ["example.org"] * 101)
        with pytest.raises(NotFoundError):
            library.pages.add(USER, ["example.org"], 999)


def test_pages_are_looked_at_again_by_themselves_when_that_is_chosen(settings: Settings) -> None:
    """Daily or weekly; off is the beginning, and asks nothing."""
    with serving_pages({"/": Page(article("Old", LONG))}) as server:
        with IngestLibrary(allowing(settings)).start() as library:
            (number,) = add(library, server.url)
            assert page_of(library, number).next_check_at is None
            choices: tuple[tuple[Refresh, int], ...] = (("weekly", 7), ("daily", 1))
            for every, days in choices:
                library.pages.set_refresh(USER, number, every)
                page = page_of(library, number)
                assert page.checked_at is not None
                assert page.next_check_at == page.checked_at + timedelta(days=days)
            make_due(library, number)
        server.pages["/"] = Page(article("New", LONG))
        with IngestLibrary(allowing(settings)).start() as library:
            until(lambda: library.row(number).title == "New", "the page was looked at by itself")
            library.settle()
            page = page_of(library, number)
            assert page.checked_at is not None
            assert page.next_check_at == page.checked_at + timedelta(days=1)
            server.pages["/"] = Page("no", 404)
            make_due(library, number)
        with IngestLibrary(allowing(settings)).start() as library:
            until(lambda: page_of(library, number).gone_at is not None, "looked at again")
            next_check = page_of(library, number).next_check_at
            assert next_check is not None
            assert next_check > library.clock.now()
            library.pages.set_refresh(USER, number, "off")
            assert page_of(library, number).next_check_at is None
            assert library.pages.refresh_all(USER) == 1
