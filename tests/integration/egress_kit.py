"""What tests of the egress function share: doors that lead to a public server and a trap, and fetching in one call."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_network

import pytest

from app.clock import SystemClock
from app.ingest.egress import Doors, Egress, Fetched, Known, Limits, Order
from app.ingest.fetch_address import parse_address
from app.ingest.fetch_errors import FetchError
from app.ingest.fetch_rules import Network, Rules
from app.ingest.fetch_socket import begin_connecting
from tests.page_server import PageServer

PUBLIC = "93.184.215.14"
LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.0/8"),)
LIMITS = Limits(max_bytes=1_000_000, connect_s=5, idle_s=5, total_s=10)


class World:
    """A public server, a trap that stands for everything else, and the doors that lead to them."""

    def __init__(self, outside: PageServer, trap: socket.socket) -> None:
        self.outside = outside
        self.trap_port: int = trap.getsockname()[1]
        self.names: dict[str, Callable[[], Sequence[str]]] = {"public.example": lambda: [PUBLIC]}
        self.resolved: list[str] = []
        self.connected: list[tuple[str, int]] = []

    def resolve(self, host: str, port: int) -> Sequence[str]:
        """A resolver as lenient as they come: any spelling of a number, and every unknown name is this machine's."""
        self.resolved.append(host)
        known = self.names.get(host)
        if known is not None:
            return known()
        try:
            return [socket.inet_ntoa(socket.inet_aton(host))]
        except OSError:
            return ["127.0.0.1"]

    def connect(self, address: str, port: int) -> socket.socket:
        """To the public server for its address; anything else is in the trap."""
        self.connected.append((address, port))
        return begin_connecting("127.0.0.1", self.outside.port if address == PUBLIC else self.trap_port)

    def egress(self, *allowed: Network, limits: Limits = LIMITS) -> Egress:
        return Egress(Rules(allowed), limits, SystemClock(), Doors(self.resolve, self.connect))


def fetch(egress: Egress, url: str, known: Known | None = None) -> tuple[Fetched, bytes]:
    """What a fetch gives, and the bytes it wrote."""
    body = bytearray()
    fetched = egress.fetch(Order(parse_address(url), body.extend, known))
    return fetched, bytes(body)


def refusal(egress: Egress, url: str) -> str:
    """The reason a fetch fails with."""
    with pytest.raises(FetchError) as caught:
        fetch(egress, url)
    return caught.value.reason


def local(**limits: float) -> Egress:
    """An egress that may ask this machine, through the doors of the system."""
    return Egress(Rules(LOOPBACK), Limits(**{"max_bytes": 1_000_000, "total_s": 10, **limits}), SystemClock())  # pyright: ignore[reportArgumentType] - numbers all
