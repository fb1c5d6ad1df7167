"""Which model server answers at an address, by the routes it has besides `/v1`, and how large its window really is.

Owns the four servers people run at home; any other is "". Asks quickly and takes no answer for an answer: nothing here
fails. Used by `probe`, `windows` and `discovery`.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import httpx2
import orjson

from app.upstream.client import Endpoint, fetch
from app.upstream.failures import UpstreamError
from app.upstream.models import ModelInfo, fetch_models
from app.upstream.window import Said

OLLAMA, LLAMA_CPP, LM_STUDIO, VLLM = "Ollama", "llama.cpp", "LM Studio", "vLLM"

_BEFORE_LOADING = 4096
"""Tokens a model gets at least from a server that loads it when asked: the default of Ollama on small machines, and of
LM Studio."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The server's kind ("" for unknown) and its version as it says it; the model's window in tokens as it runs, and
    the most the model could take, each if the server tells."""

    kind: str = ""
    version: str = ""
    window: int | None = None
    most: int | None = None


async def identify(
    http: httpx2.AsyncClient, endpoint: Endpoint, models: Sequence[ModelInfo], model: str | None
) -> Identity:
    """Asks the routes that only one kind of server has, all at once; `model` is whose window is wanted."""
    root = endpoint.base_url.removesuffix("/v1")
    ollama, props, studio, version = await asyncio.gather(
        get_json(http, f"{root}/api/version"),
        get_json(http, f"{root}/props"),
        get_json(http, f"{root}/api/v0/models"),
        get_json(http, f"{root}/version"),
    )
    listed = next((row.window for row in models if row.id == model), None)
    if "version" in ollama:
        window, most = await _ollama_window(http, root, model)
        return Identity(OLLAMA, _word(ollama["version"]), window, most or listed)
    if isinstance(generation := props.get("default_generation_settings"), dict):
        window = _count(cast("dict[str, object]", generation).get("n_ctx"))
        if window is None and model and props.get("role") == "router":
            window = await _routed_window(http, root, model)
        return Identity(LLAMA_CPP, _word(props.get("build_info")), window or listed)
    if isinstance(rows := studio.get("data"), list):
        window, most = _studio_window(cast("list[object]", rows), model)
        return Identity(LM_STUDIO, "", window or listed, most)
    if any(row.owned_by == "vllm" for row in models):
        return Identity(VLLM, _word(version.get("version")), listed)
    return Identity("", "", listed)


async def window_said(http: httpx2.AsyncClient, endpoint: Endpoint, model: str) -> Said:
    """What the server says of `model`'s window; its list is asked only where no route of its own tells."""
    found = await identify(http, endpoint, (), model)
    if found.window is None and found.most is None and not found.kind:
        with suppress(UpstreamError):
            rows = [row for row in await fetch_models(http, endpoint) if row.id == model]
            kind = VLLM if rows and rows[0].owned_by == "vllm" else ""
            found = Identity(kind, "", rows[0].window if rows else None)
    if found.window is None and found.most is not None:
        return Said(min(found.most, _BEFORE_LOADING), in_effect=False, kind=found.kind)
    return Said(found.window, kind=found.kind)


async def _ollama_window(http: httpx2.AsyncClient, root: str, model: str | None) -> tuple[int | None, int | None]:
    """What the loaded model runs with, else what its file sets; and what it could take at most, which is not what it
    gets: without a setting Ollama gives 4,096 tokens, or more where there is memory."""
    if not model:
        return None, None
    loaded, shown = await asyncio.gather(
        get_json(http, f"{root}/api/ps"), post_json(http, f"{root}/api/show", {"model": model})
    )
    names = (model, f"{model}:latest")
    running = loaded.get("models")
    for row in cast("list[object]", running) if isinstance(running, list) else []:
        facts = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        named = facts.get("name") in names or facts.get("model") in names
        if named and (window := _count(facts.get("context_length"))):
            return window, None
    parameters = shown.get("parameters")
    if isinstance(parameters, str) and (found := re.search(r"^num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE)):
        return int(found.group(1)) or None, None
    info = shown.get("model_info")
    facts = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    return None, next((_count(value) for key, value in facts.items() if key.endswith(".context_length")), None)


async def _routed_window(http: httpx2.AsyncClient, root: str, model: str) -> int | None:
    """A llama.cpp that loads models on demand says of each that is loaded what it runs with."""
    props = await get_json(http, f"{root}/props?model={quote(model, safe='')}&autoload=false")
    generation = props.get("default_generation_settings")
    return _count(cast("dict[str, object]", generation).get("n_ctx")) if isinstance(generation, dict) else None


def _studio_window(rows: list[object], model: str | None) -> tuple[int | None, int | None]:
    """What the model was loaded with, and what it could take at most."""
    for row in rows:
        facts = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        if facts.get("id") == model:
            return _count(facts.get("loaded_context_length")), _count(facts.get("max_context_length"))
    return None, None


async def get_json(http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """The JSON object at `url`; an empty one for anything else."""
    return await _ask(http, "GET", url, None)


async def post_json(http: httpx2.AsyncClient, url: str, body: object) -> dict[str, Any]:
    """What `url` answers to `body`, as `get_json`."""
    return await _ask(http, "POST", url, body)


async def _ask(http: httpx2.AsyncClient, method: str, url: str, body: object) -> dict[str, Any]:
    """The JSON object at `url`; an empty one for anything else."""
    try:
        response, content = await fetch(http, method, url, json=body)
        parsed: object = orjson.loads(content) if response.status_code == 200 else None
    except (httpx2.HTTPError, httpx2.InvalidURL, orjson.JSONDecodeError):
        return {}
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _word(value: object) -> str:
    """A version as one short word; anything else a server may say is left out."""
    text = value.strip() if isinstance(value, str) else ""
    return text if re.fullmatch(r"[\w.+-]{1,40}", text) else ""
