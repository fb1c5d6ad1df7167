"""Which addresses of the network Docent may connect to when it fetches a page. Pure.

Owns the rule: the public internet on the usual ports, and what FETCH_ALLOW_CIDRS names on any port. Called with every
address a name resolves to, by `app.ingest.egress`, right before it connects to one of them.
"""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from app.ingest.fetch_errors import FetchError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

USUAL_PORTS = frozenset({80, 443})

_NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32"),
            *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
            *("::/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128"),
        ),
    )
)
"""What no list allows: nobody's and everybody's addresses, and those a cloud gives its machines' secrets from."""

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            *("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24"),
            *("192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24"),
            *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
            *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
        ),
    )
)
"""The special ranges of IANA's registries (RFC 6890 and after), Teredo and 6to4 among them: they hold an IPv4 address
that nobody has to be asked for that way. Of IPv6 only 2000::/3 is public, so the rest need not be named."""

_PUBLIC_6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


class Rules:
    """The rule of one installation.

    Args:
        allowed: Networks that may be asked although they are not public, on any port.
    """

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def check(self, address: str, port: int) -> str:
        """The address to connect to, as numbers.

        Raises:
            FetchError: fetch_private or fetch_port; also for what is no address.
        """
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            raise FetchError("fetch_private") from None
        if isinstance(found, IPv6Address) and found.scope_id is not None:
            raise FetchError("fetch_private")
        judged = _unwrapped(found)
        if _is_in(judged, _NEVER):
            raise FetchError("fetch_private")
        if _is_in(judged, self._allowed):
            return str(found)
        if not _is_public(judged):
            raise FetchError("fetch_private")
        if port not in USUAL_PORTS:
            raise FetchError("fetch_port")
        return str(found)


def is_number(host: str) -> bool:
    """Whether an address names its machine by a number, so that nothing has to be looked up."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one leads to: mapped (::ffff:0:0/96), or through a NAT64 gateway (RFC 6052)."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if _is_in(address, _NOT_PUBLIC) or not address.is_global or address.is_multicast:
        return False
    return isinstance(address, IPv4Address) or address in _PUBLIC_6


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
