"""The only place where objects are wired: settings in, application out.

Owns construction order and shutdown order. Tests call the same `create_app` with fakes; nothing is patched.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial

import anyio.to_thread
from fastapi import Depends, FastAPI
from starlette.middleware import Middleware

from app import __version__
from app.api import chat, chats, collections, documents, health, loop_guard, metrics, openai, search, turns, web_pages
from app.api import evaluation as evaluation_api
from app.api import marks as marks_api
from app.api import settings as settings_api
from app.catalog import Catalog, load_catalog
from app.clock import Clock, SystemClock
from app.edge.auth import current_user
from app.edge.deps import ChatFor, Services
from app.edge.errors import ErrorResponses, LastResort
from app.edge.headers import SecurityHeaders
from app.edge.limits import BodyLimit, body_limit
from app.edge.origin import OriginCheck
from app.guard.backends import Backends, probe_with
from app.guard.environment import own_environment
from app.guard.log_writer import open_guard_log
from app.guard.proxy import ProxyGuard
from app.ingest.cutting import count_tokens
from app.ingest.extract.extractor import Extractor
from app.ingest.extract.page_pictures import PagePictures
from app.ingest.fetch_pages import WebPages
from app.ingest.fetch_rules import Rules
from app.ingest.generations import Generations
from app.ingest.pausing import Pausing
from app.ingest.reading import TextExtractor
from app.ingest.sources import Sources
from app.ingest.stored_files import StoredFiles
from app.ingest.watched import WatchedFolders
from app.ingest.worker import Tools, Worker
from app.metrics import Metrics
from app.rag.eval_runs import EvalRunner, EvalTools
from app.rag.gate import Search
from app.rag.llm import chat_for_endpoint
from app.rag.pieces import ChatFn
from app.rag.quoting import make_quoting_chat, quoting_texts
from app.search.embeddings import Embedder
from app.search.generations import Embedders
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import migrate
from app.store.settings import Snapshots
from app.turns.drafts import DraftWriter
from app.turns.registry import TurnRegistry
from app.turns.settle import sweep_at_start
from app.upstream.client import ClientPool, endpoint_from
from app.upstream.discovery import USUAL_PORTS
from app.upstream.windows import Windows
from app.web import chats as chat_fragments
from app.web import evaluation as evaluation_page
from app.web import (
    evaluation_runs,
    exports,
    folder_page,
    folders,
    generations,
    guard_panel,
    language_hint,
    library,
    pages,
    progress_box,
    queries,
    reader,
    reader_pages,
    receipts,
    removing,
)
from app.web import marks as mark_fragments
from app.web import search as search_page
from app.web import settings as settings_page
from app.web import suggest as suggest_fragments
from app.web import web_pages as web_page_fragments
from app.web.error_pages import error_pages
from app.web.static import static_app

OWN_LIMIT_PATHS = frozenset({"/api/documents", "/ui/library/files", "/v1/chat/completions"})
"""Where bodies have a limit of their own: uploads stream to disk (UPLOAD_MAX_MB), completions hold whole talks."""

ROUTES = (
    openai,
    settings_api,
    chat,
    turns,
    chats,
    search,
    web_pages,
    documents,
    collections,
    receipts,
    queries,
    reader,
    exports,
    reader_pages,
    removing,
    library,
    progress_box,
    folders,
    web_page_fragments,
    folder_page,
    language_hint,
    settings_page,
    search_page,
    guard_panel,
    generations,
    pages,
    chat_fragments,
    evaluation_api,
    evaluation_page,
    evaluation_runs,
    marks_api,
    mark_fragments,
    suggest_fragments,
    loop_guard,
)
"""Every module with routes that ask who is there; health checks and metrics are the ones that don't. Routes are looked
through in this order: other programs' requests come first, where a millisecond counts."""


def create_app(  # noqa: PLR0913 - one override for each part that a test may replace
    settings: Settings,
    *,
    clock: Clock | None = None,
    embedder: Embedder | Embedders | None = None,
    searcher: Search | None = None,
    chat_for: ChatFor | None = None,
    discovery_ports: tuple[int, ...] = USUAL_PORTS,
    extractor: TextExtractor | None = None,
) -> FastAPI:
    """Builds the application. The database is migrated here, background work starts with the lifespan.

    Raises:
        DatabaseTooNewError: when a newer Docent wrote the database.
        UnknownEmbedderError: when the environment names a built-in embedder that is not there.
    """
    clock, catalog = clock or SystemClock(), load_catalog()
    database = Database(settings.database)
    migrate(database)
    clients = ClientPool(clock)
    embedders = _embedders(settings, embedder)
    index = VectorIndex()
    running = TurnRegistry(detach_grace_s=settings.turn_detach_grace_s)
    files = StoredFiles(settings.data_dir)
    environment = own_environment(strikes=settings.loop_guard_strikes, stagnation=settings.loop_guard_stagnation)
    counted = Metrics(version=__version__, revision=environment.git_sha or "")
    going = (lambda: running.active > 0, lambda: running.starting)
    tools = Tools(files, extractor or Extractor(), embedders, index, *going, metrics=counted)
    worker = Worker(database, settings, clock, tools)
    guard_log = open_guard_log(database, settings.data_dir, clock, environment, metrics=counted)
    searcher = searcher or Searcher(database, embedders, index, clock=clock)
    words = partial(Searcher, database, embedders, index, generation=lambda _: None)
    quoting = make_quoting_chat(quoting_texts(catalog))
    services = Services(
        settings=settings,
        database=database,
        clock=clock,
        catalog=catalog,
        turns=running,
        drafts=DraftWriter(database),
        searcher=searcher,
        chat_for=chat_for or model_chooser(clients, catalog),
        clients=clients,
        discovery_ports=discovery_ports,
        files=files,
        sources=Sources(database, files, clock, index, worker.wake),
        folders=WatchedFolders(database, settings, clock, worker.wake),
        pages=WebPages(database, Rules(settings.fetch_allow_cidrs), clock, worker.wake),
        progress=worker.board,
        pausing=Pausing(database, clock, worker.wake),
        page_pictures=PagePictures(),
        generations=Generations(database, settings, embedders, clock=clock, wake=worker.wake, pace=worker.build_pace),
        guard_log=guard_log,
        guard_environment=environment,
        guard_backends=Backends(probe_with(clients), clock),
        windows=Windows(clients, clock),
        proxy_guard=ProxyGuard(guard_log),
        snapshots=Snapshots(database),
        metrics=counted,
        evaluations=EvalRunner(database, settings, clock, EvalTools(searcher, words, quoting, count_tokens)),
    )
    return _application(services, worker, embedders)


def _application(services: Services, worker: Worker, embedders: Embedders) -> FastAPI:
    """The routes and what every request passes through."""
    settings, catalog = services.settings, services.catalog
    respond = ErrorResponses(catalog, error_pages(catalog))
    app = FastAPI(
        title="Docent",
        lifespan=_lifespan(services, worker, embedders),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        middleware=_layers(settings, respond),
    )
    app.state.docent = services
    respond.install(app)
    app.mount("/static", static_app())
    _include_routes(app)
    return app


def _include_routes(app: FastAPI) -> None:
    for routes in (health, metrics):
        app.include_router(routes.router)
    for routes in ROUTES:
        app.include_router(routes.router, dependencies=[Depends(current_user)])


def _embedders(settings: Settings, given: Embedder | Embedders | None) -> Embedders:
    embedders = given if isinstance(given, Embedders) else Embedders(settings, given)
    embedders.chosen(settings)  # raises now what would else be met by the first question
    return embedders


def model_chooser(clients: ClientPool, catalog: Catalog) -> ChatFor:
    """What answers a turn: the endpoint of its settings, or the built-in answerer where none is set."""
    quoting = make_quoting_chat(quoting_texts(catalog))

    def chat_for(settings: Settings) -> ChatFn:
        endpoint = endpoint_from(settings)
        return quoting if endpoint is None else chat_for_endpoint(endpoint, clients)

    return chat_for


def own_host_names(settings: Settings) -> tuple[str, ...]:
    """Names this Docent answers to besides localhost and IP addresses: the configured ones and the machine's own."""
    name = socket.gethostname()
    return (*settings.allowed_hosts, name, f"{name.partition('.')[0]}.local")


def _layers(settings: Settings, respond: ErrorResponses) -> list[Middleware]:
    """What every request passes through, outermost first."""
    return [
        Middleware(SecurityHeaders),
        Middleware(LastResort, respond=respond),
        Middleware(OriginCheck, hosts=own_host_names(settings), respond=respond),
        Middleware(
            BodyLimit, limit=body_limit(settings.question_max_chars), own_limit=OWN_LIMIT_PATHS, respond=respond
        ),
    ]


def _lifespan(
    services: Services, worker: Worker, embedders: Embedders
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        await anyio.to_thread.run_sync(sweep_at_start, services.database, services.clock.now())
        drafts = asyncio.create_task(services.drafts.run(), name="drafts")
        await anyio.to_thread.run_sync(services.folders.ensure_environment)
        await anyio.to_thread.run_sync(services.evaluations.sweep)
        await anyio.to_thread.run_sync(worker.start)
        services.guard_log.start()
        try:
            yield
        finally:
            evaluations = anyio.to_thread.run_sync(services.evaluations.stop)
            await asyncio.gather(services.turns.shutdown(), anyio.to_thread.run_sync(worker.stop), evaluations)
            drafts.cancel()
            with suppress(asyncio.CancelledError):
                await drafts
            await anyio.to_thread.run_sync(services.guard_log.stop)
            await services.guard_backends.aclose()
            await services.windows.aclose()
            await services.clients.aclose()
            await anyio.to_thread.run_sync(embedders.close)
            await anyio.to_thread.run_sync(services.database.close)

    return lifespan
