"""Probing and finding model servers: which one, which models, how large a window, and what is wrong."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from app.catalog import load_catalog
from app.edge.model_settings import failure_message
from app.settings import Settings
from app.upstream import probe
from app.upstream.client import ClientPool, Endpoint, client_error, embed_endpoint_from, endpoint_from, make_sync_client
from app.upstream.discovery import find_servers
from app.upstream.exchange import resolve_model
from app.upstream.failures import UpstreamError
from app.upstream.models import ModelInfo, first_chat_model
from app.upstream.probe import ConnectionReport
from tests.fault_server import fault_server
from tests.faults import FAULTS, SECRET_TEXT
from tests.route_server import CHAT, LLAMA_CPP, LM_STUDIO, OLLAMA, STREAM, VLLM, Answer, listing, routes

PAGE = Answer(b"<!doctype html><title>Router</title>", kind="text/html")


def check(url: str, **changes: Any) -> ConnectionReport:
    return asyncio.run(asyncio.wait_for(probe.test_connection(Endpoint(url, **changes)), 30))


@pytest.mark.parametrize(
    ("table", "model", "expected"),
    [
        (OLLAMA, None, ("Ollama", "0.12.6", "qwen3:8b", 8192)),
        ({**OLLAMA, "GET /api/ps": Answer({"models": []})}, "qwen3:8b", ("Ollama", "0.12.6", "qwen3:8b", None)),
        (
            {**OLLAMA, "GET /api/ps": Answer([]), "POST /api/show": Answer({"parameters": "stop x\nnum_ctx  2048"})},
            None,
            ("Ollama", "0.12.6", "qwen3:8b", 2048),
        ),
        (LLAMA_CPP, None, ("llama.cpp", "b6700-abc", "gemma.gguf", 16384)),
        (LM_STUDIO, None, ("LM Studio", "", "a", 4096)),
        (VLLM, None, ("vLLM", "0.11.0", "org/model", 12288)),
        ({"GET /v1/models": listing("x"), CHAT: STREAM}, None, ("", "", "x", None)),
    ],
)
def test_a_good_connection_tells_server_models_window_and_time(
    table: dict[str, Answer], model: str | None, expected: tuple[Any, ...]
) -> None:
    """The four servers people run, by what each of them tells; one token is asked for."""
    with routes(table) as server:
        report = check(f"{server.url}/v1", model=model, api_key="key-123456")
        assert report.ok
        assert (report.kind, report.version, report.model, report.window) == expected
        assert report.streaming is True
        assert report.answer_s is not None
        assert 0 < report.answer_s < 10
        assert list(report.models) == [row["id"] for row in table["GET /v1/models"].body["data"]]
        assert server.asked(CHAT)[0]["max_tokens"] == 1
        assert {headers.get("Authorization") for _, headers, _ in server.seen} == {"Bearer key-123456"}


def test_a_server_that_does_not_stream_is_told_apart() -> None:
    """A JSON body is an answer, too; `streaming` says so."""
    with routes(
        {"GET /v1/models": listing("x"), CHAT: Answer({"choices": [{"message": {"content": "yes"}}]})}
    ) as server:
        report = check(f"{server.url}/v1")
        assert (report.ok, report.streaming) == (True, False)


def test_a_server_without_a_list_is_fine_when_the_named_model_answers() -> None:
    """Some gateways have no `/models`."""
    with routes({CHAT: STREAM}) as server:
        assert check(f"{server.url}/v1", model="m").ok
        assert not check(f"{server.url}/v1").ok


def test_a_server_that_refuses_max_tokens_is_asked_without() -> None:
    """Newer servers know another name for it."""
    asked: list[bool] = []

    async def run() -> ConnectionReport:
        async def answer(reply: Any) -> None:
            if not reply.seen.body:
                await reply.json("200 OK", {"data": [{"id": "m"}]})
                return
            asked.append("max_tokens" in reply.seen.body)
            if asked[-1]:
                await reply.json("400 Bad Request", {"error": {"message": "Unsupported parameter: 'max_tokens'"}})
            else:
                await FAULTS["ok"](reply)

        async with fault_server({"x": answer}) as server:
            return await probe.test_connection(server.endpoint("x"))

    assert asyncio.run(asyncio.wait_for(run(), 30)).ok
    assert asked == [True, False]


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [("", "/v1"), ("/v1/chat/completions", "/v1"), ("/v1/models", "/v1"), ("/api", "/v1"), ("/wrong/path", "/v1")],
)
def test_a_wrong_path_offers_the_address_that_works(path: str, suggestion: str) -> None:
    """404: the corrected address stands in the report and in the sentence."""
    with routes(OLLAMA) as server:
        report = check(f"{server.url}{path}")
        assert not report.ok
        assert report.suggestion == server.url + suggestion
        assert report.failure is not None
        assert server.url + suggestion in failure_message(load_catalog(), report.failure)


def test_a_web_page_in_front_of_a_model_server_offers_the_address_that_works() -> None:
    """The root often is a web interface."""
    with routes({**OLLAMA, "GET /models": PAGE}) as server:
        assert check(server.url).suggestion == f"{server.url}/v1"


@pytest.mark.parametrize(
    ("table", "model", "code"),
    [
        ({"GET /v1/models": Answer({}, 401)}, None, "llm_rejected.key"),
        ({"GET /v1/models": Answer({}, 403)}, None, "llm_rejected.forbidden"),
        ({"GET /v1/models": Answer({}, 500)}, None, "llm_unavailable.server"),
        ({"GET /v1/models": PAGE}, None, "llm_rejected.html"),
        ({"GET /v1/models": Answer(b"plain words", kind="text/plain")}, None, "llm_rejected.not_api"),
        ({"GET /v1/models": Answer({"hello": 1})}, None, "llm_rejected.not_api"),
        ({"GET /v1/models": Answer("text")}, None, "llm_rejected.not_api"),
        ({}, None, "llm_rejected.not_found"),
        ({"GET /v1/models": listing()}, None, "llm_rejected.no_models"),
        (
            {"GET /v1/models": Answer(b"", 307, headers={"location": "http://trap.example/v1"})},
            None,
            "llm_rejected.redirect",
        ),
        (
            {"GET /v1/models": listing("x"), CHAT: Answer({"error": {"message": 'model "y" not found'}}, 404)},
            "y",
            "llm_rejected.model",
        ),
        ({"GET /v1/models": listing("x"), CHAT: PAGE}, None, "llm_rejected.html"),
        ({"GET /v1/models": listing("x"), CHAT: Answer({"a": 1})}, None, "llm_rejected.not_api"),
        ({"GET /v1/models": listing("x"), CHAT: Answer(b"y" * 200_000)}, None, "llm_rejected.not_api"),
        (
            {"GET /v1/models": listing("x"), CHAT: Answer(b'data: {"error": "' + SECRET_TEXT.encode() + b'"}\n\n')},
            None,
            "llm_rejected.error_event",
        ),
        ({"GET /v1/models": listing("x"), CHAT: Answer({}, 503)}, None, "llm_unavailable.server"),
    ],
)
def test_each_failure_has_a_sentence_of_its_own(table: dict[str, Answer], model: str | None, code: str) -> None:
    """What is wrong, in words, and nothing of what the server said."""
    with routes(table) as server:
        report = check(f"{server.url}/v1", model=model)
    assert not report.ok
    assert report.failure is not None
    assert f"{report.failure.code}.{report.failure.reason}" == code
    assert load_catalog().has(f"errors.{code}")
    sentence = failure_message(load_catalog(), report.failure)
    assert "{" not in sentence
    for word in SECRET_TEXT.split():
        assert word not in sentence


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:9/v1", "llm_unavailable.refused"),
        ("http://no-such-host.invalid/v1", "llm_unavailable.dns"),
        ("http://[::1/v1", "llm_rejected.address"),
        ("ftp://x/v1", "llm_rejected.address"),
    ],
)
def test_an_address_that_leads_nowhere_is_named(url: str, code: str) -> None:
    """Nothing answers, unknown name, no address."""
    report = check(url, connect_s=3)
    assert report.failure is not None
    assert f"{report.failure.code}.{report.failure.reason}" == code


def test_a_model_that_says_nothing_ends_the_test_in_time() -> None:
    """The first-token clock is the test's too, against silence and against pings."""

    async def run(fault: str) -> ConnectionReport:
        async def answer(reply: Any) -> None:
            if reply.seen.body:
                await FAULTS[fault](reply)
            else:
                await reply.json("200 OK", {"data": [{"id": "m"}]})

        async with fault_server({"x": answer}) as server:
            return await probe.test_connection(server.endpoint("x", first_token_s=0.4))

    for fault in ("hang", "pings"):
        report = asyncio.run(asyncio.wait_for(run(fault), 30))
        assert report.failure is not None
        assert report.failure.reason == "first_token"


def test_finding_servers_names_them_and_passes_over_docent_and_others() -> None:
    """Only what lists models; never Docent's own port."""
    with routes(OLLAMA) as ollama, routes(VLLM) as vllm, routes({"GET /v1/models": PAGE}) as web, routes(OLLAMA) as own:
        ports = [web.port, vllm.port, ollama.port, 9, own.port, vllm.port]
        found = asyncio.run(find_servers(ports, own_port=own.port))
        assert [(server.base_url, server.kind, server.version, server.models) for server in found] == [
            (f"http://localhost:{vllm.port}/v1", "vLLM", "0.11.0", 1),
            (f"http://localhost:{ollama.port}/v1", "Ollama", "0.12.6", 2),
        ]
        assert own.seen == []


def test_the_first_chat_model_is_asked_when_none_is_set_and_remembered() -> None:
    """An embedding model is not a chat model; the list is asked once, and an empty one is named."""

    async def run(url: str) -> list[str]:
        pool = ClientPool()
        try:
            return [await resolve_model(pool, Endpoint(url)) for _ in range(3)]
        finally:
            await pool.aclose()

    with routes(OLLAMA) as server:
        assert asyncio.run(run(f"{server.url}/v1")) == ["qwen3:8b"] * 3
        assert len(server.asked("GET /v1/models")) == 1
    with routes({"GET /v1/models": listing()}) as server, pytest.raises(UpstreamError) as caught:
        asyncio.run(run(f"{server.url}/v1"))
    assert caught.value.failure.reason == "no_models"
    assert first_chat_model([ModelInfo("bge-m3"), ModelInfo("nomic-embed-text")]) == "bge-m3"


def test_a_list_is_read_up_to_a_limit() -> None:
    """Rows without an id are passed over; a thousand are kept; four megabytes are read."""
    rows = [{"id": f"m{number}"} for number in range(1500)]
    with routes({"GET /v1/models": Answer([{"x": 1}, None, {"name": "named"}, *rows])}) as server:
        found = asyncio.run(probe.list_models(Endpoint(f"{server.url}/v1")))
        assert found[:2] == ["named", "m0"]
        assert len(found) <= 1000
    with routes({"GET /v1/models": Answer(json.dumps({"data": rows}).encode() + b" " * 5_000_000)}) as server:
        assert len(asyncio.run(probe.list_models(Endpoint(f"{server.url}/v1")))) == 1000


def test_settings_make_an_endpoint() -> None:
    """Every field arrives; the key is not in its repr; no address, no endpoint."""
    settings = Settings(_env_file=None, llm_base_url=" http://h:1/v1/ ", llm_api_key="key-abcdef", llm_model="m",
                        llm_idle_s=7, llm_retry_max=1, embed_base_url="http://e/v1/", embed_model="em")  # fmt: skip
    endpoint = endpoint_from(settings)
    assert endpoint == Endpoint("http://h:1/v1", "key-abcdef", "m", idle_s=7, retry_max=1)
    assert "key-abcdef" not in repr(endpoint)
    embed = embed_endpoint_from(settings)
    assert embed is not None
    assert (embed.base_url, embed.model, embed.api_key) == ("http://e/v1", "em", None)
    bare = Settings(_env_file=None)
    assert (endpoint_from(bare), embed_endpoint_from(bare)) == (None, None)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("http://nas.lan:11434/v1", "nas.lan:11434"),
        ("https://api.example/v1", "api.example"),
        ("http://u:p@h:1/v1", "h:1"),
        ("http://[::1]:8080/v1", "[::1]:8080"),
        ("http://h:99999/v1", "http://h:99999/v1"),
    ],
)
def test_a_server_is_named_as_people_say_it(url: str, server: str) -> None:
    """Host and port, no credentials."""
    assert Endpoint(url).server == server


def test_the_blocking_client_keeps_the_same_manners() -> None:
    """No retry, no redirect, one limit on error bodies, the same headers."""
    table = {
        "POST /v1/embeddings": Answer(b"x" * 1_000_000, 500),
        "POST /r/embeddings": Answer(b"", 307, headers={"location": "http://127.0.0.1:9/"}),
    }
    with routes(table) as server:
        for base, status in (("/v1", 500), ("/r", 307)):
            client = make_sync_client(Endpoint(server.url + base, api_key="key-123456"))
            with pytest.raises(client_error()) as caught:
                client.embeddings.create(model="m", input="x")
            response = caught.value.response  # type: ignore[attr-defined]
            assert isinstance(response, httpx2.Response)
            assert response.status_code == status
            assert len(response.content) <= 64 * 1024
            client.close()
        assert [headers["User-Agent"] for _, headers, _ in server.seen] == ["docent", "docent"]
