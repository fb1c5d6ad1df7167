"""Choosing an embedder: what a choice must look like, testing it, and having everything embedded by it.

Owns that a saved key goes to no other host than the one it was saved for, and that nothing is chosen that does not
answer. What a choice then does is `app.ingest.generations`'. Shared by the API and the settings page.
"""

import logging
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio.to_thread

from app.edge import model_settings
from app.edge.deps import Services
from app.edge.model_settings import MAX_CHARS, MAX_MODEL_CHARS, InvalidSettingError
from app.errors import ConflictError
from app.ingest.generations import Begun
from app.logs import kv
from app.search import choice
from app.search.choice import Spec
from app.search.embed_probe import EmbedReport, probe_built_in, probe_endpoint
from app.settings import Settings
from app.upstream.client import Endpoint
from app.upstream.failures import UpstreamError
from app.upstream.probe import list_models

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """What was chosen: the name of a built-in embedder, or an address and a model. `api_key` None: as it is saved."""

    built_in: str = ""
    base_url: str = ""
    model: str = ""
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tested:
    """A test and, where it may help to choose one, the names of the server's models."""

    report: EmbedReport
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """What came of a choice: nothing (`begun` None) where the test failed."""

    tested: Tested
    begun: Begun | None


async def test(services: Services, given: EmbedderChoice) -> Tested:
    """Asks the embedder for one vector; nothing is stored.

    Raises:
        ConflictError: `embedder_locked` where the environment chooses, `no_endpoint` without an address.
        InvalidSettingError: for a value that can't be used.
        UnknownEmbedderError: for a built-in embedder that is not there.
    """
    settings, spec = await _checked(services, given)
    return await _tested(settings, spec)


async def choose(services: Services, user_id: int, given: EmbedderChoice) -> Chosen:
    """Tests, and has everything embedded by it if it answers.

    Raises:
        ConflictError: as above.
        InvalidSettingError: as above.
        UnknownEmbedderError: as above.
    """
    settings, spec = await _checked(services, given)
    tested = await _tested(settings, spec)
    if not tested.report.ok:
        return Chosen(tested, None)
    begun = await anyio.to_thread.run_sync(services.generations.choose, user_id, spec, tested.report.dim)
    return Chosen(tested, begun)


async def _tested(settings: Settings, spec: Spec) -> Tested:
    endpoint = choice.endpoint_of(spec, settings)
    if endpoint is None:
        return Tested(await anyio.to_thread.run_sync(probe_built_in, choice.make(spec, settings)))
    if not spec.model:
        names = await _models(endpoint)
        return Tested(EmbedReport(reason="no_model", params={"server": endpoint.server}), names)
    report = await anyio.to_thread.run_sync(probe_endpoint, endpoint)
    _log.info(kv("embedder_tested", server=endpoint.server, ok=report.ok, dim=report.dim, reason=report.reason))
    return Tested(report, () if report.ok or report.reason != "model" else await _models(endpoint))


async def _models(endpoint: Endpoint) -> tuple[str, ...]:
    try:
        return tuple(await list_models(endpoint))
    except UpstreamError:
        return ()


async def _checked(services: Services, given: EmbedderChoice) -> tuple[Settings, Spec]:
    """The settings in effect and what was chosen, in its normal form."""
    if services.settings.is_embedder_locked:
        raise ConflictError("embedder_locked", setting="EMBED_MODEL")
    settings = await model_settings.snapshot(services)
    if given.built_in:
        return settings, Spec(choice.built_in(given.built_in).name)
    if not given.base_url.strip():
        raise ConflictError("no_embed_endpoint", setting="EMBED_BASE_URL")
    base_url, model = model_settings.normal_url(given.base_url, "embed_base_url"), given.model.strip()
    if not model.isprintable() or len(model) > MAX_MODEL_CHARS:
        raise InvalidSettingError("embed_model", "model")
    key = given.api_key.strip() if given.api_key is not None else _saved_key(settings, base_url)
    if key and not (key.isascii() and key.isprintable() and len(key) <= MAX_CHARS):
        raise InvalidSettingError("embed_api_key", "key")
    if services.settings.is_locked("embed_api_key"):
        key = services.settings.embed_api_key
    return settings, Spec(model, base_url, key or None)


def _saved_key(settings: Settings, base_url: str) -> str | None:
    saved = settings.embed_base_url
    is_same = saved is not None and urlsplit(saved).hostname == urlsplit(base_url).hostname
    return settings.embed_api_key if is_same else None
