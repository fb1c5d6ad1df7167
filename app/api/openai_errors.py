"""Errors as an OpenAI client expects them: `{"error": {"message", "type", "param", "code"}}`.

Owns the shape, and what of a model server's own error a client is told: its sentence, without scaffolding and without
markup. Used by the other `app.api.openai_*` modules.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from starlette.responses import JSONResponse

from app.catalog import Catalog
from app.edge.errors import openai_error_body
from app.errors import AppError
from app.rag.relay import clean_text
from app.upstream.failures import Failure

MESSAGE_CHARS = 2000
NAME_CHARS = 200

_STATUS = {"interrupted": 503, "internal": 500, "llm_timeout": 504}
"""Of what ends a request without an answer; 502 for whatever else."""


class OpenAiError(Exception):
    """A request of an OpenAI client that is answered with an error. `kind` is the error's `type`; `retryable` whether
    asking again may help: the official clients ask again after any 5xx unless they are told otherwise."""

    def __init__(
        self, status: int, code: str, message: str, kind: str = "invalid_request_error", *, retryable: bool = True
    ) -> None:
        self.status = status
        self.code = code
        self.body = openai_error_body(code, message, kind)
        self._headers = {} if retryable else {"X-Should-Retry": "false"}
        super().__init__(code)

    def response(self, headers: Mapping[str, str] | None = None) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.body, self.status, {**self._headers, **(headers or {})})


def failure_error(catalog: Catalog, failure: Failure) -> OpenAiError:
    """The answer where the model server gave none."""
    facts = {"server": failure.params.get("server", "-")}
    for key in (f"openai.{failure.code}.{failure.reason}", f"openai.{failure.code}", "openai.llm_unavailable"):
        if catalog.has(key):
            status, can_help = _status(failure.code), failure.retryable
            return OpenAiError(status, failure.code, catalog.t(key, **facts), "api_error", retryable=can_help)
    raise AssertionError("the catalog holds openai.llm_unavailable")


def frame_error(data: Mapping[str, Any]) -> OpenAiError:
    """The answer for a turn that ended with an `error` frame; its sentence is Docent's own already."""
    code, can_help = str(data["code"]), bool(data.get("retryable", True))
    return OpenAiError(_status(code), code, str(data["message"]), "api_error", retryable=can_help)


def app_error(catalog: Catalog, error: AppError) -> OpenAiError:
    """The answer for a refusal of Docent's."""
    key = f"openai.{error.code}"
    message = catalog.t(
        key if catalog.has(key) else f"errors.{error.code}", setting=error.setting or "", **error.params
    )
    return OpenAiError(400 if error.status == 422 else error.status, error.code, message)


def server_error(catalog: Catalog, status: int, body: bytes, *, secret: str | None) -> OpenAiError:
    """What a model server refused with, in OpenAI's shape whatever shape it came in, without its key (`secret`)."""
    message, code, kind = (_presentable(said, secret) for said in _said(body))
    message, code, kind = message[:MESSAGE_CHARS], code[:NAME_CHARS], kind[:NAME_CHARS]
    return OpenAiError(
        status if 400 <= status < 600 else 502,
        code or f"http_{status}",
        message or catalog.t("openai.refused", status=status),
        kind or ("api_error" if status >= 500 else "invalid_request_error"),
    )


def _status(code: str) -> int:
    return _STATUS.get(code, 502)


def _presentable(said: str, secret: str | None) -> str:
    """A server's words without scaffolding, and without the key it was asked with."""
    return clean_text(said.replace(secret, "***") if secret else said)[0].strip()


def _said(body: bytes) -> tuple[str, str, str]:
    """The message, code and type of an error body; empty where it names none."""
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return "", "", ""
    found = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    error: object = found.get("error", found.get("detail", found.get("message")))
    if isinstance(error, str):
        return error, "", ""
    said = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code = said.get("code")
    return _text(said.get("message")), str(code) if isinstance(code, str | int) else "", _text(said.get("type"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
