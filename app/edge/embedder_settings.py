"""Choosing an embedder: what a choice must look like, testing it, and having everything embedded by it.

Owns that a saved key goes to no other host than the one it was saved for, and that nothing is chosen that does not
answer. What a choice then does is `app.ingest.generations`'. Shared by the API and the settings page.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio.to_thread

from app.catalog import Catalog
from app.edge import model_settings
from app.edge.deps import Services
from app.edge.model_settings import MAX_CHARS, MAX_MODEL_CHARS, InvalidSettingError
from app.errors import ConflictError
from app.ingest.generations import Begun
from app.logs import kv
from app.search import choice
from app.search.choice import Spec
from app.search.embed_probe import EmbedReport, probe_built_in, probe_endpoint
from app.search.errors import EmbedError
from app.settings import Settings
from app.upstream.client import Endpoint
from app.upstream.failures import UpstreamError
from app.upstream.probe import list_models

_log = logging.getLogger(__name__)


class EmbedderTestError(EmbedError):
    """What was chosen does not answer as an embedder, so nothing was changed; `said` is the test's sentence."""

    default_code = "embed_test_failed"

    def __init__(self, said: str) -> None:
        super().__init__(retryable=False, params={"said": said})


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


async def change(services: Services, user_id: int, values: Mapping[str, str | None]) -> Begun:
    """What `choose` does, for the settings' own fields (`EMBEDDER`), of which some are given: one that is left out
    stays as it is, None or "" removes it. What is chosen already is neither tested nor begun again.

    Raises:
        ConflictError: as `choose`.
        EmbedderTestError: when it doesn't answer; nothing is changed then.
        InvalidSettingError: as `choose`.
        UnknownEmbedderError: as `choose`.
    """
    before = await model_settings.snapshot(services)
    given = {field: (value or "").strip() for field, value in values.items()}
    if all(value == (getattr(before, field) or "") for field, value in given.items()):
        return "same"
    if "embed_api_key" in given and services.settings.is_locked("embed_api_key"):
        raise ConflictError("setting_locked", setting="EMBED_API_KEY", params={"name": "EMBED_API_KEY"})
    chosen = await choose(services, user_id, _as_choice(before, given))
    if chosen.begun is None:
        raise EmbedderTestError(report_words(services.catalog, chosen.tested.report))
    return chosen.begun


def report_words(catalog: Catalog, report: EmbedReport) -> str:
    """What a test found, as a sentence."""
    if report.ok:
        return catalog.t("generations.tested", dim=report.dim, time=catalog.seconds(report.ms))
    key = f"generations.test_{report.reason}"
    return catalog.t(key if catalog.has(key) else "generations.test_other", **report.params)


def _as_choice(before: Settings, given: Mapping[str, str]) -> EmbedderChoice:
    """A model belongs to the kind of embedder it was chosen for: a server's is no built-in one's, nor the reverse."""
    base_url = given.get("embed_base_url", before.embed_base_url or "")
    is_kept = bool(base_url) == bool(before.embed_base_url)
    model = given.get("embed_model", (before.embed_model or "") if is_kept else "")
    if not base_url:
        return EmbedderChoice(built_in=model or choice.DEFAULT)
    return EmbedderChoice(base_url=base_url, model=model, api_key=given.get("embed_api_key"))


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
