"""What can go wrong with a model server, as a value: which sentence, which setting, whether trying again may help.

Owns the mapping from exceptions, HTTP statuses and servers' own error texts. The sentences are in the catalog under
`errors.<code>.<reason>`; a server's own words are read here and never handed on. Used by `app.rag.llm`, which raises
`LLMError`s made of it, and by `app.upstream.probe`, which reports it.
"""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import urlsplit

import httpx2

from app.upstream.client import Endpoint

RetryReason = Literal["timeout", "connect", "http_429", "http_5xx"]

_OVERFLOW = re.compile(
    r"""context_length_exceeded | exceed_context_size | ContextWindowExceeded
    | maximum\ context\ length | available\ context\ size | context\ size\ (was\ |has\ been\ )?exceeded
    | exceeds?\ (the\ )?(model's\ )?(maximum\ )?context\ (length|window|size)
    | longer\ than\ the\ maximum\ model\ length
    | longer\ than\ the\ model's\ context\ length | context\ the\ overflows | n_keep\s*>=\s*n_ctx
    | greater\ than\ the\ context\ length | inputs`?\ must\ have\ less\ than\ \d+\ tokens
    | inputs`?\ tokens\ \+\ `?max_new_tokens | prompt\ is\ too\ long | token\ count\ .{0,20}exceeds\ the\ maximum
    | max_seq_len | max\ sequence\ length""",
    re.VERBOSE | re.IGNORECASE,
)
_NO_MODEL = re.compile(r"model_not_found|model\b.{0,120}\b(not found|does not exist|not exist|unknown)", re.I | re.S)
_LOADING = re.compile(r"loading model|model is (still )?loading|is currently loading", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"""(does\ not|doesn[’']t|do\ not|cannot|can't)\ (support|use)\ (the\ )?(native\ )?
        (tools?\b|function[ -_]?call) (?!.{0,12}without)
    | (tools?|tool[ _-](use|calls?|calling|choice)|function[ _-]?call(s|ing)?)
        [`'"\\]*\ (is|are)\ (not\ (supported|enabled|available|allowed)|unsupported|disabled)
    | tool\ use\ with\ function\ calling\ is\ unsupported
    | tools\ param\ (requires|is\ not) | requires\ --jinja | --enable-auto-tool-choice | --tool-call-parser
    | endpoints?\ found\ that\ supports?\ tool
    | (unsupported|unknown|unrecognized|unexpected|unsupported_parameter|extra|invalid)\b.{0,40}
        (param(eter)?s?|arguments?|fields?|inputs?|supplied)\W{1,6}tools\b(?![\[.])
    | support\ parameters:\ [\[{(]?\W{0,3}tools\b
    | "loc":\ ?\["body",\ ?"tools"\]""",
    re.VERBOSE | re.IGNORECASE,
)
_STREAM_OPTIONS = re.compile(r"stream_options|include_usage")


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that went wrong. `status` is the server's HTTP status, `retry_after` seconds it asked to wait.

    `retry` is None where the same request would fail again; `retryable` says whether asking later may help.
    """

    code: str
    reason: str
    status: int | None = None
    retry: RetryReason | None = None
    retry_after: float | None = None
    retryable: bool = True
    setting: str | None = None
    params: Mapping[str, object] = field(default_factory=dict[str, object])


class UpstreamError(Exception):
    """The model server could not be asked, or its answer broke off; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(f"{failure.code}.{failure.reason}")


def failure_of(error: BaseException, endpoint: Endpoint, *, with_tools: bool = False) -> Failure:
    """The failure behind an exception of the HTTP or the openai client; `with_tools`: the request offered some."""
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        return failure_of_response(response, endpoint, with_tools=with_tools)
    server: dict[str, object] = {"server": endpoint.server}
    for kind, (code, reason, retry, setting) in _BY_TYPE.items():
        if any(isinstance(link, kind) for link in _chain(error)):
            can_help = setting is None
            return Failure(code, reason, retry=retry, retryable=can_help, setting=setting, params=server)
    return Failure("llm_unavailable", "refused", retry="connect", params=server)


def failure_of_response(response: httpx2.Response, endpoint: Endpoint, *, with_tools: bool = False) -> Failure:
    """The failure that an HTTP answer other than 2xx stands for. The body must have been read."""
    status, text = response.status_code, response.text
    params: dict[str, object] = {"server": endpoint.server, "status": str(status)}
    if 300 <= status < 400:
        return _rejected("redirect", status, "LLM_BASE_URL", {**params, "target": _target(response, endpoint)})
    if status == 401:
        return _rejected("key", status, "LLM_API_KEY", params)
    if with_tools and status != 429 and (refused := tools_refused(text, endpoint, status)):
        return refused
    if status == 429 or status >= 500:
        return failure_of_text(text, endpoint, status) or _unavailable(response, params)
    if status == 408:
        return Failure("llm_timeout", "server", status, retry="timeout", params=params)
    if known := failure_of_text(text, endpoint, status):
        return known
    if is_html(response.headers.get("content-type", ""), response.content):
        return _rejected("html", status, "LLM_BASE_URL", params)
    if status == 403:
        return _rejected("forbidden", status, "LLM_API_KEY", params)
    if status in (404, 405):
        return _rejected("not_found", status, "LLM_BASE_URL", params)
    return _rejected("request", status, None, params)


def failure_of_text(text: str, endpoint: Endpoint, status: int | None = None) -> Failure | None:
    """The failure that a server's own error text names, where it is a known one."""
    params: dict[str, object] = {"server": endpoint.server, "model": endpoint.model or "-"}
    if status != 429 and _OVERFLOW.search(text):
        return Failure("context_overflow", "", status, retryable=False, setting="LLM_CONTEXT_TOKENS", params=params)
    if status in (None, 400, 404, 422) and _NO_MODEL.search(text):
        return _rejected("model", status, "LLM_MODEL", params)
    if (status is None or status >= 500) and _LOADING.search(text):
        return Failure("llm_unavailable", "loading", status, retry="http_5xx", params=params)
    return None


def tools_refused(text: str, endpoint: Endpoint, status: int | None = None) -> Failure | None:
    """The failure of a request with tools that is refused because of them, going by the server's own words.

    The status says nothing: 400, 404, 405, 422 and 500 are all in use for it.
    """
    if not _NO_TOOLS.search(text):
        return None
    params: dict[str, object] = {"server": endpoint.server, "model": endpoint.model or "-"}
    return Failure("tools_unsupported", "", status, retryable=False, setting="LLM_MODEL", params=params)


def refuses_stream_options(error: BaseException) -> bool:
    """Whether a server rejected a request because it does not know `stream_options`."""
    response = getattr(error, "response", None)
    if not isinstance(response, httpx2.Response) or response.status_code not in (400, 422):
        return False
    return bool(_STREAM_OPTIONS.search(response.text))


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a body is a web page: by its type, or by how it begins where the type says nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        return True
    return body[:200].lstrip().lower().startswith((b"<!doctype", b"<html", b"<head", b"<body"))


_BY_TYPE: dict[type[BaseException], tuple[str, str, RetryReason | None, str | None]] = {
    httpx2.ConnectTimeout: ("llm_timeout", "connect", "timeout", None),  # before TLS: a handshake may hang, too
    ssl.SSLError: ("llm_unavailable", "tls", None, "LLM_BASE_URL"),
    socket.gaierror: ("llm_unavailable", "dns", "connect", None),
    httpx2.TimeoutException: ("llm_timeout", "server", None, None),
    ConnectionResetError: ("llm_unavailable", "reset", "connect", None),
    httpx2.ConnectError: ("llm_unavailable", "refused", "connect", None),
    httpx2.LocalProtocolError: ("llm_rejected", "key_shape", None, "LLM_API_KEY"),
    httpx2.InvalidURL: ("llm_rejected", "address", None, "LLM_BASE_URL"),
    httpx2.UnsupportedProtocol: ("llm_rejected", "address", None, "LLM_BASE_URL"),
    httpx2.TransportError: ("llm_unavailable", "reset", "connect", None),
    httpx2.DecodingError: ("llm_rejected", "not_api", None, "LLM_BASE_URL"),
}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _rejected(reason: str, status: int | None, setting: str | None, params: Mapping[str, object]) -> Failure:
    return Failure("llm_rejected", reason, status, retryable=False, setting=setting, params=params)


def _unavailable(response: httpx2.Response, params: Mapping[str, object]) -> Failure:
    status, wait = response.status_code, _retry_after(response)
    retry: RetryReason = "http_429" if status == 429 else "http_5xx"
    reason = "busy" if status == 429 else "server"
    if wait is not None:
        reason, params = "busy_for", {**params, "seconds": round(wait)}
    return Failure("llm_unavailable", reason, status, retry=retry, retry_after=wait, params=params)


def _retry_after(response: httpx2.Response) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date."""
    value = response.headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        wait = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        wait = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, wait) if wait < 1e9 else None


def _target(response: httpx2.Response, endpoint: Endpoint) -> str:
    """Where a redirect leads, as host and port only: the rest may hold a token."""
    try:
        parts = urlsplit(response.headers.get("location", ""))
        return parts.netloc.rpartition("@")[2] or endpoint.server
    except ValueError:
        return endpoint.server
