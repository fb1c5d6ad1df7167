"""`/v1` and connections: a client that leaves ends the server's work at once, and no request goes round in a circle."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from starlette.types import Receive, Scope, Send

from app.api.leaving import LeavableResponse
from app.settings import Settings
from tests.integration.openai_kit import (
    SILENT,
    Answer,
    Docent,
    Upstream,
    chunk,
    ended_before_the_next,
    proxy_lines,
    sse,
    standing,
)
from tests.scripted import ScriptedSearch, hit
from tests.waiting import until

LEFT_WITHIN_S = 0.5
"""How soon a model server hears that nobody waits any more."""


quiet = pytest.fixture(autouse=True)(ended_before_the_next)


@pytest.fixture(scope="module")
def docent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    with standing(tmp_path_factory.mktemp("docent")) as docent:
        yield docent


def closed_soon(upstream: Upstream, left_at: float) -> None:
    """The model server's connection was closed by Docent soon after the client had left."""
    until(lambda: upstream.seen[-1].closed_at is not None, "the model server's connection is closed", 10)
    closed_at = upstream.seen[-1].closed_at
    assert closed_at is not None
    assert closed_at - left_at < LEFT_WITHIN_S


def request_bytes(body: dict[str, Any]) -> bytes:
    raw = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(raw)}\r\n\r\n"
    return head.encode() + raw


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_before_the_head_ends_the_servers_work(
    docent: Docent, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The server is still reading the prompt, or says nothing at all."""
    caplog.set_level(logging.INFO)
    upstream = docent.upstream.says(SILENT)
    with socket.create_connection(("127.0.0.1", docent.port)) as client:
        client.sendall(request_bytes({"model": "m", "messages": [], "stream": stream}))
        until(lambda: bool(upstream.seen), "the server is asked")
    closed_soon(upstream, time.monotonic())
    (line,) = proxy_lines(caplog, 1)
    assert (line["outcome"], line["status"]) == ("cancelled", "0")


def test_a_client_that_leaves_in_the_middle_ends_the_servers_work(
    docent: Docent, caplog: pytest.LogCaptureFixture
) -> None:
    """As the official client leaves: it closes its stream."""
    caplog.set_level(logging.INFO)
    said = Answer(sse(chunk("Thirty "), done=False), kind="text/event-stream", then="hang")
    upstream = docent.upstream.says(said)
    answer = docent.ask(stream=True)
    next(iter(answer))
    answer.close()
    closed_soon(upstream, time.monotonic())
    (line,) = proxy_lines(caplog, 1)
    assert (line["outcome"], line["status"]) == ("cancelled", "200")


class Flood(LeavableResponse):
    """Says something to a client that takes nothing."""

    stall_s = 0.05
    is_over = False

    async def work(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.body", "body": b"x", "more_body": True})

    def ended(self) -> None:
        self.is_over = True


def test_a_client_that_takes_nothing_is_let_go() -> None:
    """It would keep a model server busy for nobody."""
    response = Flood()

    async def never(_message: object = None) -> Any:
        await asyncio.Event().wait()

    asyncio.run(asyncio.wait_for(response({"type": "http"}, never, never), 20))
    assert response.is_over


def test_a_request_that_came_out_of_a_docent_is_refused(docent: Docent) -> None:
    """508, for completions of every model and for the list; nothing is asked of the server."""
    upstream = docent.upstream.says()
    replies = [docent.post({"model": name, "messages": []}, x_docent_hop="1") for name in ("m", "docent/library")]
    replies.append(docent.http.get("/v1/models", headers={"x-docent-hop": "1"}))
    assert [(reply.status_code, reply.json()["error"]["code"]) for reply in replies] == [(508, "hop")] * 3
    assert (upstream.seen, upstream.listings) == ([], [])


def test_what_is_asked_for_a_client_is_marked(docent: Docent) -> None:
    """Completions and the model list."""
    upstream = docent.upstream.says()
    docent.post({"model": "m", "messages": []})
    list(docent.client.models.list())
    assert [asked.headers.get("x-docent-hop") for asked in (*upstream.seen, *upstream.listings)] == ["1", "1"]


def test_a_docent_that_is_its_own_model_server_says_so(settings: Settings) -> None:
    """Directly, by its list, and by a collection's turn: one step round, never a circle."""
    changes = {"llm_base_url": "itself", "llm_model": "docent/library"}
    with Docent(settings, changes=changes, searcher=ScriptedSearch(hit(1))) as docent:
        assert [model.id for model in docent.client.models.list()] == ["docent/library"]
        with pytest.raises(openai.InternalServerError, match="its model server is Docent itself") as caught:
            docent.ask()
        assert caught.value.status_code == 508
        with pytest.raises(openai.InternalServerError) as caught:
            docent.ask(model="docent/library")
        assert caught.value.code == "llm_unavailable"
