"""What a route gets handed: the application's services and who is asking.

Owns the `Services` record, which `app.main` fills once; routes of `app.api` and `app.web` take it with `Depends`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.catalog import Catalog
from app.clock import Clock
from app.edge.auth import current_user
from app.guard.backends import Backends
from app.guard.log_writer import GuardLog
from app.guard.proxy import ProxyGuard
from app.ingest.extract.page_pictures import PagePictures
from app.ingest.fetch_pages import WebPages
from app.ingest.generations import Generations
from app.ingest.pausing import Pausing
from app.ingest.progress import ProgressBoard
from app.ingest.sources import Sources
from app.ingest.stored_files import StoredFiles
from app.ingest.watched import WatchedFolders
from app.metrics import Metrics
from app.rag.eval_runs import EvalRunner
from app.rag.gate import Search
from app.rag.pieces import ChatFn
from app.settings import Settings
from app.store.engine import Database
from app.store.loop_guard_log import Environment
from app.store.settings import Snapshots
from app.turns.drafts import DraftWriter
from app.turns.registry import TurnRegistry
from app.upstream.client import ClientPool
from app.upstream.windows import Windows

ChatFor = Callable[[Settings], ChatFn]
"""Settings snapshot → the model of a turn: an endpoint's, or the built-in answerer where none is set."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a route may use. `settings` is the environment's; a turn or job takes its own snapshot with
    `app.store.settings.effective`."""

    settings: Settings
    database: Database
    clock: Clock
    catalog: Catalog
    turns: TurnRegistry
    drafts: DraftWriter
    searcher: Search
    chat_for: ChatFor
    clients: ClientPool
    discovery_ports: tuple[int, ...]
    files: StoredFiles
    sources: Sources
    folders: WatchedFolders
    pages: WebPages
    progress: ProgressBoard
    pausing: Pausing
    page_pictures: PagePictures
    generations: Generations
    guard_log: GuardLog
    guard_environment: Environment
    guard_backends: Backends
    windows: Windows
    proxy_guard: ProxyGuard
    snapshots: Snapshots
    metrics: Metrics
    evaluations: EvalRunner


async def get_services(request: Request) -> Services:
    """The services of the application that serves `request`."""
    services: Services = request.app.state.docent
    return services


ServicesDep = Annotated[Services, Depends(get_services)]
UserDep = Annotated[int, Depends(current_user)]
