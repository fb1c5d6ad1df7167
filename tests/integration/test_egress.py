"""The egress function and where it may connect to: what is refused is never reached, however it is spelled."""

import json
import socket
from collections.abc import Iterator
from ipaddress import ip_network
from itertools import count, cycle
from pathlib import Path
from urllib.parse import quote

import pytest

from app.clock import SystemClock
from app.ingest.egress import Doors, Egress, Limits
from app.ingest.fetch_rules import Rules
from app.ingest.fetch_socket import begin_connecting
from tests.integration.egress_kit import LIMITS, LOOPBACK, PUBLIC, World, fetch, local, refusal
from tests.page_server import Page, moved, serving_pages, written

PRIVATE = (
    "127.0.0.1",
    "::1",
    "10.0.0.1",
    "169.254.169.254",
    "64:ff9b::7f00:1",
    "::ffff:127.0.0.1",
    "fd00::1",
    "0.0.0.0",
)
REFUSED: list[str] = json.loads((Path(__file__).parent.parent / "fixtures" / "refused_addresses.json").read_text())
REASONS = {"fetch_address", "fetch_scheme", "fetch_credentials", "fetch_private", "fetch_port"}


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """A listener nobody may reach; it never accepts, so that a connection stays in its queue to be seen."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture
def world(trap: socket.socket) -> Iterator[World]:
    with serving_pages({}) as outside:
        yield World(outside, trap)


def _assert_untouched(trap: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        trap.accept()


def test_addresses_that_lead_inside_are_refused_before_anything_is_sent(world: World, trap: socket.socket) -> None:
    """Every spelling of what is not public, and every address that two programs could read differently."""
    assert len(REFUSED) >= 150
    egress = world.egress()
    reasons = {url: refusal(egress, url.replace("{port}", str(world.trap_port))) for url in REFUSED}
    assert {url: reason for url, reason in reasons.items() if reason not in REASONS} == {}
    assert world.connected == []
    _assert_untouched(trap)


def test_redirects_that_lead_inside_are_refused_before_they_are_followed(world: World, trap: socket.socket) -> None:
    """The same addresses, named by a server that is public itself."""
    egress = world.egress()
    for url in REFUSED:
        to = url.replace("{port}", str(world.trap_port)).encode()
        answer = b"HTTP/1.1 302 Found\r\nlocation: " + to + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        world.outside.pages["/moved"] = written(answer)
        refusal(egress, "http://public.example/moved")
    assert len(world.outside.asked("/moved")) == len(REFUSED)
    assert {address for address, _ in world.connected} == {PUBLIC}
    _assert_untouched(trap)


def test_a_name_that_changes_its_mind_is_judged_each_time(world: World, trap: socket.socket) -> None:
    """A resolver that says a public address first and a private one from then on: the first answer is what is
    connected to, and the next question gets its own verdict."""
    egress, private = world.egress(), cycle(PRIVATE)
    for number, url in enumerate(REFUSED):
        host = f"n{number}.example"
        first = count()
        inside = next(private)
        world.names[host] = lambda first=first, inside=inside: [inside] if next(first) else [PUBLIC]
        world.outside.pages["/"] = moved(f"http://{host}/again?{quote(url)}")
        assert refusal(egress, f"http://{host}/") == "fetch_private"
        assert world.resolved[-2:] == [host, host]
    assert world.connected == [(PUBLIC, 80)] * len(REFUSED)
    assert {path for path, _ in world.outside.seen} == {"/"}
    _assert_untouched(trap)


def test_the_trap_would_notice(world: World, trap: socket.socket) -> None:
    """The tests above can fail: an egress that may ask this machine does end up in the trap."""
    quick = Limits(max_bytes=1000, idle_s=0.1)
    assert refusal(world.egress(*LOOPBACK, limits=quick), f"http://localhost:{world.trap_port}/") == "fetch_timeout"
    trap.accept()[0].close()


@pytest.mark.parametrize("inside", PRIVATE)
def test_one_private_address_among_public_ones_is_enough(world: World, trap: socket.socket, inside: str) -> None:
    """Whichever comes first: a name with any address inside is refused."""
    for answer in ([PUBLIC, inside], [inside, PUBLIC]):
        world.names["both.example"] = lambda answer=answer: answer
        assert refusal(world.egress(), "http://both.example/") == "fetch_private"
    assert world.connected == []
    _assert_untouched(trap)


def test_what_was_judged_is_what_is_connected_to(world: World) -> None:
    """A name is resolved once for a connection, and the server is asked by name for the target alone."""
    world.outside.pages["/a?b=c"] = Page("words")
    fetched, body = fetch(world.egress(), "http://public.example/a?b=c#part")
    assert (body, fetched.final_url) == (b"words", "http://public.example/a?b=c")
    assert world.resolved == ["public.example"]
    assert world.connected == [(PUBLIC, 80)]
    headers = world.outside.asked("/a?b=c")[0]
    assert headers["host"] == "public.example"
    assert headers["user-agent"].startswith("Docent/")
    assert headers["accept-encoding"] == "gzip"
    assert not {"cookie", "authorization", "referer", "if-none-match"} & set(headers)


def test_a_named_network_is_fetched_from_on_any_port(world: World) -> None:
    """A wiki at home, by its address and by its name; a public name that leads there works, too."""
    egress = world.egress(ip_network("192.168.1.0/24"))
    world.names["wiki.lan"] = lambda: ["192.168.1.7"]
    world.names["other.lan"] = lambda: ["192.168.2.7"]
    assert refusal(egress, "http://other.lan:8080/") == "fetch_private"
    stray = Doors(world.resolve, lambda address, port: begin_connecting("127.0.0.1", world.outside.port))
    egress = Egress(Rules((ip_network("192.168.1.0/24"),)), LIMITS, SystemClock(), stray)
    world.outside.pages["/"] = Page("home")
    for url in ("http://wiki.lan:8080/", "http://192.168.1.7:3000/", "http://[::ffff:192.168.1.7]:81/"):
        assert fetch(egress, url)[1] == b"home"
    assert world.outside.asked("/")[0]["host"] == "wiki.lan:8080"


def test_proxies_of_the_environment_are_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would connect to what nobody here judged."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{world.trap_port}")
    world.outside.pages["/"] = Page("direct")
    assert fetch(world.egress(), "http://public.example/")[1] == b"direct"


def test_a_name_nobody_has_and_a_port_nobody_listens_on(world: World) -> None:
    """A lookup that fails for now is told apart from a name that is not there."""

    def failing(code: int) -> Egress:
        def resolve(host: str, port: int) -> list[str]:
            raise socket.gaierror(code, "no")

        return Egress(Rules(), LIMITS, SystemClock(), Doors(resolve=resolve))

    assert refusal(failing(socket.EAI_NONAME), "http://gone.example/") == "fetch_no_host"
    assert refusal(failing(socket.EAI_AGAIN), "http://later.example/") == "fetch_unreachable"
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert refusal(local(), f"http://127.0.0.1:{port}/") == "fetch_unreachable"
    world.names["none.example"] = list
    assert refusal(world.egress(), "http://none.example/") == "fetch_no_host"


def test_the_next_address_is_tried_when_one_does_not_answer(world: World) -> None:
    """A machine with IPv6 addresses on a network without."""
    world.names["two.example"] = lambda: ["2606:4700:4700::1111", PUBLIC]
    world.outside.pages["/"] = Page("second")

    def connect(address: str, port: int) -> socket.socket:
        if ":" in address:
            raise OSError(101, "Network is unreachable")
        return world.connect(address, port)

    egress = Egress(Rules(), LIMITS, SystemClock(), Doors(world.resolve, connect))
    assert fetch(egress, "http://two.example/")[1] == b"second"
