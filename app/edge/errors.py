"""Errors on their way out: one function finds the sentence, one makes the response, for API and pages alike.

`/api` and the health routes answer `{"error": {"code", "message", "setting"?}}`, `/v1` in OpenAI's shape; a page or
fragment is rendered by the function `app.web` hands in. An exception nobody expected becomes `internal`, with its
traceback in the log, once. Text of a request or of a server is never part of an answer.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.catalog import Catalog
from app.errors import AppError, InvalidInputError, NotFoundError, TooLargeError
from app.logs import kv

ErrorPage = Callable[[Request, int, str, str], Response]
"""`(request, status, code, message)` → a page or fragment."""

_JSON_PREFIXES = ("/api/", "/healthz", "/readyz", "/metrics")
_OPENAI_PREFIX = "/v1/"
_BESIDE_THE_ERROR = ("turn_id",)
"""Facts of an error that a client acts on; they stand beside `error` in the body."""

_log = logging.getLogger(__name__)


class MethodNotAllowedError(AppError):
    """The address exists, but not for this method."""

    status = 405
    default_code = "method_not_allowed"


class RequestRefusedError(AppError):
    """Refused before any route saw it: a foreign origin, an unknown host name."""

    status = 403
    default_code = "origin_refused"


class InternalError(AppError):
    """Something nobody expected."""

    status = 500
    default_code = "internal"


def error_message(catalog: Catalog, error: AppError) -> str:
    """The sentence of an error: `errors.<code>.<reason>` where the error has a reason and the catalog a sentence for
    it, else `errors.<code>`, else the one of `internal`."""
    return problem_message(catalog, stored_problem(error))


def stored_problem(error: AppError) -> dict[str, Any]:
    """What a row keeps of an error (JSON), so that a page can say later what was said at once: `problem_message`."""
    return {
        "code": error.code,
        "reason": getattr(error, "reason", None),
        "setting": error.setting,
        "params": {key: value if isinstance(value, int | float) else str(value) for key, value in error.params.items()},
    }


def problem_message(catalog: Catalog, problem: Mapping[str, Any]) -> str:
    """The sentence of what `stored_problem` gave; a missing fact falls back to the sentence of the code alone."""
    code, reason = str(problem.get("code")), problem.get("reason")
    facts: dict[str, Any] = {"setting": problem.get("setting") or "", **(problem.get("params") or {})}
    for key in (f"errors.{code}.{reason}", f"errors.{code}", "errors.internal"):
        if catalog.has(key):
            return catalog.t(key, **facts)
    return code


def error_body(catalog: Catalog, error: AppError) -> dict[str, Any]:
    """The JSON body of an error."""
    body: dict[str, Any] = {"code": error.code, "message": error_message(catalog, error)}
    if error.setting:
        body["setting"] = error.setting
    return {"error": body, **{key: error.params[key] for key in _BESIDE_THE_ERROR if key in error.params}}


def openai_error_body(code: str, message: str, kind: str) -> dict[str, Any]:
    """An error as OpenAI's clients read it; `kind` is `invalid_request_error`, `api_error`, or the code again."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class ErrorResponses:
    """Turns errors into responses.

    Args:
        page: Renders errors outside `/api`; without it everything is JSON.
    """

    def __init__(self, catalog: Catalog, page: ErrorPage | None = None) -> None:
        self._catalog = catalog
        self._page = page

    def __call__(
        self, request: Request, error: AppError, headers: Mapping[str, str] | None = None, status: int | None = None
    ) -> Response:
        """The response to an error; `status` replaces the error's own."""
        status = status or error.status
        if request.url.path.startswith(_OPENAI_PREFIX):
            kind = "api_error" if status >= 500 else "invalid_request_error"
            body = openai_error_body(error.code, error_message(self._catalog, error), kind)
            return JSONResponse(body, status, headers)
        if self._page is None or request.url.path.startswith(_JSON_PREFIXES):
            return JSONResponse(error_body(self._catalog, error), status, headers)
        response = self._page(request, status, error.code, error_message(self._catalog, error))
        response.headers.update(headers or {})
        return response

    def install(self, app: FastAPI) -> None:
        """Makes `app` answer with this object whatever a route raises."""
        handlers: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
            AppError: self._on_app_error,
            RequestValidationError: self._on_invalid,
            HTTPException: self._on_http,
        }
        for kind, handler in handlers.items():
            app.add_exception_handler(kind, handler)

    async def _on_app_error(self, request: Request, error: AppError) -> Response:
        level = logging.ERROR if error.status == 500 else logging.INFO
        _log.log(
            level,
            "%s",
            kv("request_refused", path=request.url.path, status=error.status, code=error.code),
            exc_info=error if level == logging.ERROR else None,
        )
        return self(request, error)

    async def _on_invalid(self, request: Request, error: RequestValidationError) -> Response:
        fields = sorted(
            {_field(problem.get("loc", ())) for problem in cast("Sequence[dict[str, Any]]", error.errors())}
        )
        _log.info(kv("request_refused", path=request.url.path, status=422, code="invalid_input"))
        return self(request, InvalidInputError(params={"fields": ", ".join(fields)}))

    async def _on_http(self, request: Request, error: HTTPException) -> Response:
        kinds: dict[int, type[AppError]] = {404: NotFoundError, 405: MethodNotAllowedError, 413: TooLargeError}
        kind = kinds.get(error.status_code, InvalidInputError if error.status_code < 500 else InternalError)
        answer = kind(params={"fields": "body"} if kind is InvalidInputError else None)
        _log.info(kv("request_refused", path=request.url.path, status=error.status_code, code=answer.code))
        return self(request, answer, error.headers, error.status_code)


def _field(location: Sequence[object]) -> str:
    """The name of the field a validation problem is about; never what was in it."""
    names = [str(part) for part in location if isinstance(part, str)]
    return names[-1][:60] if names else "body"


class LastResort:
    """Catches what no handler did, logs it once with its traceback, and answers `internal` if nothing was sent yet.

    A client that goes away in the middle of its own request is no failure: one plain line."""

    def __init__(self, app: ASGIApp, respond: ErrorResponses) -> None:
        self._app = app
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            _log.info(kv("request_left", method=scope["method"], path=scope["path"]))
        except Exception:
            if scope["type"] != "http":
                raise
            _log.exception(kv("request_failed", method=scope["method"], path=scope["path"]))
            if not started:
                await self._respond(Request(scope), InternalError())(scope, receive, send)
