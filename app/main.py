"""The only place where objects are wired: settings in, application out.

Owns construction order and shutdown order. Tests call the same `create_app` with fakes; nothing is patched.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI

from app.catalog import load_catalog
from app.clock import Clock, SystemClock
from app.edge.deps import Services
from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import migrate
from app.web import queries, receipts
from app.web.static import static_app


def create_app(settings: Settings, *, clock: Clock | None = None) -> FastAPI:
    """Builds the application. The database is migrated here, background work starts with the lifespan.

    Raises:
        DatabaseTooNewError: when a newer Docent wrote the database.
    """
    database = Database(settings.database)
    migrate(database)
    services = Services(
        settings=settings,
        database=database,
        clock=clock or SystemClock(),
        catalog=load_catalog(),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield
        await anyio.to_thread.run_sync(services.database.close)

    app = FastAPI(title="Docent", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.docent = services
    app.mount("/static", static_app())
    for pages in (receipts, queries):
        app.include_router(pages.router)
    return app
