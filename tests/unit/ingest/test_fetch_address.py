"""Reading web addresses: one meaning or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.fetch_address import MAX_CHARS, parse_address, redirected
from app.ingest.fetch_errors import FetchError


def _refused(text: str) -> str:
    with pytest.raises(FetchError) as caught:
        parse_address(text)
    return caught.value.reason


@pytest.mark.parametrize(
    ("given_text", "text", "path"),
    [
        ("https://example.org", "https://example.org/", "example.org"),
        ("  HTTP://Example.ORG:80/a/  \n", "http://example.org/a/", "example.org/a"),
        ("https://example.org:443/a#part", "https://example.org/a", "example.org/a"),
        ("http://example.org:8080/a?b=c&d=%2f", "http://example.org:8080/a?b=c&d=%2f", "example.org:8080/a?b=c&d=%2F"),
        ("example.org/docs", "https://example.org/docs", "example.org/docs"),
        ("www.example.org", "https://www.example.org/", "www.example.org"),
        ("https://example.org./x", "https://example.org/x", "example.org/x"),
        ("https://my_nas.lan/x", "https://my_nas.lan/x", "my_nas.lan/x"),
        ("https://bücher.example/ä b".replace(" ", ""), "https://xn--bcher-kva.example/%C3%A4b", None),
        ("https://e.org/a/./b/../c/%2e%2E/d", "https://e.org/a/d", "e.org/a/d"),
        ("https://e.org/../../x/.", "https://e.org/x/", "e.org/x"),
        ('https://e.org/"<b>"{}', "https://e.org/%22%3Cb%3E%22%7B%7D", None),
        ("https://e.org/gr%C3%BC%C3%9Fe%20alle", "https://e.org/gr%C3%BC%C3%9Fe%20alle", "e.org/grüße alle"),
        ("https://e.org/a%2Fb%00%E2%80%AE", "https://e.org/a%2Fb%00%E2%80%AE", "e.org/a%2Fb%00%E2%80%AE"),
        ("https://e.org/%ff%fe", "https://e.org/%ff%fe", "e.org/%ff%fe"),
        ("http://192.0.2.7:81/", "http://192.0.2.7:81/", "192.0.2.7:81"),
        ("http://[2001:DB8::0:1]:81/x", "http://[2001:db8::1]:81/x", "[2001:db8::1]:81/x"),
        ("http://example.org:/x", "http://example.org/x", "example.org/x"),
        ("https://e.org?q=1", "https://e.org/?q=1", "e.org/?q=1"),
    ],
)
def test_an_address_has_one_spelling(given_text: str, text: str, path: str | None) -> None:
    """Host in lower-case ASCII, usual ports and fragments left out; the document's name is readable."""
    address = parse_address(given_text)
    assert address.text == text
    assert parse_address(address.text) == address
    if path is not None:
        assert address.path == path


def test_names_in_other_scripts_are_what_the_network_calls_them() -> None:
    """IDNA, with the dots and digits of other scripts made plain first."""
    assert parse_address("http://。bücher.example".replace("//。", "//")).host == "xn--bcher-kva.example"
    assert parse_address("http://１２７。０。０。１/").host == "127.0.0.1"
    assert parse_address("http://ⓛocalhost/").host == "localhost"


@pytest.mark.parametrize(
    "text", ["", " ", "just words", "/path", "//example.org", "localhost", "a.b.c:1x", "http:/e.org"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """Words and paths."""
    assert _refused(text) in ("fetch_address", "fetch_scheme")


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://[", "//", "http://example.org"]))
def test_any_text_is_an_address_or_refused(text: str, prefix: str) -> None:
    """Nothing else is raised; what is taken is plain ASCII, reads the same again and has no other host inside."""
    try:
        address = parse_address(prefix + text)
    except FetchError:
        return
    assert address.text.isascii()
    assert parse_address(address.text) == address
    assert not set(address.host) & set("@/\\#?%[] ")
    assert not set(address.target) & set("\r\n\t #\\")


def test_an_address_of_any_length_ends_somewhere() -> None:
    """Longer than any page needs is none."""
    assert _refused("https://example.org/" + "a" * MAX_CHARS) == "fetch_address"


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (b"/b", "https://example.org/b"),
        (b"c", "https://example.org/a/c"),
        (b"?x=1", "https://example.org/a/b?x=1"),
        (b"//other.example/x", "https://other.example/x"),
        ("/ü".encode(), "https://example.org/%C3%BC"),
        ("/ü".encode("latin-1"), "https://example.org/%C3%BC"),
    ],
)
def test_a_redirect_leads_where_it_says(location: bytes, text: str) -> None:
    """Relative ones included, in either encoding that servers use."""
    assert redirected(parse_address("https://example.org/a/b"), location).text == text


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        (b"http://example.org/", "fetch_downgrade"),
        (b"file:///etc/passwd", "fetch_scheme"),
        (b"https://u:p@example.org/", "fetch_credentials"),
        (b"https:\\\\127.0.0.1/", "fetch_address"),
        (b"/a\tb", "fetch_address"),
        (b"http://[", "fetch_address"),
        (b"https://[::1%25lo]/", "fetch_address"),
    ],
)
def test_a_redirect_is_read_as_strictly_as_an_address(location: bytes, reason: str) -> None:
    """And never leads from https to http, where anyone on the way could answer."""
    with pytest.raises(FetchError) as caught:
        redirected(parse_address("https://example.org/"), location)
    assert caught.value.reason == reason
