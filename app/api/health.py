"""`/healthz`: the process serves. `/readyz`: the database does too, in the schema this Docent knows.

Neither asks the model server: what is known of it is told, nothing is waited for.
"""

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app import __version__
from app.edge.deps import ServicesDep
from app.store.engine import StoreError
from app.store.health import read_health
from app.store.migrate import HEAD
from app.store.settings import effective
from app.upstream.client import endpoint_from

router = APIRouter(tags=["health"])

DATABASE_S = 2.0
"""What the database may take before it counts as not ready."""


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """200 while the process serves; touches nothing."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz", response_model=None)
async def readyz(services: ServicesDep) -> Response:
    """200 or 503 with `{status, database, revision, sqlite, model}`; `model` is `builtin`, a name, or `unknown`."""
    body: dict[str, Any] = {"status": "unavailable", "database": "unavailable", "version": __version__}
    try:
        async with asyncio.timeout(DATABASE_S):
            health = await services.database.aread(read_health)
            settings = await services.database.aread(lambda session: effective(session, services.settings))
    except (StoreError, TimeoutError):
        return JSONResponse(body, 503)
    endpoint = endpoint_from(settings)
    model = "builtin" if endpoint is None else services.clients.known_model(endpoint) or "unknown"
    ready = health.revision == HEAD
    body |= {
        "status": "ok" if ready else "unavailable",
        "database": "ok" if ready else "wrong_revision",
        "revision": health.revision,
        "sqlite": health.sqlite_version,
        "model": model,
    }
    return JSONResponse(body, 200 if ready else 503)
