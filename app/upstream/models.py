"""The models that a server lists under `/v1/models`.

Owns reading that list, whatever fields a server leaves out. Used by the model client when no model is set, and by
`probe` and `discovery`.
"""

import re
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import orjson

from app.upstream.client import Endpoint, fetch
from app.upstream.failures import Failure, UpstreamError, failure_of, failure_of_response, is_html

LIST_LIMIT = 1000
_NOT_FOR_CHAT = re.compile(r"embed|rerank|whisper|tts|(^|[/_-])bge[-_]|minilm|clip\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model: its id, who the server says owns it, and its window in tokens where the list tells."""

    id: str
    owned_by: str = ""
    window: int | None = None


async def fetch_models(http: httpx2.AsyncClient, endpoint: Endpoint) -> list[ModelInfo]:
    """What `GET {base_url}/models` lists, at most 1,000, in the server's order.

    Raises:
        UpstreamError: when the server cannot be reached, refuses, or answers with something else.
    """
    try:
        response, body = await fetch(http, "GET", f"{endpoint.base_url}/models")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UpstreamError(failure_of(error, endpoint)) from error
    if response.status_code >= 300:
        raise UpstreamError(failure_of_response(response, endpoint))
    if is_html(response.headers.get("content-type", ""), body):
        raise UpstreamError(_rejected("html", endpoint))
    listed = _listed(body)
    if listed is None:
        raise UpstreamError(_rejected("not_api", endpoint))
    return listed


def first_chat_model(models: list[ModelInfo]) -> str | None:
    """The first model that can chat, going by its name; None for an empty list."""
    fit = [model.id for model in models if not _NOT_FOR_CHAT.search(model.id)]
    return (fit or [model.id for model in models] or [None])[0]


def _listed(body: bytes) -> list[ModelInfo] | None:
    """The models of a list body, or None when it is not one."""
    try:
        parsed: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(parsed, dict):
        payload = cast("dict[str, Any]", parsed)
        parsed = payload["data"] if "data" in payload else payload.get("models")
        if parsed is None:
            return [] if payload.get("object") == "list" else None
    if not isinstance(parsed, list):
        return None
    found = [
        _model(cast("dict[str, Any]", raw))
        for raw in cast("list[object]", parsed)[:LIST_LIMIT]
        if isinstance(raw, dict)
    ]
    return [model for model in found if model is not None]


def _model(raw: dict[str, Any]) -> ModelInfo | None:
    identity = raw.get("id") or raw.get("name")
    if not isinstance(identity, str) or not identity:
        return None
    owner = raw.get("owned_by")
    return ModelInfo(identity[:256], owner if isinstance(owner, str) else "", _window(raw))


def _window(raw: dict[str, Any]) -> int | None:
    """Tokens of the window. vLLM says `max_model_len`, LM Studio `loaded_context_length`, Groq `context_window`."""
    for key in ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length"):
        value = raw.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _rejected(reason: str, endpoint: Endpoint) -> Failure:
    params = {"server": endpoint.server}
    return Failure("llm_rejected", reason, retryable=False, setting="LLM_BASE_URL", params=params)
