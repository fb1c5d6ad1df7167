"""`/v1/models` and `/v1/chat/completions`: any OpenAI client of the house, with Docent's guards and Docent's documents.

Owns which model a request is for and what is refused before anything is asked. `docent/<slug>` is a collection
(`app.api.openai_library`), every other id goes to the configured server (`app.api.openai_proxy`). Errors are OpenAI's
in shape (`app.api.openai_errors`).
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Request
from starlette.responses import JSONResponse, Response

from app.api import openai_library
from app.api.openai_errors import OpenAiError
from app.api.openai_library import PREFIX
from app.api.openai_proxy import Proxied, ProxyLine, ProxyResponse
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.servers import forget_server
from app.guard.detectors import Limits
from app.guard.log_records import TripOutcome
from app.guard.proxy import NO_MODEL, Judged, Terms
from app.logs import kv
from app.settings import Settings
from app.store import collections
from app.upstream.client import Endpoint, endpoint_from
from app.upstream.failures import UpstreamError
from app.upstream.models import fetch_models
from app.upstream.transport import HOP_HEADER, through_v1

BODY_LIMIT = 64 * 1024 * 1024
"""Bytes of a request: a long conversation, or some pictures."""

INLINE_BYTES = 64 * 1024
"""Bodies up to this size are read on the event loop: handing them to a thread costs more."""

_log = logging.getLogger("app.proxy")


async def _marked() -> None:
    """Marks what is asked of a model server from here on as asked for a client of `/v1`, a collection's turn too."""
    through_v1.set(True)


router = APIRouter(prefix="/v1", dependencies=[Depends(_marked)])


@router.get("/models", response_model=None)
async def list_models(request: Request, services: ServicesDep, user_id: UserDep) -> Response:
    """`{object: "list", data: [{id, object, created, owned_by}…]}`: the user's collections, then what the configured
    server lists; without one, or while it can't be reached, the collections alone."""
    if HOP_HEADER in request.headers:
        return _hop(services).response()
    return JSONResponse({"object": "list", "data": await _models(services, user_id)})


@router.get("/models/{model:path}", response_model=None)
async def get_model(model: str, services: ServicesDep, user_id: UserDep) -> Response:
    """One entry of the list."""
    for entry in await _models(services, user_id):
        if entry.get("id") == model:
            return JSONResponse(entry)
    return _unknown(services, model).response()


@router.post("/chat/completions", response_model=None)
async def complete(
    request: Request,
    services: ServicesDep,
    user_id: UserDep,
    session: Annotated[str | None, Header(alias="X-Docent-Session-Id")] = None,
) -> Response:
    """One chat completion, streamed or whole; unknown fields go on as they came."""
    try:
        return await _complete(request, services, user_id, session)
    except OpenAiError as error:
        return error.response()


async def _complete(request: Request, services: Services, user_id: int, session: str | None) -> Response:
    catalog = services.catalog
    if HOP_HEADER in request.headers:
        raise _hop(services)
    raw = await _body(request, services)
    inline = len(raw) <= INLINE_BYTES
    body = _parsed(services, raw) if inline else await to_thread.run_sync(_parsed, services, raw)
    if body is not None and (model := _model_of(services, body)).startswith(PREFIX):
        asked = await _library_question(services, user_id, model, body)
        return await openai_library.answer(services, user_id, asked)
    settings = await services.snapshots.current(services.settings)
    endpoint = endpoint_from(settings)
    if endpoint is None:
        raise OpenAiError(404, "model_not_found", catalog.t("openai.no_endpoint"))
    return await _proxied(services, settings, endpoint, raw, body, session)


async def _proxied(
    services: Services,
    settings: Settings,
    endpoint: Endpoint,
    raw: bytes,
    body: Mapping[str, Any] | None,
    session: str | None,
) -> Response:
    """The request goes on, unless the guard refuses it. One too deeply nested to be read goes on unjudged."""
    line = ProxyLine(NO_MODEL, settings.loop_guard_mode, verdict="unread", metrics=services.metrics)
    if body is None:
        proxied = Proxied(endpoint, raw, filtered=False)
        return ProxyResponse(services.catalog, services.clock, proxied, line)
    limits = Limits(strikes=settings.loop_guard_strikes, stagnation=settings.loop_guard_stagnation)
    own = replace(services.guard_environment, observation=limits.allowance)
    environment = services.guard_backends.environment(own, endpoint, str(body["model"])[:256])
    terms = Terms(settings.loop_guard_mode, limits, environment)

    def judge() -> Judged:
        return services.proxy_guard.judge(raw, body, terms, session=session)

    judged = judge() if len(raw) <= INLINE_BYTES else await to_thread.run_sync(judge)
    line.model, line.verdict = str(body["model"])[:256], judged.verdict
    if judged.refused is not None:
        line.outcome, line.status = "refused", 400
        line.log()
        return JSONResponse(judged.refused, 400)
    proxied = Proxied(endpoint, judged.body, filtered=not _offers_tools(body))
    response = ProxyResponse(services.catalog, services.clock, proxied, line)
    response.on_lost = lambda: forget_server(services, endpoint)
    if (trip := judged.trip) is not None:
        response.on_end = lambda ended: services.guard_log.settled(trip, _outcome(ended))
    return response


def _outcome(line: ProxyLine) -> TripOutcome:
    """What became of a noted request, and what it cost."""
    usage = line.usage or {}
    return TripOutcome(
        outcome=f"not_sent:{line.why}" if line.why else "delivered",
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        seconds=line.total_ms / 1000,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


async def _body(request: Request, services: Services) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_LIMIT:
            message = services.catalog.t("openai.too_large", limit_mb=BODY_LIMIT // (1024 * 1024))
            raise OpenAiError(413, "too_large", message)
    return bytes(body)


def _parsed(services: Services, raw: bytes) -> Mapping[str, Any] | None:
    """The body as an object; None for one that is nested too deeply to be read.

    Raises:
        OpenAiError: for anything else that is no JSON object.
    """
    try:
        body: object = json.loads(raw)
    except RecursionError:
        return None
    except ValueError:
        raise OpenAiError(400, "not_json", services.catalog.t("openai.not_json")) from None
    if not isinstance(body, dict):
        raise OpenAiError(400, "not_an_object", services.catalog.t("openai.not_an_object"))
    return cast("dict[str, Any]", body)


def _model_of(services: Services, body: Mapping[str, Any]) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise OpenAiError(400, "no_model", services.catalog.t("openai.no_model"))
    return model


def _offers_tools(body: Mapping[str, Any]) -> bool:
    """Whether the client can run calls, so that what looks like one is left to it."""
    return bool(body.get("tools") or body.get("functions"))


async def _library_question(
    services: Services, user_id: int, model: str, body: Mapping[str, Any]
) -> openai_library.LibraryQuestion:
    rows = await services.database.aread(lambda session: collections.list_collections(session, user_id))
    found = next((row for row in rows if row.slug == model.removeprefix(PREFIX)), None)
    if found is None:
        raise _unknown(services, model)
    limit = services.settings.question_max_chars
    return openai_library.read_question(services.catalog, body, found.id, max_chars=limit)


async def _models(services: Services, user_id: int) -> list[dict[str, Any]]:
    rows = await services.database.aread(lambda session: collections.list_collections(session, user_id))
    own = [_entry(PREFIX + row.slug, int(row.created_at.timestamp()), "docent") for row in rows]
    settings = await services.snapshots.current(services.settings)
    endpoint = endpoint_from(settings)
    if endpoint is None:
        return own
    try:
        listed = await fetch_models(await services.clients.http(endpoint), endpoint)
    except UpstreamError as error:
        _log.info(kv("models_not_listed", code=error.failure.code, reason=error.failure.reason))
        return own
    return own + [_entry(model.id, 0, model.owned_by or "-") for model in listed]


def _entry(identity: str, created: int, owner: str) -> dict[str, Any]:
    return {"id": identity, "object": "model", "created": created, "owned_by": owner}


def _hop(services: Services) -> OpenAiError:
    return OpenAiError(508, "hop", services.catalog.t("openai.hop"), retryable=False)


def _unknown(services: Services, model: str) -> OpenAiError:
    return OpenAiError(404, "model_not_found", services.catalog.t("openai.model_not_found", model=model[:200]))
