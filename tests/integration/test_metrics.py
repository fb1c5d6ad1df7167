"""`/metrics`: what a running Docent counts, that anyone may read it, and that it names nobody and nothing."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from app.main import create_app
from app.settings import Settings
from tests.e2e.mock_llm import MockLlm
from tests.fake_embedder import WordEmbedder
from tests.waiting import until

BASE = "http://127.0.0.1:8642"
BACKUP = b"# Backup plan\n\nThe nightly backup job starts at 02:00 and is done before 03:30.\n"
ROUND = [
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "write_file", "arguments": '{"path":"a"}'}}]},
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
]


@pytest.fixture
def mock() -> Iterator[MockLlm]:
    with MockLlm() as server:
        yield server


@pytest.fixture
def client(settings: Settings, mock: MockLlm) -> Iterator[TestClient]:
    fixed = settings.model_copy(
        update={"llm_base_url": mock.base_url, "llm_model": "private-model", "retrieval_min_score": 0.01}
    )
    with TestClient(create_app(fixed, embedder=WordEmbedder()), base_url=BASE) as client:
        yield client


def shown(client: TestClient) -> str:
    reply = client.get("/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return reply.text


def values(client: TestClient, name: str) -> dict[str, float]:
    """The samples of a metric: the values of their labels, by the labels' names in order, and the number."""
    samples = [one for family in text_string_to_metric_families(shown(client)) for one in family.samples]
    return {
        " ".join(value for _, value in sorted(one.labels.items())): one.value for one in samples if one.name == name
    }


def add_document(client: TestClient) -> None:
    """Adds one document that can be read and one that can't, and waits for both."""
    files = [("files", ("secret-name.md", BACKUP)), ("files", ("empty.md", b"   "))]
    assert client.post("/api/documents", files=files).status_code == 202
    done = {"indexed": 1.0, "failed": 1.0}
    until(lambda: values(client, "docent_ingest_documents_total") == done, "both read")
    until(lambda: values(client, "docent_ingest_queue") == {"": 0.0}, "no job left")


def test_a_turn_a_document_and_a_request_are_counted_once(client: TestClient) -> None:
    """From upload over a looping turn to a noted request of `/v1`, each by its own words."""
    add_document(client)
    client.post("/api/chat", json={"message": "e2e-loop when does the nightly backup job start?", "client_key": "k1"})
    body = {"model": "private-model", "messages": [{"role": "user", "content": "Hi"}, *ROUND * 3]}
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    # The last frame is read a moment before the line is written.
    until(lambda: values(client, "docent_turns_total")["grounded ok"] == 1, "the turn counted")
    assert sum(values(client, "docent_turns_total").values()) == 1
    assert values(client, "docent_turn_rounds_total") == {"": 5}
    assert values(client, "docent_turn_tool_calls_total") == {"": 2}
    assert values(client, "docent_turn_seconds_count") == {"": 1}
    assert values(client, "docent_guard_scans_total") == {"note agent": 5, "note proxy": 1}
    assert values(client, "docent_guard_trips_total") == {
        "note loop agent": 1,
        "final loop agent": 1,
        "note loop proxy": 1,
    }
    until(lambda: values(client, "docent_proxy_requests_total")["ok"] == 1, "the request counted")
    assert values(client, "docent_turns_active") == {"": 0}
    assert values(client, "docent_ingest_document_seconds_count") == {"": 2}


def test_the_counts_are_the_logs(client: TestClient, settings: Settings, mock: MockLlm) -> None:
    """What was scanned and decided stands in the log with the same numbers."""
    add_document(client)
    client.post("/api/chat", json={"message": "e2e-loop when does the nightly backup job start?", "client_key": "k1"})
    client.app.state.docent.guard_log.flush()  # type: ignore[attr-defined]
    (total,) = client.get("/api/proxy/loop-guard-trips").json()["totals"]
    assert values(client, "docent_guard_scans_total") == {"note agent": total["scanned"]}
    assert sum(values(client, "docent_guard_trips_total").values()) == total["trips"]


def test_nothing_that_is_anyones_own_is_in_it(client: TestClient) -> None:
    """No model, no file, no text, whatever came by; odd names of a client make no new series."""
    add_document(client)
    for name in ("private-model", "odd-name\n#", "x" * 300):
        body: dict[str, Any] = {"model": name, "messages": [{"role": "user", "content": "A private question"}]}
        client.post("/v1/chat/completions", content=json.dumps(body))
    said = shown(client)
    assert said.count("docent_proxy_requests_total{") == 4
    for words in ("private", "odd-name", "xxxx", "secret-name", "127.0.0.1"):
        assert words not in said


def test_losses_of_the_guards_log_are_counted_by_reason(client: TestClient) -> None:
    """What came after the writer's end is lost, as a scan, and the metric says so."""
    log = client.app.state.docent.guard_log  # type: ignore[attr-defined]
    assert values(client, "docent_guard_log_lost_total") == {}
    log.stop()
    log.scanned("proxy", "m", "note")
    assert values(client, "docent_guard_log_lost_total") == {"trip stopped": 0, "scan stopped": 1}


def test_a_database_that_cannot_be_read_does_not_take_the_metrics_along(client: TestClient) -> None:
    """Its own number is NaN; the rest is there, which is when it is needed most."""
    database = client.app.state.docent.database  # type: ignore[attr-defined]
    database.write(lambda session: session.execute(text("ALTER TABLE jobs RENAME TO gone")))
    (waiting,) = values(client, "docent_ingest_queue").values()
    assert math.isnan(waiting)
    assert values(client, "docent_turns_active") == {"": 0}
    database.write(lambda session: session.execute(text("ALTER TABLE gone RENAME TO jobs")))
