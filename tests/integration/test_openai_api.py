"""`/v1` as the official client sees it: models, and completions of the model server passed through."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from app.settings import Settings
from app.store import collections
from app.store.models.setup import LOCAL_USER_ID
from tests.e2e.mock_llm import MockLlm
from tests.integration.openai_kit import (
    SAID,
    Answer,
    Docent,
    Upstream,
    chunk,
    ended_before_the_next,
    proxy_lines,
    sse,
    standing,
    stream,
    whole,
)
from tests.integration.openai_said import said

quiet = pytest.fixture(autouse=True)(ended_before_the_next)


@pytest.fixture(scope="module")
def docent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    with standing(tmp_path_factory.mktemp("docent")) as docent:
        yield docent


CALL = "<|tool_call_start|>[read(path='/a.md')]<|tool_call_end|>"
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}


def with_library(docent: Docent) -> None:
    now = docent.services.clock.now()
    docent.services.database.write(lambda session: collections.library_id(session, LOCAL_USER_ID, now))


def test_models_are_the_collections_and_what_the_server_lists(settings: Settings) -> None:
    """Each can be fetched by its id, slashes included; an unknown one is the client's NotFoundError."""
    with Upstream(models=("m", "org/big")) as upstream, Docent(settings, upstream) as docent:
        with_library(docent)
        listed = {model.id: model for model in docent.client.models.list()}
        assert set(listed) == {"docent/library", "m", "org/big"}
        assert (listed["docent/library"].owned_by, listed["m"].owned_by) == ("docent", "us")
        for name in listed:
            assert docent.client.models.retrieve(name).id == name
        with pytest.raises(openai.NotFoundError) as caught:
            docent.client.models.retrieve("docent/none")
        assert caught.value.code == "model_not_found"


@pytest.mark.parametrize("case", ["none set", "refuses"])
def test_without_a_model_server_the_collections_are_the_models(settings: Settings, case: str) -> None:
    """Whether none is set or it can't be reached."""
    changes = {} if case == "none set" else {"llm_base_url": "http://127.0.0.1:9/v1"}
    with Docent(settings, changes=changes) as docent:
        with_library(docent)
        assert [model.id for model in docent.client.models.list()] == ["docent/library"]


def test_a_completion_passes_through_streamed_and_whole(settings: Settings) -> None:
    """Against a sensible model server: the same text and usage as without Docent between."""
    with MockLlm() as mock:
        changes = {"llm_base_url": mock.base_url}
        with Docent(settings, changes=changes) as docent:
            parts = list(docent.ask(stream=True, stream_options={"include_usage": True}))
            reply = docent.ask()
            assert (
                said(parts) == reply.choices[0].message.content == "This is an answer without documents to: How long?"
            )
            assert parts[-1].usage == reply.usage
            assert parts[-2].choices[0].finish_reason == "stop"
            assert [record.body["messages"] for record in mock.requests] == [
                [{"role": "user", "content": "How long?"}],
            ] * 2


def test_the_body_goes_on_byte_for_byte_and_unknown_fields_come_back(docent: Docent) -> None:
    """Spacing, key order, numbers, escapes and fields nobody knows are the client's and the server's affair."""
    odd = whole(reasoning_content="Hm.", made_up=[1, None]) | {"system_fingerprint": "b1", "timings": {"n": 1.50}}
    odd_chunk = chunk("Thirty days.", made_up={"x": 1}) | {"timings": {"n": 2}}
    raw = b'{"model" : "m","messages":[ {"role":"user","content":"\\u00fc \xc3\xbc"}],"top_k":4e1, "zz":{"b":1,"a":2}}'
    upstream = docent.upstream.says(Answer(odd), stream(odd_chunk))
    reply, streamed = docent.post(raw), docent.post(raw)
    assert [asked.raw for asked in upstream.seen] == [raw, raw]
    assert reply.content == json.dumps(odd).encode()
    assert streamed.content == sse(odd_chunk)
    assert streamed.headers["content-type"] == "text/event-stream"


def test_the_servers_own_key_is_sent_and_nothing_of_the_clients_headers(settings: Settings) -> None:
    """Neither its key nor its platform."""
    with Upstream() as upstream, Docent(settings, upstream, changes={"llm_api_key": "sk-ours-1234"}) as docent:
        docent.post({"model": "m", "messages": []}, authorization="Bearer sk-theirs", cookie="a=b", x_custom="1")
        headers = upstream.seen[0].headers
        assert headers["authorization"] == "Bearer sk-ours-1234"
        assert headers["x-docent-hop"] == "1"
        assert not {"cookie", "x-custom"} & set(headers)
        assert not any(name.startswith("x-stainless") for name in headers)


def test_tool_calls_are_relayed_byte_for_byte(docent: Docent) -> None:
    """Offered tools go on, calls come back in their pieces, and what looks like scaffolding is left alone."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"pa'}}
    rest = {"index": 0, "function": {"arguments": 'th": "/ü"}'}}
    events = [chunk(CALL), chunk(tool_calls=[call]), chunk(tool_calls=[rest]), chunk(finish="tool_calls")]
    message = {"role": "assistant", "content": CALL, "tool_calls": [call]}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    upstream = docent.upstream.says(stream(*events), stream(*events), Answer(reply))
    asked = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": [TOOL], "stream": True}
    assert docent.post(asked).content == sse(*events)
    parts = list(docent.ask(tools=[TOOL], stream=True))
    pieces = [one for part in parts for choice in part.choices for one in choice.delta.tool_calls or ()]
    assert "".join(piece.function.arguments for piece in pieces) == '{"path": "/ü"}'
    assert upstream.seen[1].body["tools"] == [TOOL]
    assert docent.post({**asked, "stream": False}).json() == reply


@pytest.mark.parametrize("offered", [{}, {"tools": []}, {"tools": None}, {"functions": []}])
def test_scaffolding_leaves_the_content_where_no_tools_were_offered(
    docent: Docent, offered: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Streamed in pieces and whole, counted in the line, one line for each strip."""
    caplog.set_level(logging.INFO)
    pieces = [CALL[at : at + 3] for at in range(0, len(CALL), 3)]
    events = [chunk("Thirty "), *map(chunk, pieces), chunk("days."), chunk(finish="stop")]
    docent.upstream.says(stream(*events), Answer(whole(f"Thirty {CALL}days.")))
    asked = {"model": "m", "messages": [{"role": "user", "content": "?"}], **offered}
    streamed = docent.post({**asked, "stream": True})
    assert "tool_call" not in streamed.text
    assert docent.post(asked).json()["choices"][0]["message"]["content"] == "Thirty days."

    lines = proxy_lines(caplog, 2)
    assert [line["scaffold_stripped"] for line in lines] == [str(len(CALL))] * 2
    assert sum(record.getMessage().startswith("scaffolding_stripped ") for record in caplog.records) == 2


def test_functions_count_as_tools(docent: Docent) -> None:
    """The older spelling."""
    docent.upstream.says(Answer(whole(CALL)))
    reply = docent.ask(functions=[{"name": "read", "parameters": {}}])
    assert reply.choices[0].message.content == CALL


def test_choices_are_filtered_each_for_itself(docent: Docent) -> None:
    """`n` > 1: a token begun in one choice is not ended in another."""
    half, rest = CALL[:9], CALL[9:]
    events = [chunk("A" + half, index=0), chunk("B" + half, index=1), chunk(rest + "a", index=0), chunk("?", index=1)]
    ends = [chunk(finish="stop", index=0), chunk(finish="stop", index=1)]
    docent.upstream.says(stream(*events, *ends))
    texts = {0: "", 1: ""}
    for part in docent.ask(n=2, stream=True):
        for choice in part.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == {0: "Aa", 1: f"B{half}?"}


def test_tokens_come_as_they_are_said(docent: Docent, caplog: pytest.LogCaptureFixture) -> None:
    """The first one reaches the client while the server is still silent about the next."""
    caplog.set_level(logging.INFO, "app.proxy")
    upstream = docent.upstream.says(Answer(sse(chunk("Thirty "), done=False), kind="text/event-stream", then="hang"))
    with docent.ask(stream=True) as answer:
        assert next(iter(answer)).choices[0].delta.content == "Thirty "
        assert upstream.seen[0].closed_at is None
    (line,) = proxy_lines(caplog, 1)  # waited for here: it must not come in the middle of the next test
    assert line["outcome"] == "cancelled"


def test_the_line_of_a_request(docent: Docent, caplog: pytest.LogCaptureFixture) -> None:
    """One for each, with its numbers; the model's name stays on one line and within its bound."""
    caplog.set_level(logging.INFO, "app.proxy")
    docent.upstream.says(SAID)
    list(docent.ask(stream=True))
    docent.post({"model": "ü\nfake outcome=ok" + "x" * 300, "messages": []})

    first, odd = proxy_lines(caplog, 2)
    order = ["model", "mode", "verdict", "outcome", "status", "first_ms", "total_ms", "scaffold_stripped"]
    assert list(first) == order
    assert {key: first[key] for key in order[:5]} == {
        "model": "m", "mode": "note", "verdict": "pass", "outcome": "ok", "status": "200",
    }  # fmt: skip
    assert int(first["total_ms"]) >= int(first["first_ms"]) >= 1
    assert odd["status"] == "200"
    text = [record.getMessage() for record in caplog.records if "fake" in record.getMessage()]
    assert len(text) == 1
    assert "\n" not in text[0]
    assert len(text[0]) < 500


def test_a_long_conversation_goes_through(docent: Docent) -> None:
    """Ten megabytes, judged on a thread; the server gets every byte."""
    messages = [{"role": ("user", "assistant")[at % 2], "content": "word " * 2000} for at in range(1000)]
    raw = json.dumps({"model": "m", "messages": messages}).encode()
    assert len(raw) > 10_000_000
    upstream = docent.upstream.says(Answer(whole()))
    assert docent.post(raw).status_code == 200
    assert upstream.seen[0].raw == raw
