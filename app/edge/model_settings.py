"""The settings that the API and the page change: the model endpoint, which they also test, and the guard's mode.

Owns what a value must look like to be taken, which value a test uses, and that a saved key never goes to another
host than the one it was saved for. The table is `app.store.settings`, the questions to a server `app.upstream`'s.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from app.catalog import Catalog
from app.edge.deps import Services
from app.edge.errors import error_message
from app.edge.servers import forget_server
from app.errors import ConflictError, InvalidInputError
from app.logs import kv
from app.rag.errors import LLMError
from app.settings import Settings
from app.store import settings as stored
from app.store.engine import Session
from app.upstream.client import Endpoint, endpoint_from
from app.upstream.discovery import FoundServer, find_servers
from app.upstream.failures import Failure, UpstreamError
from app.upstream.probe import ConnectionReport, list_models, test_connection

ENDPOINT_FIELDS = ("llm_base_url", "llm_api_key", "llm_model")
FIELDS = (*ENDPOINT_FIELDS, "loop_guard_mode")
GUARD_MODES = ("note", "refuse", "off")
"""In the order of the page; the first is the default."""

MAX_CHARS = 2000
MAX_MODEL_CHARS = 256

_log = logging.getLogger(__name__)


class InvalidSettingError(InvalidInputError):
    """A value that cannot be used; `reason` narrows the sentence."""

    default_code = "setting_invalid"

    def __init__(self, field: str, reason: str | None = None) -> None:
        super().__init__(setting=field.upper(), params={"name": field.upper()})
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Saved:
    """What saving did: the settings from now on, and whether the saved key went because the host is another."""

    settings: Settings
    key_dropped: bool


async def snapshot(services: Services) -> Settings:
    """The settings in effect now."""
    return await services.database.aread(lambda session: stored.effective(session, services.settings))


async def save(services: Services, user_id: int, changes: Mapping[str, str | None]) -> Saved:
    """Checks and stores what is given; None or "" removes a value. In effect from the next turn on.

    Raises:
        ConflictError: `setting_locked`, for a field the environment fixes, unless nothing would change.
        InvalidSettingError: for a value that cannot be used; nothing is stored then.
    """
    before = await snapshot(services)
    checked = _checked(services.settings, before, changes)
    dropped = _drops_key(services.settings, before, checked)
    if dropped:
        checked["llm_api_key"] = None

    def work(session: Session) -> Settings:
        stored.put(session, checked, user_id, services.clock.now())
        return stored.effective(session, services.settings)

    after = await services.database.awrite(work)
    if checked:
        _log.info(kv("settings_changed", user=user_id, fields=",".join(sorted(checked))))
    return Saved(after, dropped)


async def check(services: Services, changes: Mapping[str, str | None]) -> None:
    """Whether `save` would take what is given; stores nothing.

    Raises:
        ConflictError: as `save`.
        InvalidSettingError: as `save`.
    """
    _checked(services.settings, await snapshot(services), changes)


async def test(services: Services, values: Mapping[str, str | None]) -> ConnectionReport:
    """Tests the endpoint as it would be with `values` in place of the saved ones; nothing is stored.

    The test goes to a server that turns leave alone after failures, too; when it answers, they ask it again at once.

    Raises:
        ConflictError: `no_endpoint` without an address, `setting_locked` as `save` does.
        InvalidSettingError: as `save` does.
    """
    before = await snapshot(services)
    checked = _checked(services.settings, before, values)
    if _drops_key(services.settings, before, checked):
        checked["llm_api_key"] = None
    endpoint = _endpoint(before.model_copy(update=checked))
    report = await test_connection(endpoint)
    if report.ok:
        forget_server(services, endpoint)
    if report.ok and services.clients.found(endpoint):
        _log.info(kv("model_server_up", server=endpoint.server))
    reason = report.failure.reason if report.failure else None
    code = report.failure.code if report.failure else None
    _log.info(kv("endpoint_tested", server=endpoint.server, ok=report.ok, code=code, reason=reason))
    return report


async def models(services: Services) -> list[str]:
    """The models that the saved endpoint lists.

    Raises:
        ConflictError: `no_endpoint`.
        LLMError: when the list cannot be had.
    """
    try:
        return await list_models(_endpoint(await snapshot(services)))
    except UpstreamError as error:
        raise as_error(error.failure) from error


async def discover(services: Services) -> list[FoundServer]:
    """Model servers on this machine."""
    return await find_servers(services.discovery_ports, own_port=services.settings.port)


def as_error(failure: Failure) -> LLMError:
    """A failure as the error whose sentence it has."""
    return LLMError(
        failure.code,
        reason=failure.reason or None,
        provider_status=failure.status,
        retryable=failure.retryable,
        setting=failure.setting,
        params=failure.params,
    )


def failure_message(catalog: Catalog, failure: Failure) -> str:
    """A failure's sentence."""
    return error_message(catalog, as_error(failure))


def normal_url(value: str, field: str = "llm_base_url") -> str:
    """An endpoint's address without blanks and trailing slashes.

    Raises:
        InvalidSettingError: when it is no http address, or holds credentials, a query or a fragment.
    """
    text = value.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidSettingError(field, "url") from None
    printable = text.isprintable() and " " not in text and "\\" not in text
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not printable:
        raise InvalidSettingError(field, "url")
    if "@" in parts.netloc:
        raise InvalidSettingError(field, "credentials")
    if parts.query or parts.fragment:
        raise InvalidSettingError(field, "query")
    if len(text) > MAX_CHARS:
        raise InvalidSettingError(field, "url")
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), "", ""))


def _checked(environment: Settings, before: Settings, values: Mapping[str, str | None]) -> dict[str, str | None]:
    """The values that change something, each in its normal form; None removes."""
    checked: dict[str, str | None] = {}
    for field in FIELDS:
        if field not in values:
            continue
        value = _normal(field, (values[field] or "").strip())
        if environment.is_locked(field):
            fixed = str(getattr(before, field) or "")
            if (value or "") not in (fixed, fixed.strip().rstrip("/")):
                raise ConflictError("setting_locked", setting=field.upper(), params={"name": field.upper()})
        else:
            checked[field] = value
    return checked


def _normal(field: str, value: str) -> str | None:
    if not value:
        return None
    if field == "llm_base_url":
        return normal_url(value)
    if field == "llm_api_key" and not (value.isascii() and value.isprintable() and len(value) <= MAX_CHARS):
        raise InvalidSettingError(field, "key")
    if field == "llm_model" and not (value.isprintable() and len(value) <= MAX_MODEL_CHARS):
        raise InvalidSettingError(field, "model")
    if field == "loop_guard_mode":
        value = value.lower()
        if value not in GUARD_MODES:
            raise InvalidSettingError(field, "mode")
    return value


def _drops_key(environment: Settings, before: Settings, checked: Mapping[str, str | None]) -> bool:
    """Whether the saved key would go to another host than before: it is dropped unless a key is given, too."""
    if "llm_base_url" not in checked or "llm_api_key" in checked or environment.is_locked("llm_api_key"):
        return False
    if not before.llm_api_key or not before.llm_base_url:
        return False
    return _host(before.llm_base_url) != _host(checked["llm_base_url"] or "")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _endpoint(settings: Settings) -> Endpoint:
    endpoint = endpoint_from(settings)
    if endpoint is None:
        raise ConflictError("no_endpoint", setting="LLM_BASE_URL")
    return endpoint
