"""The mock model keeps its promises: the product's own client talks to it over a socket."""

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from app.rag.llm import chat_for_endpoint, chat_stream_retried
from app.rag.pieces import Passage, ToolCallPiece
from app.rag.prompts import build_deflect_prompt, build_grounded_prompt, build_messages
from app.rag.tool_calls import Tools
from app.rag.tools.definitions import DEFINITIONS
from app.search.endpoint import EndpointEmbedder
from app.upstream.client import ClientPool, Endpoint
from tests.asking import Outcome, collect
from tests.e2e.mock_flows import MARKUP
from tests.e2e.mock_llm import MockLlm
from tests.waiting import until

TEXT = "The server sleeps at night. The backup of the server runs at 02:30 every night. Nothing else runs."


@pytest.fixture(scope="module")
def mock() -> Iterator[MockLlm]:
    with MockLlm() as running:
        yield running


def passages() -> list[Passage]:
    return [
        Passage(n, n, n, f"{n}.md", "Notes", "", None, text, 0, len(text), 1, 1, 0.9)
        for n, text in enumerate([TEXT, "Bread is baked from flour, water and salt."], 1)
    ]


def ask(mock: MockLlm, question: str, system: str | None = None, tools: Tools | None = None, **changes: Any) -> Outcome:
    async def run() -> Outcome:
        pool = ClientPool()
        messages = build_messages(system or build_grounded_prompt(passages()), [], question)
        try:
            endpoint = Endpoint(mock.base_url, model="mock-model", **changes)
            return await collect(chat_stream_retried(endpoint, messages, tools=tools, clients=pool))
        finally:
            await pool.aclose()

    return asyncio.run(asyncio.wait_for(run(), 30))


def test_a_grounded_answer_quotes_the_passage_with_its_number(mock: MockLlm) -> None:
    """The sentence nearest to the question, word for word, with its marker; usage last."""
    outcome = ask(mock, "When does the backup of the server run?")
    assert "The backup of the server runs at 02:30 every night [1]." in outcome.text()
    assert set(re.findall(r"\[(\d)\]", outcome.text())) <= {"1", "2"}
    assert outcome.data("usage")[0]["completion_tokens"] > 5
    assert mock.requests[-1].tools_absent


def test_a_deflecting_prompt_is_answered_without_markers(mock: MockLlm) -> None:
    """`DEFLECT_MODE` in the system message: no citation."""
    outcome = ask(mock, "What is the weather?", build_deflect_prompt(documents=3))
    assert outcome.error is None
    assert "[" not in outcome.text()


@pytest.mark.parametrize(
    ("trigger", "code"),
    [
        ("e2e-503-always", "llm_unavailable.server"),
        ("e2e-drop", "llm_incomplete.cut"),
        ("e2e-html", "llm_rejected.html"),
        ("e2e-500-markup", "llm_unavailable.server"),
    ],
)
def test_each_failing_flow_fails_as_named(mock: MockLlm, trigger: str, code: str) -> None:
    """The code of the error frame; a drop keeps its text; no provider text in the error."""
    outcome = ask(mock, f"please {trigger}", retry_max=1)
    assert outcome.code == code
    assert bool(outcome.text()) == (trigger == "e2e-drop")
    assert outcome.error is not None
    assert MARKUP not in repr((outcome.error.params, outcome.error.args))


def test_busy_once_is_busy_once_per_question(mock: MockLlm) -> None:
    """A retry frame, then the answer; asking the same again meets it again."""
    for _ in range(2):
        outcome = ask(mock, "backup e2e-503-once")
        assert [retry["reason"] for retry in outcome.data("retry")] == ["http_5xx"]
        assert "02:30" in outcome.text()


def test_thinking_comes_before_the_answer_and_apart(mock: MockLlm) -> None:
    """Reasoning in its own field."""
    outcome = ask(mock, "backup e2e-think")
    assert outcome.text("thinking").startswith("The passages")
    assert "02:30" in outcome.text()


def test_calls_are_streamed_while_tools_are_offered(mock: MockLlm) -> None:
    """In parts, with the finish reason of a call; without tools the same question is answered."""
    outcome = ask(mock, "backup e2e-read", tools=DEFINITIONS)
    calls = [piece for piece in outcome.pieces if isinstance(piece, ToolCallPiece)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("read", {"path": "/library/1.md"})]
    assert outcome.data("usage")[0]["finish_reason"] == "tool_calls"
    assert not outcome.text()
    assert "02:30" in ask(mock, "backup e2e-read").text()


def test_markdown_arrives_whole(mock: MockLlm) -> None:
    """With a table, code, a hostile link and an image, for the page to tame."""
    text = ask(mock, "e2e-md").text()
    for part in ("| --- |", "```bash", "javascript:alert", "![tracking pixel]"):
        assert part in text


@pytest.mark.parametrize(("trigger", "text"), [("e2e-slow", "Slowly, word 1"), ("e2e-silent", "")])
def test_leaving_is_recorded(mock: MockLlm, trigger: str, text: str) -> None:
    """The mock notes when the client left: here, when the turn's total clock struck."""

    async def run() -> Outcome:
        pool = ClientPool()
        endpoint = Endpoint(mock.base_url, model="mock-model", total_s=0.7)
        await pool.client(endpoint)
        chat = chat_for_endpoint(endpoint, pool)
        try:
            return await collect(chat(build_messages("s", [], trigger), tools=None))
        finally:
            await pool.aclose()

    outcome = asyncio.run(asyncio.wait_for(run(), 30))
    assert outcome.code == "llm_timeout.total"
    assert outcome.text().startswith(text)
    until(lambda: mock.requests[-1].disconnected_at is not None, "the disconnect is recorded", 2)
    assert mock.requests[-1].ended_at is None


def test_what_was_asked_can_be_read_over_http(mock: MockLlm) -> None:
    """`/__requests` is for tests whose mock runs in another process; `/__reset` forgets."""
    ask(mock, "When?")
    root = mock.base_url.removesuffix("/v1")
    with urllib.request.urlopen(f"{root}/__requests") as answer:
        seen = json.load(answer)
    last = seen["requests"][-1]
    assert last["tools_absent"]
    assert last["body"]["messages"][-1]["content"] == "When?"
    assert last["ended_at"] >= last["first_at"] >= last["at"]
    urllib.request.urlopen(urllib.request.Request(f"{root}/__reset", method="POST")).close()
    assert mock.requests == []


def test_embeddings_are_deterministic_and_near_for_shared_words(mock: MockLlm) -> None:
    """Through the product's own embedder."""
    embedder = EndpointEmbedder(Endpoint(mock.base_url, model="mock-embed"))
    same, near, far = embedder.embed_passages(["backup of the server", "the server backup", "bread and salt"])
    assert float(same @ embedder.embed_query("backup of the server")) == pytest.approx(1.0, abs=1e-5)
    assert float(same @ near) > float(same @ far)
    embedder.close()


def test_a_rate_paces_the_tokens() -> None:
    """40 tokens a second take their time; so does nothing else."""
    with MockLlm(rate=40) as mock:
        begun = time.monotonic()
        outcome = ask(mock, "When does the backup of the server run?")
        assert time.monotonic() - begun > (len(outcome.text().split()) - 2) / 40
