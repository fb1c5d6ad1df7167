"""Servers that refuse a request because of its tools: recognised by their words, remembered for an hour."""

import json
from typing import Any

import httpx2
import pytest

from app.catalog import load_catalog
from app.edge.errors import error_message
from app.rag.llm import chat_stream_retried
from app.settings import Settings
from app.upstream.client import TOOLS_REFUSED_S, ClientPool, Endpoint
from app.upstream.failures import failure_of_response
from tests.asgi import Client
from tests.asking import QUESTION, Outcome, collect, serve
from tests.fault_behaviours import only_with_tools
from tests.fault_server import FaultServer
from tests.fault_turns import in_turns
from tests.faults import FAULTS, TOOLS_REFUSED
from tests.shifted_clock import ShiftedClock

TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]

OTHERS = [
    (400, "Anthropic doesn't support tool calling without `tools=` param specified."),
    (400, "Invalid schema for function 'search': tools[0].function.parameters is not valid"),
    (422, '{"detail":[{"loc":["body","tools",0,"function"],"msg":"field required"}]}'),
    (400, "tool_choice 'search' was not found in the tools list"),
    (400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
    (400, "This model does not support the temperature parameter"),
    (400, "The tool result is not valid JSON"),
    (404, 'model "m" not found, try pulling it first'),
    (500, "Internal error while tools were running"),
    (400, "Unknown parameter: 'tools[0].strict'."),
]
"""Refusals for another reason."""


def ask(server: FaultServer, pool: ClientPool, fault: str, tools: Any = TOOLS, **changes: Any) -> Any:
    endpoint = server.endpoint(fault, retry_max=2, **changes)
    return collect(chat_stream_retried(endpoint, QUESTION, tools=tools, clients=pool))


@pytest.mark.parametrize("name", TOOLS_REFUSED)
def test_a_refusal_of_tools_is_recognised_and_remembered(name: str) -> None:
    """Whatever the status, one request; the pool knows it for this model, and no other."""

    async def test(server: FaultServer, pool: ClientPool) -> Outcome:
        endpoint = server.endpoint(f"tools-{name}")
        assert not pool.refuses_tools(endpoint)
        outcome: Outcome = await ask(server, pool, f"tools-{name}")
        assert pool.refuses_tools(endpoint)
        assert not pool.refuses_tools(server.endpoint(f"tools-{name}", model="another"))
        assert len(server.seen) == 1
        return outcome

    outcome = serve(test)
    assert (outcome.code, outcome.data("retry")) == ("tools_unsupported", [])
    assert outcome.error is not None
    sentence = error_message(load_catalog(), outcome.error)
    assert "{" not in sentence
    assert "LLM_MODEL" in sentence


@pytest.mark.parametrize(("status", "text"), OTHERS)
def test_other_refusals_are_not_taken_for_one_of_tools(status: int, text: str) -> None:
    """A wrong schema, a missing model, another parameter: what the server says stays what it is."""
    body = text if text.startswith("{") else json.dumps({"error": {"message": text}})
    response = httpx2.Response(status, text=body)
    failure = failure_of_response(response, Endpoint("http://h:1/v1", model="m"), with_tools=True)
    assert failure.code in ("llm_rejected", "llm_unavailable")


def test_a_request_without_tools_is_never_refused_because_of_them() -> None:
    """The same words then mean something else; nothing is remembered."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        outcome = await ask(server, pool, "tools-ollama", tools=None)
        assert outcome.code == "llm_rejected.request"
        assert not pool.refuses_tools(server.endpoint("tools-ollama"))

    serve(test)


def test_a_refusal_inside_the_stream_is_recognised_too() -> None:
    """Status 200, then an error event."""

    async def test(server: FaultServer, pool: ClientPool) -> None:
        outcome = await ask(server, pool, "tools-refused-event")
        assert outcome.code == "tools_unsupported"
        assert pool.refuses_tools(server.endpoint("tools-refused-event"))

    serve(test)


def test_a_refusal_is_forgotten_after_an_hour() -> None:
    """A server that was upgraded meanwhile is noticed; asking another model forgets nothing."""
    clock = ShiftedClock()
    pool = ClientPool(clock)
    endpoint = Endpoint("http://h:1/v1", model="m")
    pool.mark_toolless(endpoint)
    clock.shift(TOOLS_REFUSED_S - 5)
    assert pool.refuses_tools(endpoint)
    clock.shift(10)
    assert not pool.refuses_tools(endpoint)


def test_the_refusal_of_the_first_listed_model_is_its_own() -> None:
    """Without LLM_MODEL the model that was asked is the one that is remembered."""
    pool = ClientPool()
    endpoint = Endpoint("http://h:1/v1")
    pool.remember_model(endpoint, "small")
    pool.mark_toolless(endpoint)
    assert pool.refuses_tools(Endpoint("http://h:1/v1", model="small"))
    pool.remember_model(endpoint, "large")
    assert not pool.refuses_tools(endpoint)


def test_a_turn_whose_tools_are_refused_is_answered_and_the_next_one_offers_none(settings: Settings) -> None:
    """The refusal costs one request, once: asked again without tools, told without them, remembered."""
    fault = only_with_tools(FAULTS["tools-ollama"])

    async def test(client: Client, server: FaultServer) -> None:
        for _ in range(2):
            frames = await (await client.ask()).all_frames()
            assert [frame.event for frame in frames if frame.event in ("error", "retry", "done")] == ["done"]
        assert ["tools" in seen.body for seen in server.seen] == [True, False, False]
        assert server.seen[1].body["messages"] == server.seen[2].body["messages"]

    in_turns(settings, {"x": fault}, test)
