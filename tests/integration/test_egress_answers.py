"""The egress function and what servers answer: whole pages, redirects, refusals, and answers made to hurt."""

import gzip
import ssl
import threading
from collections.abc import Callable

import pytest

from app.clock import SystemClock
from app.ingest.egress import Doors, Egress, Known, Limits, Order
from app.ingest.fetch_address import parse_address
from app.ingest.fetch_errors import FetchError, FetchStoppedError
from app.ingest.fetch_rules import Rules
from app.ingest.fetch_socket import begin_connecting
from tests.integration.egress_kit import LIMITS, LOOPBACK, PUBLIC, fetch, local, refusal
from tests.page_server import CERTIFICATE, Page, dripping, endless, moved, serving_pages, silent, written
from tests.waiting import until


def test_redirects_are_followed_five_times_and_no_more() -> None:
    """Relative and absolute; a circle ends, too."""
    with serving_pages({f"/{n}": moved(f"/{n + 1}") for n in range(6)}) as server:
        server.pages["/5"] = Page("there")
        server.pages["/circle"] = moved(f"{server.url}/circle", 308)
        fetched, body = fetch(local(), f"{server.url}/0")
        assert (body, fetched.final_url) == (b"there", f"{server.url}/5")
        server.pages["/5"] = moved("/6")
        assert refusal(local(), f"{server.url}/0") == "fetch_redirects"
        assert refusal(local(), f"{server.url}/circle") == "fetch_redirects"
        assert len(server.asked("/circle")) == 6


def test_what_is_known_is_asked_about_only_where_it_came_from() -> None:
    """Validators go to the address that gave them, at the end of the redirects, and nowhere else."""
    page = Page("words", etag='"v1"', modified="Tue, 01 Dec 2026 10:00:00 GMT")
    with serving_pages({"/old": moved("/new"), "/new": page}) as server:
        first, _ = fetch(local(), f"{server.url}/old")
        known = Known(first.final_url, first.etag, first.last_modified)
        second, body = fetch(local(), f"{server.url}/old", known)
        assert (first.is_unchanged, second.is_unchanged, body) == (False, True, b"")
        assert (second.etag, second.last_modified) == (page.etag, page.modified)
        assert "if-none-match" not in server.asked("/old")[1]
        assert server.asked("/new")[1]["if-none-match"] == '"v1"'
        server.pages["/new"] = Page("other words", etag='"v2"')
        third, body = fetch(local(), f"{server.url}/old", known)
        assert (third.is_unchanged, third.etag, body) == (False, '"v2"', b"other words")
        server.pages["/new"] = Page(status=304)
        assert refusal(local(), f"{server.url}/old") == "fetch_status"


@pytest.mark.parametrize(
    ("status", "reason", "is_retryable"),
    [
        (404, "fetch_not_found", False),
        (410, "fetch_not_found", False),
        (401, "fetch_denied", False),
        (403, "fetch_denied", False),
        (408, "fetch_timeout", True),
        (429, "fetch_busy", True),
        (503, "fetch_busy", True),
        (500, "fetch_server", True),
        (599, "fetch_server", True),
        (204, "fetch_status", False),
        (206, "fetch_status", False),
        (302, "fetch_status", False),
        (400, "fetch_status", False),
    ],
)
def test_every_refusal_has_its_reason(status: int, reason: str, is_retryable: bool) -> None:
    """And whether it is worth another try."""
    with serving_pages({"/": Page("no", status, headers={"retry-after": "7"})}) as server:
        with pytest.raises(FetchError) as caught:
            fetch(local(), server.url)
        assert (caught.value.reason, caught.value.is_retryable) == (reason, is_retryable)
        assert caught.value.wait_s == 7


def test_a_body_that_is_too_long_ends_at_the_limit() -> None:
    """Announced, without end, and unpacked: a bomb of a hundred megabytes leaves a megabyte at most."""
    packed = {"content-encoding": "gzip"}
    bomb, small = gzip.compress(bytes(100_000_000), 1), gzip.compress(b"words")
    pages = {
        "/announced": Page(b"x" * 1_000_001),
        "/endless": endless,
        "/bomb": Page(bomb, headers=packed),
        "/packed": Page(small, headers=packed),
        "/other": Page(small, headers={"content-encoding": "br"}),
    }
    with serving_pages(pages) as server:
        for path in ("/announced", "/endless", "/bomb"):
            taken = bytearray()
            with pytest.raises(FetchError, match="fetch_too_large"):
                local().fetch(Order(parse_address(server.url + path), taken.extend))
            assert len(taken) <= 1_000_000
        assert fetch(local(), f"{server.url}/packed")[1] == b"words"
        assert refusal(local(), f"{server.url}/other") == "fetch_encoding"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://a\x00b/\r\ncontent-length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
    ids=["cut", "cut chunks", "two lengths", "endless head", "NUL", "no HTTP", "nothing"],
)
def test_what_is_no_whole_answer_is_broken(answer: bytes) -> None:
    """A page that breaks off is never taken for the whole page."""
    with serving_pages({"/": written(answer)}) as server:
        assert refusal(local(), server.url) == "fetch_broken"


def test_a_server_that_is_slow_on_purpose_holds_nobody() -> None:
    """Silent before its answer, or a byte now and then for ever: each has its clock."""
    with serving_pages({"/silent": silent, "/dripping": dripping}) as server:
        assert refusal(local(idle_s=0.3), f"{server.url}/silent") == "fetch_timeout"
        assert refusal(local(idle_s=5, total_s=0.5), f"{server.url}/dripping") == "fetch_timeout"


def test_a_stop_ends_a_fetch_at_once() -> None:
    """While a name is being looked up, and while bytes come."""
    stopping, begun, go = threading.Event(), threading.Event(), threading.Event()

    def stuck(host: str, port: int) -> list[str]:
        begun.set()
        go.wait(20)
        return []

    ended: list[str] = []

    def run(egress: Egress, url: str) -> None:
        with pytest.raises(FetchStoppedError):
            egress.fetch(Order(parse_address(url), lambda _: None, is_stopping=stopping.is_set))
        ended.append(url)

    with serving_pages({"/": dripping}) as server:
        slow = Limits(max_bytes=1_000_000, connect_s=60, idle_s=60, total_s=60)
        looking = Egress(Rules(), slow, SystemClock(), Doors(resolve=stuck))
        reading = Egress(Rules(LOOPBACK), slow, SystemClock())
        threads = [
            threading.Thread(target=run, args=given)
            for given in ((looking, "http://stuck.example/"), (reading, server.url))
        ]
        for thread in threads:
            thread.start()
        until(lambda: begun.is_set() and bool(server.seen), "both are under way")
        stopping.set()
        for thread in threads:
            thread.join(2)
        go.set()
    assert sorted(ended) == sorted(["http://stuck.example/", server.url])


def test_a_certificate_has_to_be_the_names_own() -> None:
    """The server is told the name (SNI) although it is connected to by number; a certificate for another name, or one
    nobody vouches for, ends it before a request is sent."""
    with serving_pages({"/": Page("secure")}, tls=True) as server:
        trusting = ssl.create_default_context(cafile=str(CERTIFICATE))

        def egress(tls: Callable[[], ssl.SSLContext]) -> Egress:
            doors = Doors(lambda host, port: [PUBLIC], lambda *_: begin_connecting("127.0.0.1", server.port), tls)
            return Egress(Rules(), LIMITS, SystemClock(), doors)

        assert fetch(egress(lambda: trusting), "https://wiki.example/")[1] == b"secure"
        assert server.names == ["wiki.example"]
        assert refusal(egress(lambda: trusting), "https://other.example/") == "fetch_tls"
        assert refusal(egress(ssl.create_default_context), "https://wiki.example/") == "fetch_tls"
        assert len(server.seen) == 1
    with serving_pages({"/": Page("plain")}) as server:
        assert refusal(local(), f"https://127.0.0.1:{server.port}/") == "fetch_tls"
