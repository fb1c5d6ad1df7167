"""Web addresses, read strictly: what one parser could take for another host is no address at all. Pure.

Owns the one reading of an address that check and request share, what a document fetched from it is called, and how a
redirect's target is found. Whether its host may be asked is `app.ingest.fetch_rules`'. Called by `app.ingest.egress`,
`app.ingest.web_pages` and the command line.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes, urljoin

import idna

from app.ingest.fetch_errors import FetchError

MAX_CHARS = 2048
PORTS = {"http": 80, "https": 443}

_SHORT = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?:[/?#].*)?", re.DOTALL)
"""What people type without its scheme; a colon could be a port as well as a scheme, so there is none."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ADDRESS = re.compile(r"https?://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_HARMFUL = re.compile(r"[\x00-\x20\x7f-\x9f\\\u2028\u2029]|\s")
"""Characters that browsers drop or take for others: a tab within a name, a backslash for a slash."""

_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\](?::([0-9]{0,5}))?")
_NAMED = re.compile(r"([^:\[\]%]+)(?::([0-9]{0,5}))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_PATH_KEPT = "/%:@!$&'()*+,;=-._~"
_QUERY_KEPT = _PATH_KEPT + "?[]|"


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An address taken apart. `host` is lower-case ASCII: a name, an IPv4 address, or an IPv6 address without its
    brackets. `target` is path and query as they are asked for."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and, where it is not the usual one, port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        """The whole address, in ASCII."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def path(self) -> str:
        """What a document from here is called: host and path, readable, without scheme and final slash.

        Two addresses that differ in these only are one page. What is percent-encoded is shown as text where that is
        text and stands for no delimiter.
        """
        return _ENCODED.sub(_readable, f"{self.authority}{self.target}").removesuffix("/")


def parse_address(given: str) -> WebAddress:
    """Reads an address; one without scheme that looks like a host name is meant to be https.

    Raises:
        FetchError: fetch_address, fetch_scheme or fetch_credentials.
    """
    text = given.strip(" \t\r\n")
    if _SHORT.fullmatch(text):
        text = f"https://{text}"
    if not text or len(text) > MAX_CHARS or _HARMFUL.search(text):
        raise FetchError("fetch_address")
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise FetchError("fetch_address")
    if scheme[1].lower() not in PORTS:
        raise FetchError("fetch_scheme")
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise FetchError("fetch_address")
    if "@" in match[1]:
        raise FetchError("fetch_credentials")
    host, port = _host_and_port(match[1], PORTS[scheme[1].lower()])
    try:
        target = quote(_without_dots(match[2] or "/"), safe=_PATH_KEPT) + quote(match[3] or "", safe=_QUERY_KEPT)
    except UnicodeEncodeError:
        raise FetchError("fetch_address") from None
    return WebAddress(scheme[1].lower(), host, port, target)


def redirected(base: WebAddress, location: bytes) -> WebAddress:
    """Where a redirect leads.

    Raises:
        FetchError: as `parse_address`; fetch_downgrade for the way from https to http.
    """
    try:
        text = location.decode()
    except UnicodeDecodeError:
        text = location.decode("latin-1")
    if _HARMFUL.search(text):
        raise FetchError("fetch_address")
    try:
        joined = urljoin(base.text, text)
    except ValueError:
        raise FetchError("fetch_address") from None
    target = parse_address(joined)
    if base.scheme == "https" and target.scheme == "http":
        raise FetchError("fetch_downgrade")
    return target


def _host_and_port(authority: str, usual: int) -> tuple[str, int]:
    match = _BRACKETED.fullmatch(authority) or _NAMED.fullmatch(authority)
    if match is None:
        raise FetchError("fetch_address")
    port = int(match[2]) if match[2] else usual
    if not 1 <= port <= 65535:
        raise FetchError("fetch_address")
    try:
        host = str(ipaddress.IPv6Address(match[1])) if authority.startswith("[") else _name(match[1])
    except ValueError:  # idna's errors are ValueErrors, too
        raise FetchError("fetch_address") from None
    return host, port


def _name(text: str) -> str:
    """A host name or IPv4 address in ASCII.

    Raises:
        ValueError: for what is neither, a number in another form than four decimal parts included.
    """
    name = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode().lower()
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(ipaddress.IPv4Address(name))
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("no host name")
    return name


def _without_dots(path: str) -> str:
    """A path without "." and ".." steps (RFC 3986 §5.2.4), however they are written."""
    kept: list[str] = []
    steps = path.split("/")[1:]
    for step in steps:
        plain = step.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(step)
    if steps[-1].lower().replace("%2e", ".") in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _readable(match: re.Match[str]) -> str:
    try:
        text = unquote_to_bytes(match[0]).decode()
    except UnicodeDecodeError:
        return match[0]
    return "".join(char if char.isalnum() or char in "-._~ " else quote(char, safe="") for char in text)
