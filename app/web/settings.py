"""The settings page: the model server (test, save, find, remove), search, folders, appearance, about.

Owns `/settings` and its fragments under `/ui/settings`. What a value must look like and what a test asks is
`app.edge.model_settings`', shared with the API. Each action of the model's form answers with the form for htmx and with
the whole page for a browser without script.
"""

import platform
import sqlite3
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

import app
from app.edge import model_settings
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_message
from app.edge.inputs import GuardDays
from app.edge.model_settings import failure_message
from app.errors import AppError
from app.store import documents
from app.store import settings as stored
from app.upstream.probe import ConnectionReport
from app.web import folders, generations, guard_panel, settings_view
from app.web.settings_view import Fact, Server
from app.web.side import connected
from app.web.templating import is_htmx, render_fragment, render_page

router = APIRouter()


class ModelFields(BaseModel):
    """The model's form as it is sent. An empty key means "as it is"; a locked field is not sent."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    base_url: str | None = None
    model: str | None = None
    api_key: str = ""
    forget_key: str = ""

    def values(self) -> dict[str, str | None]:
        """What is to be changed or tested with, by setting."""
        given: dict[str, str | None] = {}
        if self.base_url is not None:
            given["llm_base_url"] = self.base_url
        if self.model is not None:
            given["llm_model"] = self.model
        if self.api_key:
            given["llm_api_key"] = self.api_key
        elif self.forget_key:
            given["llm_api_key"] = None
        return given


class ConnectFields(BaseModel):
    """One found server, chosen."""

    model_config = ConfigDict(extra="forbid")

    base_url: str
    back: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an action of the model's form: the values to keep in it, and what there is to say."""

    values: dict[str, str | None] = field(default_factory=dict[str, str | None])
    report: ConnectionReport | None = None
    error: AppError | None = None
    notice: str = ""
    models: tuple[str, ...] = ()
    servers: tuple[Server, ...] | None = None


@router.get("/settings", response_class=HTMLResponse)
def settings_page(
    request: Request, services: ServicesDep, user_id: UserDep, guard_days: GuardDays | None = None
) -> HTMLResponse:
    """The page with what is saved; `guard_days` shows that window of the guard's log at once, for who has no script."""
    return _page(services, Outcome(), request=request, user_id=user_id, guard_days=guard_days)


@router.get("/ui/settings/models", response_class=HTMLResponse)
async def models_fragment(services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The field for the model with the choices that the saved server lists; a field to type in where it lists none."""
    try:
        names = await model_settings.models(services)
    except AppError:
        names = []
    return await anyio.to_thread.run_sync(_models_field, services, names)


@router.post("/ui/settings/test")
async def check_connection(
    request: Request,
    services: ServicesDep,
    user_id: UserDep,
    fields: Annotated[ModelFields, Form()],
    address: Annotated[str | None, Query(max_length=2000)] = None,
) -> Response:
    """Tests what is typed, saved or not; `address` is the one that a failed test proposed instead."""
    values = fields.values()
    if address is not None:
        values["llm_base_url"] = address
    try:
        report = await model_settings.test(services, values)
    except AppError as error:
        return await _answer(services, request, user_id, Outcome(values, error=error))
    if report.ok and not values.get("llm_model"):
        values["llm_model"] = report.model
    return await _answer(services, request, user_id, Outcome(values, report=report))


@router.post("/ui/settings/model")
async def save(
    request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[ModelFields, Form()]
) -> Response:
    """Saves what is typed, in effect from the next question on."""
    values = fields.values()
    try:
        saved = await model_settings.save(services, user_id, values)
    except AppError as error:
        return await _answer(services, request, user_id, Outcome(values, error=error))
    return await _answer(services, request, user_id, Outcome(notice=_saved_words(services, saved)))


@router.post("/ui/settings/remove")
async def remove(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """Removes the model server: questions are answered with quotes again."""
    gone = [field for field in model_settings.ENDPOINT_FIELDS if not services.settings.is_locked(field)]
    await model_settings.save(services, user_id, dict.fromkeys(gone))
    return await _answer(services, request, user_id, Outcome(notice=services.catalog.t("settings.removed")))


@router.post("/ui/settings/find")
async def find(
    request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[ModelFields, Form()]
) -> Response:
    """Looks for model servers on this machine; what is typed stays."""
    return await _answer(services, request, user_id, Outcome(fields.values(), servers=await _servers(services)))


@router.get("/ui/settings/servers", response_class=HTMLResponse)
async def servers_fragment(services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """The servers on this machine for the first-run page, each with its button."""
    return await anyio.to_thread.run_sync(_servers_list, services, await _servers(services))


@router.post("/ui/settings/connect")
async def connect(
    request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[ConnectFields, Form()]
) -> Response:
    """One click on a found server: tests it and, if it answers, saves it with its model."""
    values: dict[str, str | None] = {"llm_base_url": fields.base_url, "llm_model": None}
    if services.settings.is_locked("llm_model"):
        del values["llm_model"]
    try:
        report = await model_settings.test(services, values)
        if not report.ok:
            return await _answer(services, request, user_id, Outcome(values, report=report))
        if "llm_model" in values:
            values["llm_model"] = report.model
        saved = await model_settings.save(services, user_id, values)
    except AppError as error:
        return await _answer(services, request, user_id, Outcome(values, error=error))
    if fields.back == "start":
        return RedirectResponse("/", status_code=303)
    return await _answer(services, request, user_id, Outcome(report=report, notice=_saved_words(services, saved)))


async def _answer(services: Services, request: Request, user_id: int, outcome: Outcome) -> Response:
    """The form for htmx, the page for a plain form, with what came of the action. Rendered on a worker thread."""
    make = _fragment if is_htmx(request) else partial(_page, request=request, user_id=user_id)
    return await anyio.to_thread.run_sync(make, services, outcome)


def _fragment(services: Services, outcome: Outcome) -> HTMLResponse:
    status = outcome.error.status if outcome.error is not None else 200
    snapshot = services.database.read(lambda session: stored.effective(session, services.settings))
    context = _context(services, outcome)
    return render_fragment(services, "settings/_form.html", status=status, side=connected(snapshot), **context)


def _models_field(services: Services, names: list[str]) -> HTMLResponse:
    context = {**_context(services, Outcome(models=tuple(names))), "ask": False}
    return render_fragment(services, "settings/_model_name.html", **context)


def _servers_list(services: Services, found: tuple[Server, ...]) -> HTMLResponse:
    words = _servers_words(services, found)
    return render_fragment(services, "settings/_servers.html", servers=found, servers_words=words, back="start")


def _page(
    services: Services, outcome: Outcome, *, request: Request, user_id: int, guard_days: int | None = None
) -> HTMLResponse:
    counts = services.database.read(lambda session: documents.counts(session, user_id))
    return render_page(
        services,
        request,
        user_id,
        "settings/page.html",
        status=outcome.error.status if outcome.error is not None else 200,
        place="settings",
        about=_about(services, counts),
        **folders.context(services, user_id),
        **guard_panel.context(services, days=guard_days),
        **generations.context(services, user_id),
        **_context(services, outcome),
    )


def _context(services: Services, outcome: Outcome) -> dict[str, Any]:
    """What the model's form needs."""
    catalog, report = services.catalog, outcome.report
    snapshot = services.database.read(lambda session: stored.effective(session, services.settings))
    listed = report.models if report is not None else outcome.models
    result = None
    if report is not None:
        sentence = failure_message(catalog, report.failure) if report.failure is not None else ""
        result = settings_view.connection_box(report, sentence, catalog, snapshot.llm_context_tokens)
    form = settings_view.model_form(
        stored.describe(services.settings, snapshot),
        outcome.values,
        catalog,
        models=listed,
        problem=error_message(catalog, outcome.error) if outcome.error is not None else "",
    )
    return {
        "form": form,
        "result": result,
        "notice": outcome.notice,
        "ask": form.saved and not listed,
        "servers": outcome.servers,
        "servers_words": _servers_words(services, outcome.servers or ()),
        "back": "",
    }


async def _servers(services: Services) -> tuple[Server, ...]:
    return tuple(settings_view.server(item, services.catalog) for item in await model_settings.discover(services))


def _servers_words(services: Services, found: tuple[Server, ...]) -> str:
    ports = ", ".join(str(port) for port in services.discovery_ports)
    catalog = services.catalog
    return catalog.t("settings.found", n=len(found)) if found else catalog.t("settings.found_none", ports=ports)


def _saved_words(services: Services, saved: model_settings.Saved) -> str:
    catalog = services.catalog
    model = saved.settings.llm_model
    words = catalog.t("settings.saved", model=model) if model else catalog.t("settings.saved_first")
    return f"{words} {catalog.t('settings.key_dropped')}" if saved.key_dropped else words


def _about(services: Services, counts: documents.Counts) -> list[Fact]:
    catalog, settings = services.catalog, services.settings
    size = catalog.size(database_bytes(services.database.path))
    holds = {
        "documents": catalog.t("library.documents", n=counts.documents),
        "passages": catalog.t("library.passages", n=counts.passages),
    }
    facts = (
        ("version", app.__version__, False),
        ("sqlite", sqlite3.sqlite_version, False),
        ("python", platform.python_version(), False),
        ("data_folder", str(settings.data_dir), True),
        ("counts", catalog.t("settings.counts_value", **holds), False),
        ("database_size", size, False),
        ("upload_limit", catalog.size(settings.upload_max_mb * 10**6), False),
        ("licence", catalog.t("settings.licence_value"), False),
    )
    return [Fact(catalog.t(f"settings.{name}"), value, mono) for name, value, mono in facts]


def database_bytes(path: Path) -> int:
    """All of the database: what was written last stands in a second file (`-wal`) until it is taken over."""
    files = (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"))
    return sum(file.stat().st_size for file in files if file.is_file())
