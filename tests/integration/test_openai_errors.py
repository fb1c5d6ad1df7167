"""`/v1` when something is wrong: every error is one that an OpenAI client understands, and none quotes raw markup."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from app.settings import Settings
from tests.integration.openai_kit import (
    SILENT,
    Answer,
    Docent,
    chunk,
    ended_before_the_next,
    proxy_lines,
    sse,
    standing,
    stream,
    whole,
)
from tests.integration.openai_said import said_until_error

MARKUP = "<|tool_call_start|>[read(path='/a.md')]<|tool_call_end|>"
KEY = "sk-of-the-house-1"


quiet = pytest.fixture(autouse=True)(ended_before_the_next)


@pytest.fixture(scope="module")
def docent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    changes = {"llm_api_key": KEY, "llm_first_token_s": 0.4, "llm_idle_s": 0.3}
    with standing(tmp_path_factory.mktemp("docent"), changes=changes) as docent:
        yield docent


def refusal(status: int, message: str, **more: Any) -> Answer:
    headers = more.pop("headers", {})
    return Answer({"error": {"message": message, "type": "t", "code": "c", **more}}, status, headers=headers)


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_refusal_of_the_server_reaches_the_client_as_itself(
    docent: Docent, status: int, raised: type[openai.APIStatusError], streamed: bool
) -> None:
    """Its status, sentence, type and code."""
    docent.upstream.says(refusal(status, "No such thing.", headers={"retry-after": "7"}))
    with pytest.raises(raised) as caught:
        docent.ask(stream=streamed)
    error = caught.value
    assert (error.status_code, error.code, error.type) == (status, "c", "t")
    assert error.body["message"] == "No such thing."  # type: ignore[index]
    assert error.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"error": "model 'm' not found"}, "model 'm' not found", "http_404"),
        ({"detail": "Not Found"}, "Not Found", "http_404"),
        ({"message": "gone", "object": "error"}, "gone", "http_404"),
        ({"error": {"message": None, "code": 404}}, "The model server refused the request (HTTP 404).", "404"),
        ({"error": {"message": ["x"], "code": {}}}, "The model server refused the request (HTTP 404).", "http_404"),
        (b"<html><h1>nginx</h1>", "The model server refused the request (HTTP 404).", "http_404"),
        (b"", "The model server refused the request (HTTP 404).", "http_404"),
        (b"[" * 5000, "The model server refused the request (HTTP 404).", "http_404"),
        (b'{"error": {"message": "\xff"}}', "The model server refused the request (HTTP 404).", "http_404"),
    ],
)
def test_a_refusal_in_another_shape_is_told_in_openais(docent: Docent, body: Any, message: str, code: str) -> None:
    """Ollama's, FastAPI's, vLLM's older one; a page, nothing, and what can't be read."""
    docent.upstream.says(Answer(body, 404))
    reply = docent.post({"model": "m", "messages": []})
    assert reply.status_code == 404
    assert reply.json() == {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code},
    }  # fmt: skip


def test_an_error_never_quotes_scaffolding_nor_the_key(docent: Docent) -> None:
    """A server that fails to parse its model's answer quotes it; another repeats the key it was asked with."""
    quoted = f"Failed to parse input at pos 395: {MARKUP} (key {KEY})"
    docent.upstream.says(refusal(500, quoted, type=f"x{MARKUP}", code=f"{MARKUP}{KEY}" + "y" * 999))
    text = docent.post({"model": "m", "messages": []}).text
    assert "Failed to parse input at pos 395" in text
    assert not any(secret in text for secret in ("tool_call", KEY))
    assert len(text) < 700


@pytest.mark.parametrize("streamed", [True, False])
def test_an_error_in_place_of_an_answer_loses_its_markup(docent: Docent, streamed: bool) -> None:
    """With status 200: as an event of a stream, or as the whole body; with tools offered it stays as it is."""
    error = {"error": {"message": f"Failed to parse: {MARKUP}.", "code": 500}}
    answer = Answer(sse(error, done=False), kind="text/event-stream") if streamed else Answer(error)
    docent.upstream.says(answer)
    asked: dict[str, Any] = {"model": "m", "messages": [], "stream": streamed}
    assert "tool_call" not in docent.post(asked).text
    assert "Failed to parse: ." in docent.post(asked).text
    tools = [{"type": "function", "function": {"name": "x"}}]
    assert MARKUP in json.loads(docent.post({**asked, "tools": tools}).text.removeprefix("data: "))["error"]["message"]


@pytest.mark.parametrize(
    ("answer", "status", "code", "sentence"),
    [
        (Answer(b"<!doctype html><title>Log in</title>", kind="text/html"), 502, "llm_rejected", "A web page answered"),
        (Answer(b"", 302, headers={"location": "http://x/y"}), 502, "llm_rejected", "elsewhere"),
        (Answer(refused=True), 502, "llm_unavailable", "can't be reached"),
        (SILENT, 504, "llm_timeout", "took too long"),
        (Answer(b'{"choices": [', then="cut"), 502, "llm_incomplete", "broke off"),
        (Answer(b'{"choices": [', then="hang"), 504, "llm_timeout", "took too long"),
    ],
    ids=["page", "redirect", "closed", "silent", "cut", "idle"],
)
def test_a_server_that_gives_no_answer(
    docent: Docent, answer: Answer, status: int, code: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client is told which server and what; the request has its line."""
    caplog.set_level(logging.INFO)
    docent.upstream.says(answer)
    with pytest.raises(openai.InternalServerError) as caught:
        docent.ask()
    assert (caught.value.status_code, caught.value.code, caught.value.type) == (status, code, "api_error")
    assert sentence in caught.value.message
    assert "127.0.0.1" in caught.value.message
    (line,) = proxy_lines(caplog, 1)
    assert (line["outcome"], line["status"]) == ("error", str(status))


@pytest.mark.parametrize("tools", [None, [{"type": "function", "function": {"name": "x"}}]])
@pytest.mark.parametrize("then", ["cut", "hang"])
def test_a_stream_that_breaks_off_says_so(docent: Docent, then: Any, tools: Any) -> None:
    """After what had been said, also when it breaks in the middle of a line: an error, not half a line and no end."""
    half = sse(chunk("Thirty "), chunk("days."), done=False)
    docent.upstream.says(Answer(half[:-20], kind="text/event-stream", then=then))
    text, error = said_until_error(docent.ask(stream=True, **({"tools": tools} if tools else {})))
    assert text == "Thirty "
    assert error is not None
    assert error.code == ("llm_incomplete" if then == "cut" else "llm_timeout")


def test_what_the_filter_held_is_told_before_the_break(docent: Docent) -> None:
    """Text that only looked like the beginning of a token is text."""
    docent.upstream.says(Answer(sse(chunk("a <|tool"), done=False), kind="text/event-stream", then="cut"))
    text, error = said_until_error(docent.ask(stream=True))
    assert (text, error is None) == ("a <|tool", False)


def test_a_header_that_cannot_be_sent_on_is_left_out(docent: Docent) -> None:
    """A content type or a wait in letters no header may hold."""
    odd = Answer(whole(), kind="application/json; v=\u00e9")
    docent.upstream.says(odd, Answer({"error": "x"}, 429, headers={"retry-after": "\u00e9"}), stream(chunk("a")))
    assert docent.ask().choices[0].message.content == "Thirty days."
    assert "retry-after" not in docent.post({"model": "m", "messages": []}).headers


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, "not_json"),
        (b"{", 400, "not_json"),
        (b"\xff\xfe{", 400, "not_json"),
        (b"[1]", 400, "not_an_object"),
        (b'"x"', 400, "not_an_object"),
        (b"null", 400, "not_an_object"),
        (b"{}", 400, "no_model"),
        (b'{"model": "", "messages": []}', 400, "no_model"),
        (b'{"model": null, "messages": []}', 400, "no_model"),
        (b'{"model": ["m"], "messages": []}', 400, "no_model"),
        (b'{"model": "docent/none", "messages": []}', 404, "model_not_found"),
    ],
)
def test_a_body_that_is_no_request_is_refused(docent: Docent, raw: bytes, status: int, code: str) -> None:
    """In OpenAI's shape; nothing is asked of the server and nothing counted."""
    before = docent.scanned()
    upstream = docent.upstream.says()
    reply = docent.post(raw)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["type"]) == (status, code, "invalid_request_error")
    assert error["message"]
    assert upstream.seen == []
    assert docent.scanned() == before


@pytest.mark.parametrize("messages", [None, "hi", 7, {}, [], [None], ["hi", 3, [[]]], [{"role": 5, "content": {}}]])
def test_messages_of_any_shape_go_to_the_server(docent: Docent, messages: Any) -> None:
    """The guard lets pass what it can't read; the server says what it makes of it."""
    upstream = docent.upstream.says(Answer(whole()))
    raw = json.dumps({"model": "m", "messages": messages}).encode()
    assert docent.post(raw).status_code == 200
    assert upstream.seen[0].raw == raw


@pytest.mark.parametrize("depth", [400, *range(900, 1000, 7), 1000, 100_000])
def test_a_deeply_nested_body_goes_to_the_server(docent: Docent, depth: int) -> None:
    """Too deep to be read: unjudged. Just not too deep: judged. Never an error of Docent's."""
    upstream = docent.upstream.says(Answer(whole()))
    nested = b'{"a":' * (depth // 2) + b"[" * (depth // 2)
    raw = b'{"model":"m","messages":[{"role":"user","content":' + nested + b"1" + _closing(depth) + b"}]}"
    assert docent.post(raw).status_code == 200
    assert upstream.seen[0].raw == raw


def _closing(depth: int) -> bytes:
    return b"]" * (depth // 2) + b"}" * (depth // 2)


def test_a_request_over_the_limit_is_refused(docent: Docent) -> None:
    """More than 64 MB, announced or not."""
    upstream = docent.upstream.says()
    part = b"x" * (1024 * 1024)
    answer = docent.http.post("/v1/chat/completions", content=(part for _ in range(65)))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert "64 MB" in answer.json()["error"]["message"]
    assert upstream.seen == []


def test_without_a_model_server_only_collections_can_be_asked(settings: Settings) -> None:
    """A clear 404, which a client takes as a missing model."""
    with Docent(settings) as docent:
        with pytest.raises(openai.NotFoundError, match="No model server is set up") as caught:
            docent.ask()
        assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/none", 404), ("GET", "/v1/chat/completions", 405)])
def test_another_address_under_v1_answers_in_the_same_shape(
    docent: Docent, method: str, path: str, status: int
) -> None:
    """A client shows its sentence."""
    reply = docent.http.request(method, path)
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
