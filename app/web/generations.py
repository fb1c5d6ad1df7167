"""The settings page's search section: the embedder chosen and tested, the build watched, the switch.

Owns the fragments under `/ui/settings/embedder` and the two pages that ask before something is lost. Actions answer
htmx with the section's body, a plain form with the page. What they do is `app.edge.embedder_settings`' and
`app.ingest.generations`'.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict

from app.edge import embedder_settings
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.embedder_settings import EmbedderChoice, Tested
from app.edge.errors import error_message
from app.edge.inputs import RowId
from app.errors import AppError, ConflictError
from app.ingest.generations import Standing
from app.store import documents
from app.store import settings as stored
from app.web import generations_view
from app.web.generations_view import ENDPOINT
from app.web.language_hint import language_hint
from app.web.templating import is_htmx, render_fragment, render_page

router = APIRouter()

PLACE = "/settings#search"


class ChoiceFields(BaseModel):
    """The form of the embedder. An empty key means "as it is"."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    embed_url: str = ""
    embed_model: str = ""
    embed_key: str = ""
    forget_key: str = ""

    def choice(self, address: str | None = None) -> EmbedderChoice:
        """What is to be tested or used; `address` is one that a test proposed instead."""
        if self.kind != ENDPOINT:
            return EmbedderChoice(built_in=self.kind)
        key = self.embed_key or ("" if self.forget_key else None)
        return EmbedderChoice(base_url=address or self.embed_url, model=self.embed_model, api_key=key)


@dataclass(frozen=True, slots=True)
class Confirm:
    """A question before something is lost, as `library/_confirm.html` shows it."""

    action: str
    title: str
    loses: str
    verb: str
    more: str = ""
    back: str = PLACE


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an action: what was typed, its test, what there is to say."""

    typed: EmbedderChoice | None = None
    tested: Tested | None = None
    error: AppError | None = None
    notice: str = ""


@router.get("/ui/settings/embedder", response_class=HTMLResponse)
def panel_fragment(services: ServicesDep, user_id: UserDep) -> HTMLResponse:
    """What serves, what is built, what is kept: asked again and again while something is built."""
    return render_fragment(services, "settings/_generations.html", **_panel(services, user_id))


@router.post("/ui/settings/embedder/test")
async def check_embedder(
    request: Request,
    services: ServicesDep,
    user_id: UserDep,
    fields: Annotated[ChoiceFields, Form()],
    address: Annotated[str | None, Query(max_length=2000)] = None,
) -> Response:
    """Tests what is typed; nothing is stored."""
    typed = fields.choice(address)
    try:
        outcome = Outcome(typed, await embedder_settings.test(services, typed))
    except AppError as error:
        outcome = Outcome(typed, error=error)
    return await _answer(services, request, user_id, outcome)


@router.post("/ui/settings/embedder")
async def use_embedder(
    request: Request, services: ServicesDep, user_id: UserDep, fields: Annotated[ChoiceFields, Form()]
) -> Response:
    """Has everything embedded by what is typed, if it answers."""
    typed = fields.choice()
    try:
        chosen = await embedder_settings.choose(services, user_id, typed)
    except AppError as error:
        return await _answer(services, request, user_id, Outcome(typed, error=error))
    if chosen.begun is None:
        return await _answer(services, request, user_id, Outcome(typed, chosen.tested))
    notice = services.catalog.t(f"generations.begun_{chosen.begun}")
    return await _answer(services, request, user_id, Outcome(notice=notice))


@router.post("/ui/settings/embedder/{action}")
async def act(
    request: Request,
    services: ServicesDep,
    user_id: UserDep,
    action: Literal["pause", "resume", "cancel", "alone", "ask", "compare", "keep"],
) -> Response:
    """Pause, go on, cancel, switch by itself or not, compare again, keep the new one."""
    return await _decide(services, request, user_id, lambda: _act(services, user_id, action))


@router.post("/ui/settings/embedder/switch/{generation_id}")
async def switch(request: Request, services: ServicesDep, user_id: UserDep, generation_id: RowId) -> Response:
    """Makes what is built, or was kept, the one that serves."""
    return await _decide(services, request, user_id, lambda: _switch(services, user_id, generation_id))


@router.get("/ui/settings/embedder/confirm/{action}", response_class=HTMLResponse)
def confirm_fragment(services: ServicesDep, action: Literal["cancel", "keep"]) -> HTMLResponse:
    """The question before vectors are deleted."""
    return render_fragment(services, "settings/_generation_confirm.html", confirm=_confirm(services, action))


@router.get("/settings/embedder/{action}", response_class=HTMLResponse)
def confirm_page(
    request: Request, services: ServicesDep, user_id: UserDep, action: Literal["cancel", "keep"]
) -> HTMLResponse:
    """The same as a page, for a browser without script."""
    confirm = _confirm(services, action)
    return render_page(services, request, user_id, "library/confirm.html", place="settings", confirm=confirm)


def context(services: Services, user_id: int) -> dict[str, Any]:
    """What the section needs."""
    return {**_panel(services, user_id), **_form(services, Outcome()), "embedder_notice": ""}


async def _decide(services: Services, request: Request, user_id: int, decide: Any) -> Response:
    try:
        notice = await anyio.to_thread.run_sync(decide)
    except ConflictError as error:
        return await _answer(services, request, user_id, Outcome(error=error))
    return await _answer(services, request, user_id, Outcome(notice=notice))


async def _answer(services: Services, request: Request, user_id: int, outcome: Outcome) -> Response:
    if not is_htmx(request) and outcome.typed is None and outcome.error is None:
        return RedirectResponse(PLACE, status_code=303)
    return await anyio.to_thread.run_sync(_rendered, services, request, user_id, outcome)


def _rendered(services: Services, request: Request, user_id: int, outcome: Outcome) -> HTMLResponse:
    values = {**_panel(services, user_id), **_form(services, outcome), "embedder_notice": outcome.notice}
    status = outcome.error.status if outcome.error is not None else 200
    if is_htmx(request):
        return render_fragment(services, "settings/_search_body.html", status=status, **values)
    return render_page(services, request, user_id, "settings/embedder.html", status=status, place="settings", **values)


def _act(services: Services, user_id: int, action: str) -> str:
    decided = services.generations
    match action:
        case "pause" | "resume":
            decided.pause(paused=action == "pause")
        case "alone" | "ask":
            decided.set_auto_switch(auto=action == "alone")
        case "cancel":
            decided.cancel(user_id)
        case "compare":
            decided.compare_again()
        case _:
            decided.keep_new(user_id)
    key = f"generations.did_{action}"
    return services.catalog.t(key) if services.catalog.has(key) else ""


def _switch(services: Services, user_id: int, generation_id: int) -> str:
    services.generations.switch(user_id, generation_id)
    active = services.generations.standing().active
    called = generations_view.name(active, services.catalog) if active is not None else ""
    return services.catalog.t("generations.did_switch", name=called)


def _confirm(services: Services, action: str) -> Confirm:
    catalog, standing = services.catalog, services.generations.standing()
    confirm = Confirm(
        f"/ui/settings/embedder/{action}",
        catalog.t(f"generations.{action}_title"),
        catalog.t(f"generations.{action}_loses"),
        catalog.t(f"generations.{action}_verb"),
    )
    if action == "keep":
        size = catalog.size(sum(kept.bytes for kept in standing.kept))
        return replace(confirm, loses=catalog.t("generations.keep_loses", size=size))
    return confirm


def _panel(services: Services, user_id: int) -> dict[str, Any]:
    catalog, standing = services.catalog, services.generations.standing()
    counts, state = services.database.read(
        lambda session: (
            documents.counts(session, user_id),
            documents.progress(session, user_id, services.clock.now()),
        )
    )
    build = standing.build
    return {
        "serving": generations_view.serving(standing, counts.passages, state.passages - state.embedded, catalog),
        "build": generations_view.build_view(build, standing, user_id, catalog) if build is not None else None,
        "kept": [generations_view.kept_view(kept, standing.active, catalog) for kept in standing.kept],
        "embedder_locked": services.settings.is_embedder_locked,
        "watched": _is_watched(standing),
        "languages": language_hint(services, user_id),
        "threshold": catalog.t("settings.threshold_value", score=catalog.number(services.settings.retrieval_min_score)),
        "top_k": catalog.t("settings.top_k_value", n=services.settings.retrieval_top_k),
    }


def _is_watched(standing: Standing) -> bool:
    """Whether the page has to look again by itself: what is built goes on, or its server is tried again."""
    return standing.build is not None and standing.build.is_working


def _form(services: Services, outcome: Outcome) -> dict[str, Any]:
    catalog = services.catalog
    snapshot = services.database.read(lambda session: stored.effective(session, services.settings))
    fields = stored.describe(services.settings, snapshot)
    form = generations_view.embedder_form(fields, outcome.typed, outcome.tested, catalog)
    problem = error_message(catalog, outcome.error) if outcome.error is not None else ""
    return {
        "embedder": replace(form, problem=problem if outcome.typed is not None else ""),
        "embedder_result": generations_view.result(outcome.tested, catalog) if outcome.tested is not None else None,
        "embedder_problem": problem if outcome.typed is None else "",
    }
