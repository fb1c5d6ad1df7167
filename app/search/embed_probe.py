"""Testing an embeddings server: does it answer, how long are its vectors, how long does it take.

Owns one small request and the address it offers where only `/v1` is missing. Called by the settings, on
demand; blocking.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from app.search.embeddings import Embedder
from app.search.endpoint import EndpointEmbedder
from app.search.errors import EmbedError
from app.upstream.client import Endpoint
from app.upstream.failures import Failure, UpstreamError

TEXT = "The nightly backup starts at two."
TIMEOUT_S = 60.0
"""How long the answer may take: a model is loaded from disk for it."""

_NOT_THERE = ("not_found", "html", "not_api")


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What a test found. `dim` is the length of a vector, 0 when there is none; then `reason` says why, by the name of
    a sentence (`generations.test_<reason>`) and its `params`; `suggestion` is an address that works instead."""

    dim: int = 0
    ms: int = 0
    reason: str = ""
    params: Mapping[str, object] = field(default_factory=dict[str, object])
    suggestion: str | None = None

    @property
    def ok(self) -> bool:
        """Whether vectors came."""
        return self.dim > 0


def probe_endpoint(endpoint: Endpoint) -> EmbedReport:
    """Asks for one vector, and once more under `/v1` where nothing of the kind is at the address given."""
    quick = replace(endpoint, first_token_s=min(endpoint.first_token_s, TIMEOUT_S))
    report = _asked(EndpointEmbedder(quick), quick)
    if report.reason in _NOT_THERE and not urlsplit(endpoint.base_url).path.rstrip("/").endswith("/v1"):
        other = f"{endpoint.base_url}/v1"
        if _asked(EndpointEmbedder(replace(quick, base_url=other)), quick).ok:
            return replace(report, suggestion=other)
    return report


def probe_built_in(embedder: Embedder) -> EmbedReport:
    """A built-in embedder loads its files for it."""
    return _asked(embedder, None)


def _asked(embedder: Embedder, endpoint: Endpoint | None) -> EmbedReport:
    began = time.monotonic()
    try:
        dim = embedder.embed_passages([TEXT]).shape[1]
    except EmbedError as error:
        return _failed(error, endpoint)
    finally:
        embedder.close()
    return EmbedReport(dim, round((time.monotonic() - began) * 1000))


def _failed(error: EmbedError, endpoint: Endpoint | None) -> EmbedReport:
    cause = error.__cause__
    if endpoint is None:
        return EmbedReport(reason=error.code)
    params: dict[str, object] = {"server": endpoint.server, "model": endpoint.model or ""}
    if not isinstance(cause, UpstreamError):
        return EmbedReport(reason="not_api", params=params)
    failure: Failure = cause.failure
    reason = failure.reason or failure.code
    if failure.code == "llm_timeout" and reason == "server":
        reason = "too_slow"
    return EmbedReport(reason=reason, params={**params, **failure.params})
