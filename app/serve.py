"""`docent serve`: the server process, from settings to exit code.

Owns the listening socket, what is refused before it listens, the one line at start, and a quick end: on SIGTERM running
turns are interrupted first, so that the streams that watch them end and the server need not wait. What is served is
`app.main`'s.
"""

import errno
import ipaddress
import logging
import socket
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

from app import __version__
from app.edge.deps import Services
from app.edge.head_limit import BoundedHead
from app.errors import AppError
from app.logs import kv, redactor
from app.main import create_app
from app.settings import SECRET, Settings
from app.store.engine import Session
from app.store.health import read_health
from app.store.settings import effective

GRACE_S = 1
"""What responses get to end once the turns have."""
CONNECTIONS = 1000
BACKLOG = 2048

_ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, never bound by default

_log = logging.getLogger("app.serve")


class ServeError(AppError):
    """The server can't begin: `serve_open` (an address others can reach, without AUTH_MODE=none), `serve_in_use`,
    `serve_address`."""

    default_code = "serve_address"


class Server(uvicorn.Server):
    """uvicorn, which would wait for every open stream before it tells the application to end."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen, and says so in one line."""
        await super().startup(sockets)
        settings = self._services.settings
        _log.info("%s", await self._services.database.aread(lambda session: start_line(session, settings)))
        if not is_loopback(settings.host):
            _log.warning(kv("open_to_network", host=settings.host, port=settings.port, auth="none"))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Interrupts the turns, then ends."""
        await self._services.turns.shutdown()
        await super().shutdown(sockets)


def serve(settings: Settings, announce: Callable[[], None]) -> None:
    """Serves until a signal ends it; calls `announce` once the address is its own.

    Raises:
        ServeError: when it can't begin.
        DatabaseTooNewError: when a newer Docent wrote the database.
        StoreError: when the database can't be opened.
    """
    check_address(settings)
    for name in SECRET:
        redactor.add(getattr(settings, name))
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    with listen(settings) as listener:
        announce()
        app = create_app(settings)
        server = Server(_config(app, settings), app.state.docent)
        server.run(sockets=[listener])


def check_address(settings: Settings) -> None:
    """Refuses an address that others can reach, unless the operator said that it is meant: there is no login.

    Raises:
        ServeError: `serve_open`.
    """
    if settings.auth_mode != "none" and not is_loopback(settings.host):
        raise ServeError("serve_open", setting="AUTH_MODE", params={"host": settings.host})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(settings: Settings) -> socket.socket:
    """A socket bound to the address of the settings.

    Raises:
        ServeError: `serve_in_use`, or `serve_address` where the address is not this machine's.
    """
    host = settings.host.strip("[]")
    params = {"host": settings.host, "port": str(settings.port)}
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServeError(setting="HOST", params=params) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        code, setting = ("serve_in_use", "PORT") if error.errno == errno.EADDRINUSE else ("serve_address", "HOST")
        raise ServeError(code, setting=setting, params=params) from error
    listener.set_inheritable(True)
    return listener


def address_of(settings: Settings) -> str:
    """What to open in a browser on this machine."""
    host = "127.0.0.1" if settings.host in _ANYWHERE else settings.host.strip("[]")
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def start_line(session: Session, settings: Settings) -> str:
    """`serving url=… version=… sqlite=… …`: every setting in effect, secrets only as `set` or `-`."""
    health, snapshot = read_health(session), effective(session, settings)
    fields: dict[str, object] = {}
    for name, value in dict(snapshot).items():
        fields[name] = ("set" if value else None) if name in SECRET else _shown(value)
    url, sqlite = address_of(settings), health.sqlite_version
    return kv("serving", url=url, version=__version__, sqlite=sqlite, revision=health.revision, **fields)


def _shown(value: object) -> object:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in cast("tuple[object, ...]", value))
    if isinstance(value, str) and "@" in value and "://" in value:
        parts = urlsplit(value)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return value


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        http=BoundedHead,
        lifespan="on",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE_S,
    )
