"""Who may talk to Docent through a browser: only pages of its own origin, under a name that is its own.

Two checks on every request, before any route. The host name: configured names, localhost, this machine's own name,
and IP addresses, so that a name somebody else controls can't be pointed here (DNS rebinding). The origin, for methods
that change something: `Sec-Fetch-Site` where the browser sends it, else `Origin` against `Host`, which is what a
browser has on plain http in a home network. Tools that are no browser send neither header and pass. Pure ASGI.
"""

import ipaddress
import logging
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.edge.errors import ErrorResponses, RequestRefusedError
from app.logs import kv

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OWN_SITES = frozenset({"same-origin", "none"})
_BRACKETED = re.compile(r"\[[^\[\]]+\](:\d*)?")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]{1,260}")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

_log = logging.getLogger(__name__)


class HostRefusedError(RequestRefusedError):
    """The request names a host that Docent does not answer to."""

    status = 400
    default_code = "host_refused"


class OriginRefusedError(RequestRefusedError):
    """A page asks for a change whose origin is not the host the request names: a foreign page, or the own one behind a
    proxy that puts another name into the request."""

    reason = "host"


class OriginCheck:
    """Refuses requests with a foreign host name, and changes that come from a foreign page.

    Args:
        hosts: Names Docent answers to, besides localhost and IP addresses.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], respond: ErrorResponses) -> None:
        self._app = app
        self._hosts = frozenset({"localhost", *(name.lower().rstrip(".") for name in hosts)})
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        error = self._refusal(scope)
        if error is None:
            await self._app(scope, receive, send)
            return
        _log.warning(kv("request_refused", path=scope["path"], status=error.status, code=error.code, **error.params))
        await self._respond(Request(scope), error)(scope, receive, send)

    def _refusal(self, scope: Scope) -> RequestRefusedError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not (name in self._hosts or _is_address(name)):
            return HostRefusedError(setting="ALLOWED_HOSTS", params={"host": name or "-"})
        if scope["method"] in _SAFE_METHODS or is_own_page(headers, hosts[0]):
            return None
        origins = headers.getlist("origin")
        if headers.getlist("sec-fetch-site") or len(origins) != 1 or not _ORIGIN.fullmatch(origins[0]):
            return RequestRefusedError()
        return OriginRefusedError(params={"origin": origins[0], "host": hosts[0]})


def is_own_page(headers: Headers, host: str) -> bool:
    """Whether a changing request comes from a page of this origin, or from no page at all."""
    sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    if sites:
        return _OWN_SITES.issuperset(sites)
    return all(_is_same(origin, host) for origin in origins)


def _is_same(origin: str, host: str) -> bool:
    scheme, separator, authority = origin.partition("://")
    default = _DEFAULT_PORTS.get(scheme.lower())
    if not separator or default is None:
        return False
    return authority.lower().removesuffix(default) == host.lower().removesuffix(default)


def host_name(host: str) -> str | None:
    """The name or address in a Host header, without port and brackets; None for what is no host."""
    if not host or any(character in host for character in "/@?#%\\ \t,"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if not parts.hostname or (host.startswith("[") and not _BRACKETED.fullmatch(host)):
        return None
    return parts.hostname.rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
