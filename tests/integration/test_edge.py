"""What every request meets before and after its route: body caps, headers, errors, health; what each route asks."""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette.routing import Mount, Route

from app.catalog import load_catalog
from app.edge.auth import PUBLIC_PATHS, current_user
from app.edge.errors import error_body
from app.edge.headers import CONTENT_SECURITY_POLICY
from app.edge.limits import BODY_MAX_BYTES, body_limit
from app.errors import AppError
from app.main import create_app, own_host_names
from app.rag.errors import LLMError
from app.settings import Settings
from app.store.engine import Database
from tests.asgi import Client, in_app
from tests.scripted import ScriptedModel, ScriptedSearch

BASE = "http://127.0.0.1:8642"


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    app = create_app(settings, chat_for=ScriptedModel(["Yes."]), searcher=ScriptedSearch())

    @app.get("/api/broken")
    def broken() -> None:
        raise RuntimeError("the words of this exception")

    return app


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=BASE) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/api/chats", 200),
        ("GET", "/api/nowhere", 404),
        ("GET", "/nowhere", 404),
        ("PUT", "/api/chats", 405),
        ("POST", "/api/chat", 422),
        ("GET", "/api/broken", 500),
    ],
)
def test_every_answer_carries_the_headers(client: TestClient, method: str, path: str, status: int) -> None:
    """Also errors: a page can't be framed, sniffed, kept by a proxy, or load anything from elsewhere."""
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "strict-transport-security" not in answer.headers


def test_the_policy_allows_nothing_inline_and_nothing_foreign() -> None:
    """The exact policy: a change here has to be meant."""
    assert CONTENT_SECURITY_POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
    )


def test_hsts_is_for_https_only(app: FastAPI) -> None:
    """Plain http in a home network has to keep working."""
    with TestClient(app, base_url="https://127.0.0.1:8642") as client:
        assert client.get("/healthz").headers["strict-transport-security"].startswith("max-age=")


def test_errors_have_one_shape(client: TestClient) -> None:
    """Code and sentence; the framework's own shapes and words don't show."""
    for method, path, status, code in [
        ("GET", "/api/nowhere", 404, "not_found"),
        ("PUT", "/api/chats", 405, "method_not_allowed"),
        ("GET", "/api/chats/x", 422, "invalid_input"),
        ("GET", f"/api/chats/{2**63}", 422, "invalid_input"),
        ("GET", "/api/chats/1", 404, "chat_not_found"),
    ]:
        answer = client.request(method, path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert set(answer.json()["error"]) == {"code", "message"}
    assert "GET" in client.put("/api/chats").headers["allow"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"message": "\\ud800", "client_key": "k"}', "application/json"),
        (b'{"message": "x", "client_key": "k"}', "text/plain"),
        (b"message=x&client_key=k", "application/x-www-form-urlencoded"),
        (b"", "application/json"),
        (b"null", "application/json"),
        (b"[" * 100_000, "application/json"),
    ],
)
def test_a_body_that_is_no_question_is_refused_in_the_same_shape(client: TestClient, content: bytes, kind: str) -> None:
    """Broken JSON or UTF-8, half a surrogate pair, a form, plain text (which any page may send), endless nesting."""
    answer = client.post("/api/chat", content=content, headers={"content-type": kind})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["code"] == "invalid_input"


def test_a_crash_is_told_in_plain_words_and_logged_once(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    """500 `internal`; what the exception said is in the log with its traceback, and nowhere else."""
    with caplog.at_level(logging.ERROR):
        answer = client.get("/api/broken")
    assert answer.json()["error"]["code"] == "internal"
    assert "the words" not in answer.text
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "the words of this exception" in (record.exc_text or str(record.exc_info))
    assert "path=/api/broken" in record.getMessage()


def test_a_setting_to_change_is_named(client: TestClient) -> None:
    """The body says which."""
    question = "x" * 40_000
    answer = client.post("/api/chat", json={"message": question, "client_key": "k"})
    assert answer.json()["error"]["setting"] == "QUESTION_MAX_CHARS"
    assert "40,000" in answer.json()["error"]["message"]


def test_a_reason_chooses_the_sentence_and_a_code_without_one_is_internal() -> None:
    """Narrow before wide; a code nobody wrote a sentence for still gives one."""
    catalog = load_catalog()
    narrow = error_body(catalog, LLMError("llm_unavailable", reason="refused", params={"server": "nas.lan:11434"}))
    assert "nas.lan:11434" in narrow["error"]["message"]
    unknown = error_body(catalog, AppError("nobody_wrote_this"))
    assert unknown["error"]["message"] == catalog.t("errors.internal")


def test_the_machines_own_name_is_one_of_its_names(settings: Settings) -> None:
    """Also as mDNS announces it."""
    names = own_host_names(settings.model_copy(update={"allowed_hosts": ("docent.lan",)}))
    assert names[0] == "docent.lan"
    assert names[2].endswith(".local")


def test_a_body_over_the_cap_is_refused_by_its_announced_length(client: TestClient, settings: Settings) -> None:
    """Before it is read."""
    limit = body_limit(settings.question_max_chars)
    answer = client.post("/api/chat", content=b"x", headers={"content-length": str(limit + 1)})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert client.post("/api/chat", content=b"x", headers={"content-length": "many"}).status_code in (400, 413)


def test_a_body_of_unknown_length_is_counted_as_it_comes(client: TestClient, settings: Settings) -> None:
    """A chunked upload can't fill the memory: reading ends at the cap."""
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b'{"message": "'
        while sent < 100 * BODY_MAX_BYTES:
            sent += 65536
            yield b"x" * 65536

    answer = client.post("/api/chat", content=endless(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@dataclass(frozen=True)
class KnownRoute:
    path: str
    methods: frozenset[str]
    dependant: Dependant


def routes_of(app: FastAPI) -> list[KnownRoute]:
    """Every route of the application, those of included routers with what including them added."""
    found: list[KnownRoute] = []
    waiting: list[Any] = list(app.routes)
    while waiting:
        route = waiting.pop()
        if hasattr(route, "effective_candidates"):
            waiting.extend(route.effective_candidates())
        elif getattr(route, "dependant", None) is not None:
            found.append(KnownRoute(route.path, frozenset(route.methods), route.dependant))
    return found


def asks_who(dependant: Dependant) -> bool:
    return any(part.call is current_user or asks_who(part) for part in dependant.dependencies)


def test_every_route_asks_who_is_asking_or_is_listed_as_open(settings: Settings) -> None:
    """A new route can't be open by accident."""
    app = create_app(settings)
    routes = routes_of(app)
    assert {"/api/chat", "/healthz", "/"} <= {route.path for route in routes}
    open_routes = {route.path for route in routes if not asks_who(route.dependant)}
    open_routes |= {route.path for route in app.routes if type(route) in (Mount, Route)}
    assert open_routes == PUBLIC_PATHS
    app.state.docent.database.close()


def models_of(dependant: Dependant) -> list[type[BaseModel]]:
    kinds = [field.field_info.annotation for field in dependant.body_params]
    found = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return found + [model for part in dependant.dependencies for model in models_of(part)]


def test_every_input_model_refuses_fields_it_does_not_know(settings: Settings) -> None:
    """No column of a table can be set by naming it."""
    app = create_app(settings)
    models = {model for route in routes_of(app) for model in models_of(route.dependant)}
    assert {"ChatBody", "RenameBody", "SearchBody"} <= {model.__name__ for model in models}
    assert [model.__name__ for model in models if model.model_config.get("extra") != "forbid"] == []
    app.state.docent.database.close()


def test_every_route_that_changes_something_refuses_a_foreign_page(app: FastAPI, client: TestClient) -> None:
    """Each method of each route, by both headers."""
    changing = [(method, route.path) for route in routes_of(app) for method in route.methods - {"GET", "HEAD"}]
    assert len(changing) > 5
    for method, path in changing:
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
            answer = client.request(method, re.sub(r"{\w+}", "1", path), headers=headers)
            assert (answer.status_code, "error" in answer.text or "html" in answer.text) == (403, True)


def test_health_needs_no_database(app: FastAPI) -> None:
    """`/healthz` answers although the database is closed; `/readyz` says that it is not ready."""
    database: Database = app.state.docent.database
    client = TestClient(app, base_url=BASE)
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"], ready.json()["model"]) == (200, "ok", "builtin")
    assert ready.json()["sqlite"].startswith("3.")
    database.write(lambda session: session.connection().exec_driver_sql("UPDATE alembic_version SET version_num='x'"))
    wrong = client.get("/readyz")
    assert (wrong.status_code, wrong.json()["database"]) == (503, "wrong_revision")
    database.write(lambda session: session.connection().exec_driver_sql("DROP TABLE alembic_version"))
    gone = client.get("/readyz")
    assert (gone.status_code, gone.json()["database"]) == (503, "unavailable")
    assert client.get("/healthz").json()["status"] == "ok"
    database.close()


def test_readiness_names_the_model_without_asking_it(settings: Settings) -> None:
    """The configured one, or `unknown` while only the server knows."""
    for changes, model in [
        ({"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "qwen3"}, "qwen3"),
        ({"llm_base_url": "http://127.0.0.1:9/v1"}, "unknown"),
    ]:
        app = create_app(settings.model_copy(update=changes))
        assert TestClient(app, base_url=BASE).get("/readyz").json()["model"] == model
        app.state.docent.database.close()


def test_a_crash_after_the_response_began_ends_the_stream(app: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is appended to what was sent; the log has it once."""

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("late")

    app.mount("/api/late", late)

    async def test(client: Client) -> None:
        reply = await client.get("/api/late/x")
        assert reply.status == 200
        assert reply.task is not None
        await reply.task

    in_app(app, test)
    assert len([record for record in caplog.records if "request_failed" in record.getMessage()]) == 1
