"""Which build of which server answers, with which model file and template, as the server itself says.

For the loop guard's log, whose figures hold for one build of everything. Owns what each kind of server is asked; what
it does not say stays None, never guessed. Nothing here fails. `app.upstream.identify` knows the kinds.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import httpx2

from app.upstream.client import Endpoint
from app.upstream.identify import LLAMA_CPP, OLLAMA, VLLM, get_json, post_json

_QUANT = re.compile(r"(?i)(?<![a-z0-9])(?:i?q\d[a-z0-9_]*|[bf]p?\d{1,2}|mxfp4)(?=\.gguf$|[-.])")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class ServerBuild:
    """What a server says of itself and of one model; None is not said."""

    backend: str | None = None
    build: str | None = None
    model_digest: str | None = None
    quant: str | None = None
    template_hash: str | None = None


async def server_build(http: httpx2.AsyncClient, endpoint: Endpoint, model: str | None) -> ServerBuild:
    """Asks the routes that tell one kind of server from another, and those for the model's file. Loads no model."""
    root = endpoint.base_url.removesuffix("/v1")
    ollama, props, version = await asyncio.gather(
        get_json(http, f"{root}/api/version"), get_json(http, f"{root}/props"), get_json(http, f"{root}/version")
    )
    if "version" in ollama:
        return await _ollama(http, root, _text(ollama["version"]), model)
    if isinstance(props.get("default_generation_settings"), dict):
        local = endpoint.server.startswith(_LOOPBACK)
        return await anyio.to_thread.run_sync(_llama_cpp, props, local)
    if _text(version.get("version")) is not None:
        return ServerBuild(VLLM, _text(version.get("version")))
    return ServerBuild()


async def _ollama(http: httpx2.AsyncClient, root: str, build: str | None, model: str | None) -> ServerBuild:
    if not model:
        return ServerBuild(OLLAMA, build)
    tags, shown = await asyncio.gather(
        get_json(http, f"{root}/api/tags"), post_json(http, f"{root}/api/show", {"model": model})
    )
    named = [row for row in _rows(tags.get("models")) if model in (row.get("name"), row.get("model"))]
    listed: Mapping[str, Any] = named[0] if named else {}
    details = listed.get("details")
    facts: Mapping[str, Any] = cast("Mapping[str, Any]", details) if isinstance(details, dict) else {}
    quant, digest = _text(facts.get("quantization_level")), _text(listed.get("digest"))
    return ServerBuild(OLLAMA, build, digest, quant, _hash(shown.get("template")))


def _llama_cpp(props: Mapping[str, Any], local: bool) -> ServerBuild:
    """The file is known by its path, and by size and time where it lies on this machine. Reads the disk."""
    path = props.get("model_path")
    digest = quant = None
    if isinstance(path, str) and path:
        digest = _hash("\0".join([path, *(_size_and_time(path) if local else ())]))
        found = _QUANT.findall(Path(path).name)
        quant = found[-1].upper()[:40] if found else None
    return ServerBuild(LLAMA_CPP, _text(props.get("build_info")), digest, quant, _hash(props.get("chat_template")))


def _size_and_time(path: str) -> list[str]:
    try:
        facts = Path(path).stat()
    except (OSError, ValueError):
        return []
    return [str(facts.st_size), str(facts.st_mtime_ns)]


def _rows(value: object) -> list[Mapping[str, Any]]:
    rows = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, dict)]


def _hash(value: object) -> str | None:
    """16 hex digits that change when the text does."""
    if not isinstance(value, str) or not value:
        return None
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _text(value: object) -> str | None:
    """A short printable text; anything else a server may say is left out."""
    text = value.strip() if isinstance(value, str) else ""
    return text if 0 < len(text) <= 100 and text.isprintable() else None
