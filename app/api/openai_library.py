"""`/v1/chat/completions` for a collection (`docent/<slug>`): a turn over its documents, told as a completion.

Owns reading the client's messages as question and talk, and the turn's frames as chunks or as one reply. The turn
itself is `app.api.run_turn`'s, the same as on the page, without a chat: nothing of its text is stored. What the client
sends as system message is not followed: the rules of an answer from documents are Docent's. The last chunk's (or the
reply's) field `docent` holds the turn's id, its mode, its sources and its citations.
"""

import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.api.frames import TurnIds
from app.api.leaving import LeavableResponse
from app.api.openai_errors import OpenAiError, app_error, frame_error
from app.api.run_turn import TurnRun
from app.api.stream import STREAM_HEADERS
from app.api.turn_start import TurnRequest
from app.catalog import Catalog
from app.edge.deps import Services
from app.errors import InvalidInputError
from app.rag.pieces import storable
from app.rag.prompts import PastTurn
from app.search.hits import SearchFilters
from app.store import turns
from app.turns.event_log import Event
from app.turns.registry import ShuttingDownError

PREFIX = "docent/"


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """What a completion request asks of a collection."""

    model: str
    collection_id: int
    question: str
    history: tuple[PastTurn, ...]
    stream: bool
    with_usage: bool


def read_question(catalog: Catalog, body: Mapping[str, Any], collection_id: int, *, max_chars: int) -> LibraryQuestion:
    """The last user message is the question; what was said before is the talk. Other roles are passed over.

    Raises:
        OpenAiError: when there is nothing to answer.
    """
    said = [message for message in _objects(body.get("messages")) if message.get("role") in ("user", "assistant")]
    asked = max((at for at, message in enumerate(said) if message["role"] == "user"), default=-1)
    question = _text(said[asked].get("content")).strip() if asked >= 0 else ""
    if not question:
        raise OpenAiError(400, "no_question", catalog.t("openai.no_question"))
    if len(question) > max_chars:
        params = {"chars": len(question), "limit": max_chars}
        raise app_error(catalog, InvalidInputError("question_too_long", params=params))
    if body.get("n") not in (None, 1):
        raise OpenAiError(400, "one_choice", catalog.t("openai.one_choice"))
    options = body.get("stream_options")
    with_usage = isinstance(options, dict) and bool(cast("dict[str, Any]", options).get("include_usage"))
    model = str(body["model"])
    return LibraryQuestion(model, collection_id, question, _talk(said[:asked]), body.get("stream") is True, with_usage)


async def answer(services: Services, user_id: int, asked: LibraryQuestion) -> Response:
    """Begins the turn; the response watches it, and ends it when the client leaves.

    Raises:
        OpenAiError: when the process is ending.
    """
    turn_id = secrets.token_hex(8)
    if services.turns.closing:
        raise app_error(services.catalog, ShuttingDownError())
    now = services.clock.now()
    await services.database.awrite(lambda session: turns.begin_lone_turn(session, turn_id, user_id, now))
    request = TurnRequest(
        TurnIds(turn_id, None, None, None),
        user_id,
        asked.question,
        SearchFilters((asked.collection_id,), None),
        without_documents=False,
        history=asked.history,
    )
    run = TurnRun(services, request)
    services.turns.start(turn_id, run, owner=user_id, total_s=services.settings.llm_total_s)
    return CompletionResponse(services, turn_id, asked, run, created=int(now.timestamp()))


class CompletionResponse(LeavableResponse):
    """One turn as a chat completion, streamed or whole."""

    def __init__(self, services: Services, turn_id: str, asked: LibraryQuestion, run: TurnRun, *, created: int) -> None:
        super().__init__()
        self._services = services
        self._turn_id = turn_id
        self._asked = asked
        self._told = Telling(services.catalog, turn_id, asked.model, created)
        self._run = run

    def ended(self) -> None:
        """A client that left wants no answer; a turn that is over stays as it is."""
        self._services.turns.stop(self._turn_id)

    async def work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tells the turn until it ends."""
        if not self._asked.stream:
            await (await self._whole())(scope, receive, send)
            return
        headers = {"content-type": "text/event-stream", **STREAM_HEADERS}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        async with aclosing(self._chunks()) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self) -> AsyncGenerator[bytes]:
        yield self._told.chunk({"role": "assistant", "content": ""})
        async with aclosing(self._services.turns.watch(self._turn_id)) as events:
            async for event in events:
                for chunk in self._told.take(event):
                    yield chunk
        if self._told.error is not None:
            yield _data(self._told.error.body)
            return
        if self._asked.with_usage:
            yield self._told.usage_chunk(self._usage())
        yield b"data: [DONE]\n\n"

    async def _whole(self) -> Response:
        async with aclosing(self._services.turns.watch(self._turn_id)) as events:
            async for event in events:
                self._told.take(event)
        if self._told.error is not None:
            return self._told.error.response()
        return JSONResponse(self._told.whole(self._usage()))

    def _usage(self) -> dict[str, int]:
        stats = self._run.stats
        prompt, completion = stats.prompt_tokens or 0, stats.completion_tokens or 0
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


class Telling:
    """A turn's events as a completion, one after the other. `error` is set when the turn ended in one."""

    def __init__(self, catalog: Catalog, turn_id: str, model: str, created: int) -> None:
        self.error: OpenAiError | None = None
        self._catalog = catalog
        self._head = {"id": f"chatcmpl-{turn_id}", "created": created, "model": model}
        self._docent: dict[str, Any] = {"turn_id": turn_id}
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._finish = "stop"

    def take(self, event: Event) -> list[bytes]:
        """The chunks an event becomes."""
        data = cast("dict[str, Any]", event.data)
        match event.event:
            case "start":
                self._docent["mode"] = data["mode"]
                self._docent["sources"] = data["sources"]
            case "delta":
                self._content.append(data["text"])
                return [self.chunk({"content": data["text"]})]
            case "thinking":
                self._thinking.append(data["text"])
                return [self.chunk({"reasoning_content": data["text"]})]
            case "notice" if data["code"] == "answer_cut":
                self._finish = "length"
            case "done":
                self._docent |= {key: data[key] for key in ("sources", "citations", "read_docs")}
                return [self.chunk({}, self._finish, docent=self._docent)]
            case "error":
                self.error = frame_error(data)
            case "stopped":
                self.error = frame_error({"code": "interrupted", "message": self._catalog.t("openai.stopped")})
            case _:
                pass
        return []

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        """One chunk of a stream."""
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
        return _data({**self._head, "object": "chat.completion.chunk", "choices": [choice], **more})

    def usage_chunk(self, usage: Mapping[str, int]) -> bytes:
        """The last chunk where the client asked for usage."""
        return _data({**self._head, "object": "chat.completion.chunk", "choices": [], "usage": dict(usage)})

    def whole(self, usage: Mapping[str, int]) -> dict[str, Any]:
        """The reply as one."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content)}
        if self._thinking:
            message["reasoning_content"] = "".join(self._thinking)
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": dict(usage),
            "docent": self._docent,
        }


def _data(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode("ascii") + b"\n\n"


def _talk(said: Sequence[Mapping[str, Any]]) -> tuple[PastTurn, ...]:
    """Questions with the answer that followed them; a question asked twice over is one."""
    past: list[PastTurn] = []
    question = ""
    for message in said:
        text = _text(message.get("content"))
        if message["role"] == "user":
            question = text
        elif question and text:
            past.append(PastTurn(question, text))
            question = ""
    return tuple(past)


def _text(content: object) -> str:
    """A message's text: a string, or the text parts of a list; half characters, which nothing can hold, replaced."""
    if isinstance(content, str):
        return storable(content)
    parts = _objects(content)
    return "\n".join(_text(part["text"]) for part in parts if isinstance(part.get("text"), str))


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
