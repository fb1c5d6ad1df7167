"""Which model server answers at an address, by the routes it has besides `/v1`, and how large its window really is.

Owns the four servers people run at home; any other is "". Asks quickly and takes no answer for an answer: nothing here
fails. Used by `probe` and `discovery`.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import orjson

from app.upstream.client import Endpoint, fetch
from app.upstream.models import ModelInfo

OLLAMA, LLAMA_CPP, LM_STUDIO, VLLM = "Ollama", "llama.cpp", "LM Studio", "vLLM"


@dataclass(frozen=True, slots=True)
class Identity:
    """The server's kind ("" for unknown), its version as it says it, and the model's window in tokens if it tells."""

    kind: str = ""
    version: str = ""
    window: int | None = None


async def identify(
    http: httpx2.AsyncClient, endpoint: Endpoint, models: list[ModelInfo], model: str | None
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
        return Identity(OLLAMA, _word(ollama["version"]), await _ollama_window(http, root, model) or listed)
    if isinstance(generation := props.get("default_generation_settings"), dict):
        window = cast("dict[str, object]", generation).get("n_ctx")
        return Identity(LLAMA_CPP, _word(props.get("build_info")), _count(window) or listed)
    if isinstance(rows := studio.get("data"), list):
        return Identity(LM_STUDIO, "", _studio_window(cast("list[object]", rows), model) or listed)
    if any(row.owned_by == "vllm" for row in models):
        return Identity(VLLM, _word(version.get("version")), listed)
    return Identity("", "", listed)


async def _ollama_window(http: httpx2.AsyncClient, root: str, model: str | None) -> int | None:
    """What the loaded model runs with; else what its file sets; else what it could take at most."""
    if not model:
        return None
    loaded, shown = await asyncio.gather(
        get_json(http, f"{root}/api/ps"), post_json(http, f"{root}/api/show", {"model": model})
    )
    running = loaded.get("models")
    for row in cast("list[object]", running) if isinstance(running, list) else []:
        facts = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        if model in (facts.get("name"), facts.get("model")) and (window := _count(facts.get("context_length"))):
            return window
    parameters = shown.get("parameters")
    if isinstance(parameters, str) and (found := re.search(r"^num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE)):
        return int(found.group(1))
    info = shown.get("model_info")
    facts = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    return next((_count(value) for key, value in facts.items() if key.endswith(".context_length")), None)


def _studio_window(rows: list[object], model: str | None) -> int | None:
    for row in rows:
        facts = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        if facts.get("id") == model:
            return _count(facts.get("loaded_context_length")) or _count(facts.get("max_context_length"))
    return None


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
