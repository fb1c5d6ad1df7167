"""Every parameter of every route, filled with what no page of ours would send: a refusal at most, never a failure.

The routes and their parameters are read from the application, so that a new one is tested without being named here.
"""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.testclient import TestClient
from pydantic import BaseModel

from app.main import create_app
from app.settings import Settings
from tests.integration.test_edge import routes_of
from tests.scripted import ScriptedModel, ScriptedSearch

NUMBERS = ["-1", "0", "1", "9223372036854775807", "9223372036854775808", "1" + "0" * 30, "9" * 5000, "1.5", "٣", "²"]
DATES = ["0001-01-01", "9999-12-31T23:59:59+14:00", "2026-01-01T00:00:00", "-62135596800", "9" * 20]
TEXTS = [
    "",
    "\x00",
    "a\x00b",
    "../..",
    "x" * 4000,
    "\u202e",
    "\u2028",
    "'",
    '"',
    "%",
    "*",
    "(((",
    "{{7*7}}",
    "<b>",
    "-",
]
BYTES = ["%ff%fe", "%ed%a0%80", "%00", "%0d%0ax:y"]
PLAIN = [quote(value, safe="") for value in NUMBERS + DATES + TEXTS] + BYTES
VALUES: list[Any] = [None, True, -1, 10**30, 1e308, "\ud800", "x\udfff", [], [10**30], {}, {"a": []}, *TEXTS, *NUMBERS]
ODD_HEADERS = [b"\xff\xfe", b"bytes=0-," * 200, b"http://x/chats/" + b"9" * 5000]
HEADERS = [
    "hx-current-url",
    "last-event-id",
    "accept-language",
    "range",
    "if-modified-since",
    "if-none-match",
    "cookie",
]
PARTS = 4
"""The routes are tried in so many tests: all at once they take a minute, on a busy machine more than a test may."""


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings, chat_for=ScriptedModel(["Yes."]), searcher=ScriptedSearch(), discovery_ports=())


@pytest.fixture
def client(app: FastAPI, caplog: pytest.LogCaptureFixture) -> Iterator[TestClient]:
    caplog.set_level(logging.ERROR)
    with TestClient(app, base_url="http://127.0.0.1:8642", follow_redirects=False) as client:
        body = {"message": "How often?", "client_key": "first"}
        assert client.post("/api/chat", json=body).status_code == 200
        file = {"files": ("a.md", b"# A title\n\nSome words.")}
        assert client.post("/api/documents", files=file).status_code == 202
        yield client
        assert [record.message for record in caplog.records] == []


def queries_of(dependant: Dependant) -> set[str]:
    """The names of query parameters, those of dependencies included."""
    names = {field.alias for field in dependant.query_params}
    return names.union(*(queries_of(part) for part in dependant.dependencies))


@pytest.mark.parametrize("part", range(PARTS))
def test_no_address_can_make_the_server_fail(app: FastAPI, client: TestClient, part: int) -> None:
    """Ids and query values out of any range: at most a refusal with a sentence."""
    failed: list[tuple[str, int]] = []
    asked = 0
    for route in routes_of(app)[part::PARTS]:
        if "GET" not in route.methods:
            continue
        addresses = [re.sub(r"{\w+}", value or "-", route.path) for value in PLAIN if "{" in route.path]
        sound = re.sub(r"{\w+}", "1", route.path)
        addresses += [f"{sound}?{name}={value}" for name in queries_of(route.dependant) for value in PLAIN]
        for address in addresses:
            asked += 1
            status = client.get(address).status_code
            if status >= 500:
                failed.append((address[:80], status))
    assert failed == []
    assert asked > 500 / PARTS


def test_no_id_in_a_changing_request_can_make_the_server_fail(app: FastAPI, client: TestClient) -> None:
    """The same for the methods that change something."""
    failed: list[tuple[str, str, int]] = []
    for route in routes_of(app):
        for method in route.methods - {"GET", "HEAD"}:
            for value in [*NUMBERS, "x", "%ff", "%00"]:
                address = re.sub(r"{\w+}", quote(value, safe="%"), route.path)
                status = client.request(method, address, json={"title": "A title"}).status_code
                if status >= 500:
                    failed.append((method, address[:80], status))
    assert failed == []


def fields_of(dependant: Dependant) -> tuple[bool, set[str]]:
    """Whether the body is a form, and the names of its fields."""
    names: set[str] = set()
    form = False
    for field in dependant.body_params:
        form = form or type(field.field_info).__name__ == "Form"
        kind = field.field_info.annotation
        parts = [part for part in (kind, *getattr(kind, "__args__", ())) if isinstance(part, type)]
        models = [part for part in parts if issubclass(part, BaseModel)]
        names |= {name for model in models for name in model.model_fields} or {field.alias}
    return form, names


SOUND = {"message": "How?", "client_key": "k", "title": "A title", "query": "backups", "path": "/nowhere/at/all"}


@pytest.mark.parametrize("part", range(PARTS))
def test_no_field_of_a_body_can_make_the_server_fail(app: FastAPI, client: TestClient, part: int) -> None:
    """Each field of each body, JSON and form alike, with values of every wrong kind."""
    failed: list[tuple[str, str, str, int]] = []
    asked = 0
    for route in routes_of(app)[part::PARTS]:
        form, names = fields_of(route.dependant)
        for method in route.methods - {"GET", "HEAD"}:
            for name in names:
                for value in VALUES:
                    body = {key: SOUND[key] for key in names & SOUND.keys()} | {name: value}
                    asked += 1
                    status = _send(client, method, re.sub(r"{\w+}", "1", route.path), form, body)
                    if status >= 500:
                        failed.append((route.path, name, repr(value)[:40], status))
    assert failed == []
    assert asked > 300 / PARTS


def _send(client: TestClient, method: str, path: str, form: bool, body: dict[str, Any]) -> int:
    if not form:
        escaped = json.dumps(body)  # halves of surrogate pairs included, which no library would send
        return client.request(method, path, content=escaped, headers={"content-type": "application/json"}).status_code
    content = urlencode({key: str(value) for key, value in body.items()}, errors="surrogatepass")
    kind = {"content-type": "application/x-www-form-urlencoded"}
    return client.request(method, path, content=content, headers=kind).status_code


def test_no_header_can_make_the_server_fail(app: FastAPI, client: TestClient) -> None:
    """Headers that a route or the server reads, with numbers of any length and broken text."""
    turn = client.get("/api/chats/1").json()["messages"][0]["turn_id"]
    values = [value.encode() for value in NUMBERS if value] + ODD_HEADERS
    paths = ["/", "/chats/1", "/ui/chats", "/ui/chats/1/row", f"/api/turns/{turn}/events", "/api/documents/1/file"]
    failed = [
        (path, name, value[:40])
        for path in paths
        for name in HEADERS
        for value in values
        if client.get(path, headers={name.encode(): value}).status_code >= 500
    ]
    assert failed == []
