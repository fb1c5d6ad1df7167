"""Static files under an address that changes with their content, so that browsers may keep them for good.

`/static/<version>/css/base.css`: one version for the whole tree, so that modules and style sheets may name each other
by relative paths. Owns addresses, cache headers and compression; what the files hold is `frontend/static`'s.
"""

import hashlib
import mimetypes
from functools import cache
from pathlib import Path

from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

STATIC = Path(__file__).resolve().parent.parent.parent / "frontend" / "static"


@cache
def version() -> str:
    """Twelve hex digits over names and contents of every static file."""
    digest = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def static_url(path: str) -> str:
    """The address of `frontend/static/<path>`."""
    return f"/static/{version()}/{path}"


class _VersionedFiles(StaticFiles):
    """Takes the version off the path; only the current one may be kept for good."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        given, _, rest = path.partition("/")
        response = await super().get_response(rest, scope)
        current = given == version() and response.status_code in (200, 304)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if current else "no-cache"
        return response


def static_app() -> ASGIApp:
    """What `main` mounts at `/static`."""
    version()
    mimetypes.init()  # reads files: not later, in the event loop
    mimetypes.add_type("text/javascript", ".js")  # some systems call it text/plain, which no browser runs
    return GZipMiddleware(_VersionedFiles(directory=STATIC), minimum_size=500)
