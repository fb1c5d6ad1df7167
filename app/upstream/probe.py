"""Testing a connection the way a person would: is it there, what does it have, does it answer.

Owns the order of the questions and the corrected address it offers. Each failure is a `Failure` with a sentence of its
own in the catalog. Called by the settings, on demand; a turn never waits for it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlsplit

import anyio.to_thread
import httpx2
import orjson

from app.upstream.client import Endpoint, make_http
from app.upstream.failures import Failure, UpstreamError, failure_of, failure_of_response, failure_of_text, is_html
from app.upstream.identify import identify
from app.upstream.models import ModelInfo, fetch_models, first_chat_model

LIST_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 120.0
"""How long the first word may take: a large model is loaded from disk for it."""

TOTAL_TIMEOUT_S = 150.0

HEAD_LIMIT = 64 * 1024
"""Bytes of a reply in which its first chunk must show."""

_ENDINGS = ("/chat/completions", "/completions", "/models", "/api/chat", "/api/generate", "/api")


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What a test found. `ok` means that the model answered; `failure` is why not.

    `suggestion` is the address that works in place of the one given. `answer_s` is the time to the first word in
    seconds, `window` the model's window in tokens as it runs, `most` what it could take; None where the server does not
    tell.
    """

    ok: bool
    failure: Failure | None = None
    suggestion: str | None = None
    kind: str = ""
    version: str = ""
    models: tuple[str, ...] = ()
    model: str | None = None
    answer_s: float | None = None
    window: int | None = None
    most: int | None = None
    streaming: bool | None = None


async def test_connection(endpoint: Endpoint) -> ConnectionReport:
    """Lists the models, asks the chosen one for a word, and looks which server it is. Never raises for a server."""
    try:
        async with asyncio.timeout(TOTAL_TIMEOUT_S), await _http(endpoint) as http:
            return await _test(http, endpoint)
    except TimeoutError:
        return ConnectionReport(ok=False, failure=_too_slow(endpoint, TOTAL_TIMEOUT_S))


async def list_models(endpoint: Endpoint) -> list[str]:
    """The ids a server lists, in its order.

    Raises:
        UpstreamError: when the list cannot be had.
    """
    async with await _http(endpoint) as http:
        return [model.id for model in await fetch_models(http, endpoint)]


async def _test(http: httpx2.AsyncClient, endpoint: Endpoint) -> ConnectionReport:
    try:
        models = await fetch_models(http, endpoint)
    except UpstreamError as error:
        if error.failure.reason in ("not_found", "html", "not_api"):
            return await _elsewhere(http, endpoint, error.failure)
        return ConnectionReport(ok=False, failure=error.failure)
    return await _ask_model(http, endpoint, models)


async def _http(endpoint: Endpoint) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(LIST_TIMEOUT_S, connect=min(endpoint.connect_s, LIST_TIMEOUT_S))
    return await anyio.to_thread.run_sync(make_http, endpoint, timeout)


async def _elsewhere(http: httpx2.AsyncClient, endpoint: Endpoint, failure: Failure) -> ConnectionReport:
    """No model list here: it may be at an address nearby, or the server has none but chats all the same."""
    for base_url in _nearby(endpoint.base_url):
        with suppress(UpstreamError):
            found = await fetch_models(http, replace(endpoint, base_url=base_url))
            if found or failure.reason == "not_found":
                params = {**failure.params, "suggestion": base_url}
                better = replace(failure, reason="not_found_try", params=params)
                return ConnectionReport(ok=False, failure=better, suggestion=base_url)
    if failure.reason == "not_found" and endpoint.model:
        report = await _ask_model(http, endpoint, [])
        if report.ok:
            return report
    return ConnectionReport(ok=False, failure=failure)


def _nearby(base_url: str) -> list[str]:
    """Addresses that people mean when they enter another: with `/v1`, without what follows it, at the root."""
    try:
        parts = urlsplit(base_url)
    except ValueError:
        return []
    stem = base_url
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    found = [stem, f"{stem}/v1", f"{parts.scheme}://{parts.netloc}/v1"]
    return [url for number, url in enumerate(found) if url != base_url and url not in found[:number]]


async def _ask_model(http: httpx2.AsyncClient, endpoint: Endpoint, models: list[ModelInfo]) -> ConnectionReport:
    ids = tuple(model.id for model in models)
    model = endpoint.model or first_chat_model(models)
    if model is None:
        params = {"server": endpoint.server}
        none = Failure("llm_rejected", "no_models", retryable=False, setting="LLM_MODEL", params=params)
        return ConnectionReport(ok=False, failure=none)
    begun = time.monotonic()
    answer = await _first_word(http, replace(endpoint, model=model))
    took = time.monotonic() - begun
    identity = await identify(http, endpoint, models, model)
    report = ConnectionReport(
        ok=not isinstance(answer, Failure),
        kind=identity.kind,
        version=identity.version,
        models=ids,
        model=model,
        window=identity.window,
        most=identity.most,
    )
    if isinstance(answer, Failure):
        return replace(report, failure=answer)
    return replace(report, answer_s=took, streaming=answer)


async def _first_word(http: httpx2.AsyncClient, endpoint: Endpoint) -> bool | Failure:
    """Asks for one token: whether it was streamed, or why there is none."""
    request: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Reply with the word: yes"}],
        "max_tokens": 1,
        "stream": True,
    }
    answer = await _send(http, endpoint, request)
    if isinstance(answer, Failure) and answer.status == 400:  # newer servers know only `max_completion_tokens`
        del request["max_tokens"]
        answer = await _send(http, endpoint, request)
    return answer


async def _send(http: httpx2.AsyncClient, endpoint: Endpoint, request: dict[str, Any]) -> bool | Failure:
    limit = min(endpoint.first_token_s, ANSWER_TIMEOUT_S)
    timeout = httpx2.Timeout(limit, connect=endpoint.connect_s)
    url = f"{endpoint.base_url}/chat/completions"
    try:
        async with asyncio.timeout(limit), http.stream("POST", url, json=request, timeout=timeout) as response:
            if response.status_code >= 300:
                await response.aread()
                return failure_of_response(response, endpoint)
            return await _judge(response, endpoint)
    except (TimeoutError, httpx2.ReadTimeout):
        return _too_slow(endpoint, limit)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return failure_of(error, endpoint)


async def _judge(response: httpx2.Response, endpoint: Endpoint) -> bool | Failure:
    """Reads until the first chunk that is one of a chat."""
    async with aclosing(response.aiter_bytes()) as parts:
        return await _judge_parts(parts, response.headers.get("content-type", ""), endpoint)


async def _judge_parts(parts: AsyncIterator[bytes], kind: str, endpoint: Endpoint) -> bool | Failure:
    body = b""
    async for part in parts:
        body += part
        if is_html(kind, body):
            return _rejected("html", endpoint)
        for line in body.splitlines() if b"\n" in part else ():
            streamed = line.startswith(b"data:")
            chunk = _object(line.removeprefix(b"data:"))
            if chunk.get("error") or line.startswith(b"error:"):
                known = failure_of_text(line.decode("utf-8", "replace"), endpoint)
                return known or Failure("llm_rejected", "error_event", params={"server": endpoint.server})
            if "choices" in chunk:
                return streamed
        if len(body) > HEAD_LIMIT:
            break
    return False if "choices" in _object(body) else _rejected("not_api", endpoint)


def _object(data: bytes) -> dict[str, Any]:
    try:
        parsed: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}


def _too_slow(endpoint: Endpoint, limit: float) -> Failure:
    params = {"server": endpoint.server, "limit": f"{limit:g}"}
    return Failure("llm_timeout", "first_token", setting="LLM_FIRST_TOKEN_S", params=params)


def _rejected(reason: str, endpoint: Endpoint) -> Failure:
    params = {"server": endpoint.server}
    return Failure("llm_rejected", reason, retryable=False, setting="LLM_BASE_URL", params=params)
