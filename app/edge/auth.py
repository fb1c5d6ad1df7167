"""Who is asking, and which routes may be asked by anyone.

Every router is included with `current_user` as its default dependency; what stays open is listed here by name, and a
test walks all routes. Without login everyone is the user `local`, so nothing is refused yet.
"""

from fastapi import Request

from app.store.models.setup import LOCAL_USER_ID

PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/metrics", "/static", "/api/openapi.json"})
"""Routes and mounts that don't ask who is asking."""


async def current_user(request: Request) -> int:
    """The id of the user who sent `request`. Asynchronous, so that asking costs no hop to a worker thread."""
    return LOCAL_USER_ID
