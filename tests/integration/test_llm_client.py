"""The model client against a server that misbehaves: real sockets, every end of a reply."""

import asyncio
import json
import traceback

import pytest

from app.catalog import load_catalog
from app.edge.errors import error_message
from app.rag.llm import chat_stream
from app.rag.pieces import StreamPiece, ToolCallPiece
from app.upstream.client import ClientPool, Endpoint
from tests.asking import QUESTION, ask, collect, serve
from tests.fault_server import FaultServer
from tests.faults import OVERFLOWS, SECRET_TEXT


def test_a_reply_streams_in_and_ends_with_its_usage() -> None:
    """Content as it came, one usage piece last, one request with what the endpoint sets and nothing more."""
    outcome, server = ask("usage", temperature=0.2, max_tokens=99, api_key="key-1234")
    assert [p.kind for p in outcome.pieces if isinstance(p, StreamPiece)] == ["content", "usage"]
    assert outcome.data("usage") == [{"prompt_tokens": 7, "completion_tokens": 3, "finish_reason": "stop"}]
    (seen,) = server.seen
    assert seen.body == {
        "messages": QUESTION,
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.2,
        "max_tokens": 99,
    }
    assert seen.headers["authorization"] == "Bearer key-1234"


def test_only_needed_headers_leave_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No platform facts, no organisation or key of the environment, no proxy; without a key no Authorization."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "canary-of-the-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: canary-of-the-environment")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    outcome, server = ask("ok")
    assert outcome.text() == "Hello"
    headers = server.seen[0].headers
    assert "canary" not in json.dumps(headers)
    assert headers["user-agent"] == "docent"
    assert not [name for name in headers if name.startswith(("x-", "openai", "authorization", "idempotency"))]


@pytest.mark.parametrize(
    ("fault", "code", "text"),
    [
        ("cut", "llm_incomplete.cut", "half of"),
        ("empty", "llm_incomplete.cut", ""),
        ("reset", "llm_incomplete.cut", "a"),
        ("reset-first", "llm_unavailable.reset", ""),
        ("bad-frames", "llm_incomplete.frames", "a"),
        ("huge-line", "llm_incomplete.size", "a"),
        ("error-data", "llm_rejected.error_event", "a"),
        ("error-event", "llm_rejected.error_event", "a"),
        ("error-line", "llm_rejected.error_event", "a"),
        ("html", "llm_rejected.html", ""),
        ("json-other", "llm_rejected.not_api", ""),
        ("401", "llm_rejected.key", ""),
        ("403", "llm_rejected.forbidden", ""),
        ("404", "llm_rejected.not_found", ""),
        ("404-html", "llm_rejected.html", ""),
        ("404-model", "llm_rejected.model", ""),
        ("400", "llm_rejected.request", ""),
        ("307", "llm_rejected.redirect", ""),
        ("408", "llm_timeout.server", ""),
        ("429", "llm_unavailable.busy", ""),
        ("429-wait", "llm_unavailable.busy_for", ""),
        ("503", "llm_unavailable.server", ""),
        ("503-loading", "llm_unavailable.loading", ""),
        ("500-huge", "llm_unavailable.server", ""),
        ("overflow-event", "context_overflow", ""),
        *[(f"overflow-{name}", "context_overflow", "") for name in OVERFLOWS],
    ],
)
def test_every_fault_has_its_code_and_sentence_and_keeps_the_text(fault: str, code: str, text: str) -> None:
    """S1–S9, S12, S14, S16: none passes as an answer; the sentence is ours, whole, and names no provider text."""
    outcome, server = ask(fault, api_key="key-1234")
    assert (outcome.code, outcome.text()) == (code, text)
    assert outcome.data("usage") == []
    assert len(server.seen) == 1
    assert outcome.error is not None
    sentence = error_message(load_catalog(), outcome.error)
    assert load_catalog().has(f"errors.{code}") or code == "llm_incomplete.cut"
    assert "{" not in sentence
    printed = "".join(traceback.format_exception(outcome.error))
    for secret in (*SECRET_TEXT.split(), "key-1234", "pw@", "t=1"):
        assert secret not in sentence
        assert secret not in printed
        assert secret not in str(outcome.error.params)


def test_a_redirect_is_not_followed_and_names_its_target() -> None:
    """F3: the key stays; the person reads where the server points to."""
    outcome, _ = ask("307", api_key="key-1234")
    assert outcome.error is not None
    assert outcome.error.params["target"] == "trap.example:99"
    assert outcome.error.setting == "LLM_BASE_URL"


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("json", "whole"),
        ("pings-then-ok", "x"),
        ("invalid-utf8", "a\ufffdb"),
        ("reset-after-finish", "a"),
        ("late", "Hello"),
        ("no-stream-options", "Hello"),
    ],
)
def test_odd_but_whole_replies_are_replies(fault: str, text: str) -> None:
    """S5, S8: a JSON body, comments, broken UTF-8, a sloppy end after the finish reason, an unknown option."""
    outcome, _ = ask(fault)
    assert (outcome.code, outcome.text()) == (None, text)
    assert len(outcome.data("usage")) == 1


def test_a_reply_over_the_size_limit_keeps_what_came_before() -> None:
    """S9: at most 8 MiB of a reply are read."""
    outcome, _ = ask("huge-reply")
    assert outcome.code == "llm_incomplete.size"
    assert 1_000_000 < len(outcome.text()) <= 8 * 1024 * 1024


def test_a_server_that_refuses_stream_options_is_asked_without_from_then_on() -> None:
    """The refusal costs one request, once."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        for _ in range(2):
            outcome = await collect(
                chat_stream(server.endpoint("no-stream-options"), QUESTION, tools=None, clients=pool)
            )
            assert outcome.text() == "Hello"
        assert ["stream_options" in seen.body for seen in server.seen] == [True, False, False]

    serve(test)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:9/v1", "llm_unavailable.refused"),
        ("http://no-such-host.invalid:1/v1", "llm_unavailable.dns"),
        ("https://127.0.0.1:{port}/ok/v1", "llm_unavailable.tls"),
        ("nonsense", "llm_rejected.address"),
        ("http://[::1/v1", "llm_rejected.address"),
        ("ftp://127.0.0.1/v1", "llm_rejected.address"),
    ],
)
def test_an_address_that_leads_nowhere_has_its_own_sentence(url: str, code: str) -> None:
    """S16: nothing answers, unknown name, no TLS, not an address."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        endpoint = Endpoint(url.format(port=server.port), model="m", retry_max=0, connect_s=3)
        outcome = await collect(chat_stream(endpoint, QUESTION, tools=None, clients=pool))
        assert outcome.code == code
        assert outcome.error is not None
        assert "{" not in error_message(load_catalog(), outcome.error)

    serve(test)


def test_a_key_that_no_header_can_carry_is_named() -> None:
    """A pasted line break or umlaut is the key's fault, not the server's."""
    for key in ("schlüssel", "a\nb"):
        outcome, server = ask("ok", api_key=key)
        assert outcome.code == "llm_rejected.key_shape"
        assert server.seen == []


def test_tool_calls_come_after_the_text_by_index() -> None:
    """Whole calls only, in the server's order, before the usage piece; the tools are sent as given."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        outcome = await collect(chat_stream(server.endpoint("tools"), QUESTION, tools=tools, clients=pool))
        assert [p for p in outcome.pieces if isinstance(p, ToolCallPiece)] == [
            ToolCallPiece(0, "a", "f", '{"p":1}'),
            ToolCallPiece(1, "b", "g", "{}"),
        ]
        assert [type(p) for p in outcome.pieces] == [StreamPiece, ToolCallPiece, ToolCallPiece, StreamPiece]
        assert server.seen[0].body["tools"] == tools

    serve(test)


def test_reasoning_is_thinking_and_never_content() -> None:
    """The server's own reasoning field, with or without a filter."""
    outcome, _ = ask("reasoning")
    assert (outcome.text("thinking"), outcome.text()) == ("Hmm.", "Yes.")


def test_without_a_filter_a_think_block_is_content_byte_for_byte() -> None:
    """`None` reroutes, holds and changes nothing."""
    outcome, _ = ask("think")
    assert [p.text for p in outcome.pieces if isinstance(p, StreamPiece) and p.kind == "content"] == [
        "<thi",
        "nk>Hm",
        "m.</th",
        "ink>\n\nYes.",
    ]


def test_without_a_pool_a_request_brings_its_own_client() -> None:
    """`chat_stream(endpoint, messages, tools=None)` is enough; nothing stays open."""

    async def test(server: FaultServer, _: ClientPool) -> None:
        assert (await collect(chat_stream(server.endpoint("ok"), QUESTION, tools=None))).text() == "Hello"

    serve(test)


def test_many_requests_at_once_use_one_client() -> None:
    """The pool makes one client per server and key, however many ask at once."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        endpoint = server.endpoint("ok")
        outcomes = await asyncio.gather(
            *[collect(chat_stream(endpoint, QUESTION, tools=None, clients=pool)) for _ in range(30)]
        )
        assert {outcome.text() for outcome in outcomes} == {"Hello"}
        assert await pool.client(endpoint) is await pool.client(server.endpoint("ok"))

    serve(test)
