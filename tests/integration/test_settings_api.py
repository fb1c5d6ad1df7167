"""`/api/settings`: what is changed, what is refused, what is never told, and that it counts from the next turn on."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import EDITABLE, Settings
from app.store import settings as stored
from app.store.engine import Database
from app.store.models.setup import LOCAL_USER_ID
from tests.route_server import CHAT, OLLAMA, Answer, listing, routes

BASE = "http://127.0.0.1:8642"
KEY = "sk-canary-key-0123456789"
REPLY = Answer(
    b'data: {"choices":[{"delta":{"content":"From the server."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    kind="text/event-stream",
)
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@contextmanager
def running(settings: Settings, **overrides: Any) -> Iterator[TestClient]:
    with TestClient(create_app(settings, **overrides), base_url=BASE) as client:
        yield client


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with running(settings) as client:
        yield client


def test_a_fresh_installation_has_no_endpoint(client: TestClient) -> None:
    """Every field is there, unset and free."""
    body = client.get("/api/settings").json()
    assert body["connected"] is False
    assert set(body["fields"]) == EDITABLE
    assert body["embedder"] == {"serving": None, "building": None}
    assert body["fields"]["llm_base_url"] == {"value": None, "locked": False, "is_set": False, "last4": None}


def test_what_is_saved_is_kept_and_a_key_is_never_told(client: TestClient, settings: Settings) -> None:
    """The address in its normal form; of the key only its end; all of it after a restart, too."""
    change = {"llm_base_url": " HTTP://Nas.lan:11434/v1/ ", "llm_api_key": KEY, "llm_model": "qwen3:8b"}
    answer = client.put("/api/settings", json=change)
    assert answer.status_code == 200
    fields = answer.json()["fields"]
    assert fields["llm_base_url"]["value"] == "http://nas.lan:11434/v1"
    assert fields["llm_model"]["value"] == "qwen3:8b"
    assert fields["llm_api_key"] == {"value": None, "locked": False, "is_set": True, "last4": "6789"}
    assert KEY not in answer.text + client.get("/api/settings").text
    with running(settings) as again:
        assert again.get("/api/settings").json()["fields"] == fields


def test_only_what_is_given_changes_and_empty_removes(client: TestClient) -> None:
    """A field that is left out stays; null and "" remove."""
    client.put("/api/settings", json={"llm_base_url": "http://h:1/v1", "llm_model": "a"})
    assert client.put("/api/settings", json={"llm_model": "b"}).json()["connected"] is True
    fields = client.put("/api/settings", json={"llm_model": ""}).json()["fields"]
    assert fields["llm_model"]["is_set"] is False
    assert client.put("/api/settings", json={"llm_base_url": None}).json()["connected"] is False


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"llm_base_url": "nas.lan:11434"}, "http://"),
        ({"llm_base_url": "ftp://nas.lan/v1"}, "http://"),
        ({"llm_base_url": "http://"}, "http://"),
        ({"llm_base_url": "http://[::1/v1"}, "http://"),
        ({"llm_base_url": "http://h:99999/v1"}, "http://"),
        ({"llm_base_url": "http://h:0/v1"}, "http://"),
        ({"llm_base_url": "http://h h/v1"}, "http://"),
        ({"llm_base_url": "http://h/" + "x" * 3000}, "http://"),
        ({"llm_base_url": "http://user:secret@h/v1"}, "user name"),
        ({"llm_base_url": "http://h/v1?key=secret"}, "?"),
        ({"llm_base_url": "http://h/v1#x"}, "#"),
        ({"llm_api_key": "schlüssel"}, "API key"),
        ({"llm_api_key": "a\nb"}, "API key"),
        ({"llm_model": "x" * 257}, "256"),
        ({"llm_model": "a\u202eb"}, "one line"),
        ({"loop_guard_mode": "sometimes"}, "note"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_in_words(client: TestClient, change: Any, words: str) -> None:
    """422, the setting's name, a sentence; nothing is stored and nothing of the value told."""
    answer = client.put("/api/settings", json={"llm_model": "kept", **change} if "llm_model" not in change else change)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "setting_invalid"
    assert error["setting"] == next(iter(change)).upper()
    assert words in error["message"]
    assert "secret" not in answer.text
    assert client.get("/api/settings").json()["fields"]["llm_model"]["is_set"] is False


@pytest.mark.parametrize(
    "body", [{"database_url": "x"}, {"llm_model": 5}, {"llm_model": ["x"]}, {"loop_guard_mode": False}, [], "x"]
)
def test_other_fields_and_types_are_refused(client: TestClient, body: Any) -> None:
    """Only the endpoint's settings can be changed here."""
    assert client.put("/api/settings", json=body).status_code == 422


def test_a_field_fixed_by_the_environment_is_locked(settings: Settings) -> None:
    """409 with the setting's name; the same value is no change; the others stay free."""
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, llm_base_url="http://fixed:1/v1/")
    with running(fixed) as client:
        answer = client.put("/api/settings", json={"llm_base_url": "http://other:1/v1", "llm_model": "m"})
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "setting_locked"
        assert "LLM_BASE_URL" in answer.json()["error"]["message"]
        assert client.get("/api/settings").json()["fields"]["llm_model"]["is_set"] is False
        answer = client.put("/api/settings", json={"llm_base_url": "http://fixed:1/v1", "llm_model": "m"})
        assert answer.status_code == 200
        assert answer.json()["fields"]["llm_base_url"]["locked"] is True
        assert answer.json()["fields"]["llm_model"] == {"value": "m", "locked": False, "is_set": True, "last4": None}


def test_the_loop_guard_has_three_modes_and_a_default(client: TestClient, settings: Settings) -> None:
    """In any case of letters; removed, the default is back; the environment's is the environment's."""
    assert client.get("/api/settings").json()["fields"]["loop_guard_mode"]["value"] == "note"
    for given, kept in (("refuse", "refuse"), (" OFF ", "off"), (None, "note")):
        answer = client.put("/api/settings", json={"loop_guard_mode": given})
        assert answer.json()["fields"]["loop_guard_mode"]["value"] == kept
    assert client.post("/api/settings/test", json={"loop_guard_mode": "off"}).status_code == 422
    fixed = Settings(_env_file=None, data_dir=settings.data_dir, loop_guard_mode="refuse")
    with running(fixed) as locked:
        assert locked.put("/api/settings", json={"loop_guard_mode": "off"}).status_code == 409
        assert locked.put("/api/settings", json={"loop_guard_mode": "refuse"}).status_code == 200


def test_a_saved_key_does_not_go_to_another_host(client: TestClient) -> None:
    """Another port keeps it; another host drops it and says so, in a test as well as when saving."""
    with routes(OLLAMA) as server:
        client.put("/api/settings", json={"llm_base_url": "http://localhost:9/v1", "llm_api_key": KEY})
        client.post("/api/settings/test", json={"llm_base_url": f"{server.url}/v1"})
        assert all("Authorization" not in headers for _, headers, _ in server.seen)
        client.post("/api/settings/test", json={"llm_base_url": f"http://localhost:{server.port}/v1"})
        assert server.seen[-1][1]["Authorization"] == f"Bearer {KEY}"
    saved = client.put("/api/settings", json={"llm_base_url": "http://localhost:10/v1"}).json()
    assert (saved["key_dropped"], saved["fields"]["llm_api_key"]["is_set"]) == (False, True)
    saved = client.put("/api/settings", json={"llm_base_url": "http://127.0.0.1:10/v1"}).json()
    assert (saved["key_dropped"], saved["fields"]["llm_api_key"]["is_set"]) == (True, False)


def test_a_connection_is_tested_with_values_that_are_not_saved_yet(client: TestClient) -> None:
    """200 with facts; nothing is stored by it."""
    with routes(OLLAMA) as server:
        report = client.post("/api/settings/test", json={"llm_base_url": f"{server.url}/v1"}).json()
    assert report["ok"] is True
    assert (report["kind"], report["model"], report["window"]) == ("Ollama", "qwen3:8b", 8192)
    assert report["models"] == ["nomic-embed-text:latest", "qwen3:8b"]
    assert "error" not in report
    assert client.get("/api/settings").json()["connected"] is False


def test_a_failed_test_says_what_to_change(client: TestClient) -> None:
    """200 with the sentence, its code and setting, and the address that works."""
    with routes(OLLAMA) as server:
        report = client.post("/api/settings/test", json={"llm_base_url": server.url}).json()
        assert report["ok"] is False
        assert report["suggestion"] == f"{server.url}/v1"
        assert report["error"]["setting"] == "LLM_BASE_URL"
        assert f"{server.url}/v1" in report["error"]["message"]
    report = client.post("/api/settings/test", json={"llm_base_url": "http://127.0.0.1:9/v1"}).json()
    assert report["error"]["message"] == "Nothing answers at 127.0.0.1:9. Is the model server running?"
    assert client.post("/api/settings/test").status_code == 409
    assert client.post("/api/settings/test", json={"llm_base_url": "nonsense"}).status_code == 422


def test_models_of_the_saved_endpoint_are_listed(client: TestClient) -> None:
    """In the server's order; without an endpoint 409, with one that fails 502 and its sentence."""
    assert client.get("/api/settings/models").status_code == 409
    with routes({"GET /v1/models": listing("b", "a")}) as server:
        client.put("/api/settings", json={"llm_base_url": f"{server.url}/v1", "llm_model": "a"})
        assert client.get("/api/settings/models").json() == {"models": ["b", "a"], "model": "a"}
    answer = client.get("/api/settings/models")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "llm_unavailable"
    assert "Nothing answers" in answer.json()["error"]["message"]


def test_servers_on_this_machine_are_found_but_docent_itself(settings: Settings) -> None:
    """At the ports looked at, with what they are."""
    with routes(OLLAMA) as server, routes(OLLAMA) as own:
        here = Settings(_env_file=None, data_dir=settings.data_dir, port=own.port)
        with running(here, discovery_ports=(9, server.port, own.port)) as client:
            body = client.get("/api/settings/discover").json()
            found = {
                "base_url": f"http://localhost:{server.port}/v1",
                "kind": "Ollama",
                "version": "0.12.6",
                "models": 2,
            }
            assert body == {"servers": [found], "ports": [9, server.port, own.port]}
            assert own.seen == []


def test_a_change_counts_from_the_next_turn_on_without_a_restart(client: TestClient) -> None:
    """The next question goes to the server that was just saved."""
    with routes({**OLLAMA, CHAT: REPLY}) as server:
        first = client.post("/api/chat", json={"message": "Hello?", "client_key": "k1"})
        assert "From the server." not in first.text
        client.put("/api/settings", json={"llm_base_url": f"{server.url}/v1", "llm_model": "qwen3:8b"})
        second = client.post("/api/chat", json={"message": "Hello?", "client_key": "k2"})
        assert "From the server." in second.text
        assert len(server.asked(CHAT)) == 1


def test_the_key_stands_in_no_log_and_only_in_its_row(
    client: TestClient, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Logs name the fields that changed, not their values."""
    caplog.set_level(logging.DEBUG)
    client.put("/api/settings", json={"llm_base_url": "http://127.0.0.1:9/v1", "llm_api_key": KEY})
    client.post("/api/settings/test")
    client.post("/api/chat", json={"message": "Hello?", "client_key": "k1"})
    assert "settings_changed user=1 fields=llm_api_key,llm_base_url" in caplog.text
    assert "endpoint_tested server=127.0.0.1:9 ok=0 code=llm_unavailable reason=refused" in caplog.text
    assert KEY not in caplog.text
    with sqlite3.connect(settings.data_dir / "docent.db") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert dump.count(KEY) == 1


def test_a_broken_row_is_passed_over_with_a_warning(
    database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """An old or hand-made value never stops Docent; a field that is not editable is not read at all."""
    database.write(lambda s: stored.put(s, {"llm_base_url": 5, "llm_model": "m"}, LOCAL_USER_ID, NOW))
    with sqlite3.connect(settings.data_dir / "docent.db") as connection:
        connection.execute(
            "INSERT INTO settings VALUES ('port', '1', '2026-05-01', NULL), ('gone', '1', '2026-05-01', NULL)"
        )
    connection.close()
    snapshot = database.read(lambda s: stored.effective(s, settings))
    assert (snapshot.llm_base_url, snapshot.llm_model, snapshot.port) == (None, "m", settings.port)
    assert "setting_ignored key=llm_base_url" in caplog.text


def test_a_snapshot_lies_under_the_environment_and_locks_nothing(database: Database, settings: Settings) -> None:
    """The environment wins; what the table gave is not taken for the environment's."""
    changes = {"llm_base_url": "http://table/v1", "llm_model": "table"}
    database.write(lambda s: stored.put(s, changes, LOCAL_USER_ID, NOW))
    environment = Settings(_env_file=None, data_dir=settings.data_dir, llm_model="environment")
    snapshot = database.read(lambda s: stored.effective(s, environment))
    assert (snapshot.llm_base_url, snapshot.llm_model) == ("http://table/v1", "environment")
    assert (snapshot.is_locked("llm_model"), snapshot.is_locked("llm_base_url")) == (True, False)
    views = stored.describe(environment, snapshot)
    assert set(views) == EDITABLE
    assert views["llm_model"].locked


def test_only_editable_fields_can_be_stored(database: Database) -> None:
    """A programming error, not a user's."""
    with pytest.raises(KeyError):
        database.write(lambda s: stored.put(s, {"port": 1}, LOCAL_USER_ID, NOW))
