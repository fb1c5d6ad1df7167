"""Which addresses may be connected to: the public ones, and what is named; nothing by another spelling."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.fetch_errors import FetchError
from app.ingest.fetch_rules import Network, Rules

PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8")
NOT_PUBLIC = (
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"),
    *("100.127.255.255", "192.0.0.1", "192.0.0.9", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "240.0.0.1", "254.255.255.255", "::1", "fc00::1", "fd12:3456::1"),
    *("fec0::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "2001::1", "2001:10::1", "2001:20::1"),
    *("::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"),
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::c0a8:101", "64:ff9b:1::7f00:1", "64:ff9b:1::808:808"),
    *("2002:7f00:1::", "2002:808:808::1", "2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
)
NEVER = (
    *("0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.250", "255.255.255.255"),
    *("168.63.129.16", "100.100.100.200", "192.0.0.192", "::", "fe80::1", "febf::1", "ff02::1", "ff0e::1"),
    *("fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "::ffff:0.0.0.0"),
)
WORDS = ("", "localhost", "example.org", "0x7f.1", "127.1", "2130706433", "0177.0.0.1", "fe80::1%eth0", "1.1.1.1%1")
EVERYTHING: tuple[Network, ...] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))


def _refused(rules: Rules, address: str, port: int = 443) -> str:
    with pytest.raises(FetchError) as caught:
        rules.check(address, port)
    return caught.value.reason


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet_is_asked_on_its_usual_ports(address: str) -> None:
    """80 and 443, and no other."""
    rules = Rules()
    assert {rules.check(address, port) for port in (80, 443)} == {str(ipaddress.ip_address(address))}
    assert _refused(rules, address, 8080) == "fetch_port"


@pytest.mark.parametrize("address", [*NOT_PUBLIC, *NEVER, *WORDS])
def test_everything_else_is_refused(address: str) -> None:
    """Private, special, wrapped in another form, or no address at all."""
    assert _refused(Rules(), address) == "fetch_private"


def test_a_named_network_is_asked_on_any_port_and_nothing_beside_it() -> None:
    """A wiki at home; its address written as IPv6 is the same one."""
    rules = Rules((ipaddress.ip_network("192.168.1.0/24"), ipaddress.ip_network("fd12::/16")))
    assert rules.check("192.168.1.7", 8080) == "192.168.1.7"
    assert rules.check("::ffff:192.168.1.7", 81) == "::ffff:c0a8:107"
    assert rules.check("fd12::7", 3000) == "fd12::7"
    assert rules.check("8.8.8.8", 443) == "8.8.8.8"
    for address in ("192.168.2.7", "10.0.0.1", "127.0.0.1", "fd13::7", "::192.168.1.7", "2002:c0a8:107::"):
        assert _refused(rules, address) == "fetch_private"
    assert _refused(rules, "8.8.8.8", 8080) == "fetch_port"


@pytest.mark.parametrize("address", NEVER)
def test_no_list_opens_what_nobody_serves_pages_from(address: str) -> None:
    """The secrets of a cloud's machine are not given away by a list that is too long."""
    assert _refused(Rules(EVERYTHING), address) == "fetch_private"


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_form(address: ipaddress.IPv4Address) -> None:
    """Mapped and through NAT64 as it is; in the forms nobody needs, never."""

    def is_allowed(text: str) -> bool:
        try:
            return bool(Rules().check(text, 443))
        except FetchError:
            return False

    number = int(address)
    high, low = number >> 16, number & 0xFFFF
    alone = is_allowed(str(address))
    assert not (alone and not address.is_global)
    assert is_allowed(f"::ffff:{address}") == alone
    assert is_allowed(f"64:ff9b::{high:x}:{low:x}") == alone
    for form in (f"::{high:x}:{low:x}", f"::ffff:0:{high:x}:{low:x}", f"64:ff9b:1::{high:x}:{low:x}"):
        assert not is_allowed(form)
    assert not is_allowed(f"2002:{high:x}:{low:x}::1")
    assert not is_allowed(f"2001:0:{high:x}:{low:x}::1")


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_outside_the_public_range_is_allowed(address: ipaddress.IPv6Address) -> None:
    """Everything outside 2000::/3 leads nowhere that is public, but for an IPv4 address in it."""
    try:
        Rules().check(str(address), 443)
    except FetchError:
        return
    wrapped = address.ipv4_mapped is not None or address in ipaddress.ip_network("64:ff9b::/96")
    assert wrapped or (address in ipaddress.ip_network("2000::/3") and address.is_global)
