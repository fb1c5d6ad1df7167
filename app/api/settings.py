"""`/api/settings`: reading and changing what the page can; testing the model endpoint, its models, servers nearby.

Owns shapes only; checks and effects are `app.edge.model_settings`' and `app.edge.embedder_settings`', which the
settings page shares. A secret is never part of an answer, only whether one is set and its last four characters.
"""

from dataclasses import asdict
from typing import Any

import anyio.to_thread
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from app.edge import embedder_settings, model_settings
from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import InputText
from app.ingest.generations import Standing
from app.settings import EMBEDDER, Settings
from app.store.generations import GenerationRow
from app.store.settings import describe
from app.upstream.client import endpoint_from
from app.upstream.probe import ConnectionReport

router = APIRouter(prefix="/api/settings")


class EndpointBody(BaseModel):
    """Fields to test with; one that is left out stays as it is, null or "" removes it."""

    model_config = ConfigDict(extra="forbid")

    llm_base_url: InputText | None = None
    llm_api_key: InputText | None = None
    llm_model: InputText | None = None

    def given(self) -> dict[str, str | None]:
        """The fields that stand in the request."""
        return {field: getattr(self, field) for field in self.model_fields_set}


class SettingsBody(EndpointBody):
    """Fields to change, in the same manner; `loop_guard_mode` is note, refuse or off.

    The embedder's three fields are one choice, and never change what serves under it: see `change_settings`. Without
    `embed_base_url`, `embed_model` names a built-in one; without both it is the default.
    """

    loop_guard_mode: str | None = None
    embed_base_url: InputText | None = None
    embed_api_key: InputText | None = None
    embed_model: InputText | None = None


@router.get("")
async def read_settings(services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{fields: {name: {value, locked, is_set, last4}}, connected, embedder: {serving, building}}`.

    `serving` is `{id, model, base_url, floor}`, null before anything was embedded; `floor` is the cosine that scores
    are counted from, null while it is not measured. `building` is `{id, model, base_url, done, total, built}`, null
    where nothing is.
    """
    return await _shown(services, await model_settings.snapshot(services))


@router.put("")
async def change_settings(body: SettingsBody, services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """Stores what is given and answers as GET does, with `key_dropped`: the address leads to another host now.

    Another embedder is tested first, as on the settings page; then everything is embedded by it beside what serves, and
    a person switches there once it is built. `begun` says so: `building`; `active` where it took over at once, since
    nothing was embedded or nothing served; `same` where it was chosen already. Without a field of the embedder's there
    is no `begun`. All or nothing: when a part is refused, nothing is stored.

    Raises:
        ConflictError: 409 for a field the environment fixes.
        EmbedderTestError: 502 when the embedder does not answer as one.
        InvalidSettingError: 422 for a value that cannot be used.
        UnknownEmbedderError: 422 for a built-in embedder that is not there.
    """
    given = body.given()
    embedder = {field: given.pop(field) for field in EMBEDDER & given.keys()}
    await model_settings.check(services, given)
    begun = {"begun": await embedder_settings.change(services, user_id, embedder)} if embedder else {}
    saved = await model_settings.save(services, user_id, given)
    return {**await _shown(services, saved.settings), "key_dropped": saved.key_dropped, **begun}


@router.post("/test")
async def check_connection(services: ServicesDep, user_id: UserDep, body: EndpointBody | None = None) -> dict[str, Any]:
    """Tests the endpoint with the values given in place of the saved ones; 200 also when it fails.

    Raises:
        ConflictError: 409 without an address.
        InvalidSettingError: 422 for a value that cannot be used.
    """
    return _report(services, await model_settings.test(services, body.given() if body else {}))


@router.get("/models")
async def list_models(services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{models: [id…], model}`: what the saved endpoint lists, and which one is set.

    Raises:
        ConflictError: 409 without an endpoint.
        LLMError: 502 when the list cannot be had.
    """
    found = await model_settings.models(services)
    return {"models": found, "model": (await model_settings.snapshot(services)).llm_model}


@router.get("/discover")
async def discover(services: ServicesDep, user_id: UserDep) -> dict[str, Any]:
    """`{servers: [{base_url, kind, version, models}], ports}`: model servers on this machine."""
    found = await model_settings.discover(services)
    return {"servers": [asdict(server) for server in found], "ports": list(services.discovery_ports)}


async def _shown(services: Services, settings: Settings) -> dict[str, Any]:
    views = describe(services.settings, settings)
    fields = {name: asdict(view) for name, view in views.items() if name in {*model_settings.FIELDS, *EMBEDDER}}
    embedder = _embedder(await anyio.to_thread.run_sync(services.generations.standing))
    return {"fields": fields, "connected": endpoint_from(settings) is not None, "embedder": embedder}


def _embedder(standing: Standing) -> dict[str, Any]:
    active, build = standing.active, standing.build
    return {
        "serving": {**_named(active), "floor": standing.floor} if active is not None else None,
        "building": {**_named(build.row), **asdict(build.counted), "built": build.row.built_at is not None}
        if build is not None
        else None,
    }


def _named(row: GenerationRow) -> dict[str, Any]:
    return {"id": row.id, "model": row.model, "base_url": row.base_url}


def _report(services: Services, report: ConnectionReport) -> dict[str, Any]:
    facts = {key: value for key, value in asdict(report).items() if key != "failure"}
    if report.failure is None:
        return facts
    failure = report.failure
    error = {
        "code": failure.code,
        "reason": failure.reason,
        "message": model_settings.failure_message(services.catalog, failure),
        "setting": failure.setting,
    }
    return {**facts, "error": error}
