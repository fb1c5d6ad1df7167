"""In which encoding a fetched page is read: its own mark, what the server says, what the page says, what fits."""

import codecs

import pytest

from app.settings import Settings
from app.store import intake, jobs
from app.store.engine import Session
from tests.ingest_library import IngestLibrary, assert_sound
from tests.ingest_parts import found
from tests.integration.egress_kit import fetch, local
from tests.integration.web_library import add, allowing, quick, refresh
from tests.page_server import Page, article, serving_pages

POLISH = "Żuraw portowy podnosi łodzie z wody przed pierwszą burzą zimową, a żeglarze mu za to dziękują. " * 4
META = '<!doctype html><html><head><meta charset="{}"><title>Port</title></head><body><h1>Port</h1><p>{}</p></body>'


def html(said: str, words: str = POLISH) -> str:
    """A page that says which encoding it is in."""
    return META.format(said, words)


@pytest.mark.parametrize(
    ("body", "kind", "encoding"),
    [
        (article("Port", POLISH).encode("iso-8859-2"), "text/html; charset=ISO-8859-2", "iso-8859-2"),
        (html("utf-8").encode("cp1250"), 'text/html;Charset="windows-1250"', "windows-1250"),
        (html("windows-1250").encode("iso-8859-2"), "text/html; x=y; charset = iso-8859-2 ", "iso-8859-2"),
        (codecs.BOM_UTF8 + html("iso-8859-2").encode(), "text/html; charset=cp1250", "utf-8"),
        (html("windows-1250").encode("cp1250"), "text/html; charset=utf-8", "windows-1250"),
        (html("windows-1250").encode("cp1250"), "text/html; charset=none-such", "windows-1250"),
        (html("windows-1250").encode("cp1250"), "text/html", "windows-1250"),
        (POLISH.encode("iso-8859-2"), "text/plain; charset=iso-8859-2", "iso-8859-2"),
        (f"# Port\n\n{POLISH}".encode("cp1250"), "text/markdown; charset=windows-1250", "windows-1250"),
        (f"dźwig,łódź\n{POLISH},1\n".encode("cp1250"), "text/csv; charset=windows-1250", "windows-1250"),
    ],
)
def test_mark_server_page_and_guess_count_in_this_order(
    settings: Settings, body: bytes, kind: str, encoding: str
) -> None:
    """One that the bytes don't fit is passed over."""
    path = {"text/csv": "/port.csv", "text/markdown": "/port.md"}.get(kind.partition(";")[0], "/port")
    with (
        serving_pages({path: Page(body, kind=kind)}) as server,
        IngestLibrary(allowing(settings), fetching=quick()).start() as library,
    ):
        (number,) = add(library, server.url + path)
        assert library.row(number).encoding == encoding
        assert found(library, "żuraw") == {number}
        assert_sound(library)


def test_what_a_server_calls_no_text_is_nothing() -> None:
    """No charset, one that nobody knows, and what Python would take for one but no browser does."""
    kinds = {
        "text/html": None,
        "text/html; charset=": None,
        "text/html; charset=rot13": None,
        "text/html; charset=unicode_escape": None,
        "text/html; charset=utf-7": None,
        f"text/html; charset={'a' * 50}": None,
        "text/html; charset=x-sjis": "x-sjis",
        "text/html; charset=UTF-8; charset=koi8-r": "utf-8",
    }
    with serving_pages({f"/{n}": Page("words", kind=kind) for n, kind in enumerate(kinds)}) as server:
        assert [fetch(local(), f"{server.url}/{n}")[0].charset for n in range(len(kinds))] == list(kinds.values())


def test_the_servers_word_is_kept_with_the_bytes(settings: Settings) -> None:
    """A page that is read anew, without being fetched, is read as before."""
    page = Page(POLISH.encode("iso-8859-2"), kind="text/plain; charset=iso-8859-2")
    with (
        serving_pages({"/port": page}) as server,
        IngestLibrary(allowing(settings), fetching=quick()).start() as library,
    ):
        (number,) = add(library, f"{server.url}/port")

        def read_anew(session: Session) -> None:
            waiting = [jobs.ingest_job(*document) for document in intake.send_back_all(session)]
            jobs.enqueue(session, waiting, library.clock.now())

        read_at = library.row(number).indexed_at
        library.database.write(read_anew)
        library.worker.wake()
        library.settle()
        assert library.row(number).indexed_at != read_at
        assert (library.row(number).encoding, found(library, "żuraw")) == ("iso-8859-2", {number})
        assert len(server.asked("/port")) == 1


def test_the_same_bytes_under_another_name_are_read_again_once(settings: Settings) -> None:
    """A server that has learned to say what it sends; one that says what can't be is not believed every day."""
    body = POLISH.encode("iso-8859-2")
    with (
        serving_pages({"/port": Page(body, kind="text/plain")}) as server,
        IngestLibrary(allowing(settings), fetching=quick()).start() as library,
    ):
        (number,) = add(library, f"{server.url}/port")
        assert found(library, "żuraw") == set()
        server.pages["/port"] = Page(body, kind="text/plain; charset=iso-8859-2")
        refresh(library, number)
        read_at = library.row(number).indexed_at
        assert found(library, "żuraw") == {number}
        for said in ("iso-8859-2", "utf-8"):
            server.pages["/port"] = Page(body, kind=f"text/plain; charset={said}")
            refresh(library, number)
            assert library.row(number).indexed_at == read_at
