"""`docent/<slug>` on `/v1`: a collection answers as a model does, with its citations, and leaves what a turn leaves."""

import json
import logging
import socket
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from sqlalchemy import select

from app.edge.auth import current_user
from app.rag.errors import LLMError
from app.rag.pieces import StreamPiece
from app.settings import Settings
from app.store import collections, turns
from app.store.models.chats import Message, QueryLog
from app.store.models.setup import LOCAL_USER_ID, User
from tests.integration.openai_kit import Docent, standing
from tests.integration.openai_said import said, said_until_error
from tests.integration.turn_kit import fields
from tests.scripted import Gate, ScriptedModel, ScriptedSearch, Step, hit, usage
from tests.waiting import until

ANSWER = "Backups are made every night at two [1]. They are kept for thirty days [1]."
MODEL = "docent/library"


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel([ANSWER])


@pytest.fixture(scope="module")
def search() -> ScriptedSearch:
    return ScriptedSearch()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel, search: ScriptedSearch) -> Iterator[Docent]:
    with standing(tmp_path_factory.mktemp("docent"), chat_for=model, searcher=search) as docent:
        yield docent


@pytest.fixture
def docent(served: Docent, model: ScriptedModel, search: ScriptedSearch) -> Docent:
    """Its model answers, its library has two passages."""
    model.scripts, model.requests, model.tools, model.closed = [[ANSWER]], [], [], 0
    search.hits, search.error, search.asked = [hit(1), hit(2, score=0.5)], None, []
    return served


def says(model: ScriptedModel, *steps: Step) -> None:
    model.scripts = [steps]


def turn_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, str]]:
    lines = [record.getMessage() for record in caplog.records if record.name == "app.chat"]
    return [fields(line) for line in lines if line.startswith("chat_turn ")]


def check_facts(facts: dict[str, Any]) -> None:
    """The field `docent` of an answer."""
    assert (facts["mode"], [(source["n"], source["cited"]) for source in facts["sources"]]) == (
        "grounded", [(1, True), (2, False)],
    )  # fmt: skip
    assert facts["sources"][0]["path"] == "manual-1.md"
    assert facts["citations"] == {"valid": 2, "dropped": 0}
    assert len(facts["turn_id"]) == 16
    assert facts["read_docs"] == []


def test_a_streamed_answer_is_cited(docent: Docent) -> None:
    """Text in pieces, then a finish, the sources in the field `docent`, and the usage that was asked for."""
    parts = list(docent.ask("How often?", model=MODEL, stream=True, stream_options={"include_usage": True}))
    assert said(parts) == ANSWER
    assert [choice.finish_reason for part in parts for choice in part.choices if choice.finish_reason] == ["stop"]
    assert {(part.id, part.model, part.object) for part in parts} == {(parts[0].id, MODEL, "chat.completion.chunk")}
    (facts,) = [part.docent for part in parts if hasattr(part, "docent")]
    check_facts(facts)
    assert parts[0].choices[0].delta.role == "assistant"
    assert (parts[-1].usage.prompt_tokens, parts[-1].usage.completion_tokens) == (321, 12)


def test_a_whole_answer_is_cited(docent: Docent) -> None:
    """The same as one reply; without usage asked for a stream has none."""
    reply = docent.ask("How often?", model=MODEL)
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == (ANSWER, "stop")
    assert (reply.model, reply.usage.total_tokens) == (MODEL, 333)
    check_facts(reply.docent)
    assert all(part.usage is None for part in docent.ask(model=MODEL, stream=True))


def test_the_talk_before_the_question_is_history_and_only_its_collection_is_searched(
    docent: Docent, model: ScriptedModel, search: ScriptedSearch
) -> None:
    """Text parts count as text; a system message is not followed; tools offered are not the model's."""
    messages = [
        {"role": "system", "content": "Speak like a pirate."},
        {"role": "user", "content": "What is restic?"},
        {"role": "assistant", "content": "A backup program."},
        {"role": "user", "content": [{"type": "text", "text": "How often?"}, {"type": "image_url", "image_url": {}}]},
    ]
    tool = {"type": "function", "function": {"name": "mine", "parameters": {}}}
    docent.client.chat.completions.create(model=MODEL, messages=messages, tools=[tool])  # type: ignore[call-overload]
    sent = json.dumps(model.requests[0])
    assert all(text in sent for text in ("What is restic?", "A backup program.", "How often?"))
    assert "pirate" not in sent
    assert "mine" not in json.dumps(model.tools[0])
    _, user, _, filters = search.asked[0]
    assert (user, filters.collections, filters.documents) == (LOCAL_USER_ID, (1,), None)


def test_thinking_and_a_cut_answer_are_told(docent: Docent, model: ScriptedModel) -> None:
    """As reasoning_content, and as the finish reason `length`."""
    says(model, StreamPiece("thinking", "Hm."), "Thirty days [1]", usage("length"))
    reply = docent.ask(model=MODEL)
    assert (reply.choices[0].message.reasoning_content, reply.choices[0].message.content) == ("Hm.", "Thirty days [1]")


def test_a_turn_without_a_chat_leaves_what_a_turn_leaves(docent: Docent, caplog: pytest.LogCaptureFixture) -> None:
    """One line with `chat=-`, a row of the query log, a receipt; no message, no chat."""
    caplog.set_level(logging.INFO, "app.chat")
    turn_id = docent.ask("How often?", model=MODEL).docent["turn_id"]
    until(lambda: bool(turn_lines(caplog)), "the line")
    (line,) = turn_lines(caplog)
    assert (line["turn"], line["chat"], line["mode"], line["outcome"], line["cited"]) == (
        turn_id, "-", "grounded", "ok", "2",
    )  # fmt: skip
    database = docent.services.database
    assert database.read(lambda s: s.scalars(select(Message)).all()) == []
    asked = database.read(lambda s: s.scalars(select(QueryLog).order_by(QueryLog.id.desc())).first())
    assert asked is not None
    assert (asked.question, asked.chat_id, asked.message_id, asked.answer_chars) == (
        "How often?",
        None,
        None,
        len(ANSWER),
    )
    receipt = docent.http.get(f"/turns/{turn_id}")
    assert receipt.status_code == 200
    assert turn_id in receipt.text
    assert docent.http.get(f"/api/turns/{turn_id}/events").status_code == 200


def test_a_question_that_nothing_answers_is_a_gap(docent: Docent, search: ScriptedSearch, model: ScriptedModel) -> None:
    """Deflected, with no sources; /queries lists it without a chat to lead to."""
    search.hits = [hit(1, score=0.01)]
    says(model, "The documents hold nothing about that.")
    reply = docent.ask("How tall is the Eiffel tower?", model=MODEL)
    assert reply.choices[0].message.content
    assert (reply.docent["mode"], reply.docent["sources"], reply.docent["citations"]) == (
        "deflected",
        [],
        {"valid": 0, "dropped": 0},
    )
    page = docent.http.get("/queries")
    assert page.status_code == 200
    assert "How tall is the Eiffel tower?" in page.text
    assert docent.http.get(f"/turns/{reply.docent['turn_id']}").status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (LLMError("llm_unavailable", reason="refused", params={"server": "nas:1234"}), 502, "llm_unavailable"),
        (LLMError("llm_timeout", reason="idle"), 504, "llm_timeout"),
        (LLMError("llm_rejected", reason="key", retryable=False), 502, "llm_rejected"),
        (RuntimeError("odd"), 500, "internal"),
    ],
)
def test_a_turn_that_fails_is_an_error(
    docent: Docent, model: ScriptedModel, error: Exception, status: int, code: str
) -> None:
    """With its status where nothing was sent yet; after some text as the stream's last event."""
    says(model, "Thirty ", error)
    with pytest.raises(openai.APIStatusError) as caught:
        docent.ask(model=MODEL)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert "odd" not in caught.value.message
    assert caught.value.response.headers.get("x-should-retry") == ("false" if code == "llm_rejected" else None)
    text, seen = said_until_error(docent.ask(model=MODEL, stream=True))
    assert (text, seen and seen.code) == ("Thirty ", code)


def test_a_turn_stopped_from_the_page_is_told(docent: Docent, model: ScriptedModel) -> None:
    """What was said, then that it was stopped."""
    gate = Gate()
    says(model, "Thirty ", gate)
    answer = iter(docent.ask(model=MODEL, stream=True))
    first = [next(answer), next(answer)]
    docent.http.post(f"/api/turns/{first[0].id.removeprefix('chatcmpl-')}/stop")
    text, error = said_until_error(answer)
    assert (said(first) + text, error and error.code) == ("Thirty ", "interrupted")


@pytest.mark.parametrize("stream", [True, False])
def test_leaving_stops_the_turn(docent: Docent, model: ScriptedModel, stream: bool) -> None:
    """Nobody else waits for it."""
    says(model, "Thirty ", Gate())
    raw = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "?"}], "stream": stream}).encode()
    with socket.create_connection(("127.0.0.1", docent.port)) as client:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(raw)}\r\n\r\n"
        client.sendall(head.encode() + raw)
        until(lambda: bool(model.requests), "the model is asked")
        assert docent.services.turns.active == 1
    until(lambda: model.closed == 1, "the request to the model is closed", 2)
    until(lambda: docent.services.turns.active == 0, "the turn is over")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"messages": None}, "no_question"),
        ({"messages": "hi"}, "no_question"),
        ({"messages": []}, "no_question"),
        ({"messages": [{"role": "user", "content": None}]}, "no_question"),
        ({"messages": [{"role": "user", "content": "  "}, 7, None, "x"]}, "no_question"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "no_question"),
        ({"messages": [{"role": ["user"], "content": "hi"}]}, "no_question"),
        ({"messages": [{"role": "user", "content": "x" * 40_000}]}, "question_too_long"),
        ({"n": 2}, "one_choice"),
    ],
)
def test_what_asks_nothing_is_refused(docent: Docent, change: dict[str, Any], code: str) -> None:
    """Before a turn begins."""
    reply = docent.post({"model": MODEL, "messages": [{"role": "user", "content": "?"}], **change})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, code)
    assert docent.services.turns.active == 0


def test_a_long_talk_is_cut_to_what_fits(docent: Docent, model: ScriptedModel) -> None:
    """Ten megabytes of it: the question is answered, with the newest of what was said."""
    past = [{"role": ("user", "assistant")[at % 2], "content": "word " * 2000} for at in range(1000)]
    reply = docent.post({"model": MODEL, "messages": [*past, {"role": "user", "content": "How often?"}]})
    assert reply.json()["choices"][0]["message"]["content"] == ANSWER
    assert len(json.dumps(model.requests[0])) < 1_000_000


def test_anothers_collection_is_not_there(docent: Docent) -> None:
    """404, as for one that never was; and it isn't listed."""
    now = docent.services.clock.now()

    def bob(session: Any) -> int:
        user = User(username="bob", display_name="Bob", role="user", created_at=now)
        session.add(user)
        session.flush()
        collections.create_collection(session, LOCAL_USER_ID, "Private", "folder", "/nowhere", now)
        return int(user.id)

    bob_id = docent.services.database.write(bob)
    docent.app.dependency_overrides[current_user] = lambda: bob_id
    try:
        listed = [model.id for model in docent.client.models.list()]
        with pytest.raises(openai.NotFoundError) as caught:
            docent.ask(model="docent/private")
    finally:
        docent.app.dependency_overrides.clear()
    assert caught.value.code == "model_not_found"
    assert "docent/private" not in listed
    assert "docent/private" in [model.id for model in docent.client.models.list()]


def test_a_turn_that_a_kill_left_running_is_swept(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """At the next start: interrupted, with its line; its receipt can be read."""
    with Docent(settings, chat_for=ScriptedModel([ANSWER])) as docent:
        now = docent.services.clock.now()
        docent.services.database.write(lambda s: turns.begin_lone_turn(s, "a" * 16, LOCAL_USER_ID, now))
    caplog.set_level(logging.INFO, "app.chat")
    with Docent(settings, chat_for=ScriptedModel([ANSWER])) as docent:
        row = docent.services.database.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "a" * 16))
        assert (row.state, row.chat_id) == ("interrupted", None)
        assert docent.http.get(f"/turns/{'a' * 16}").status_code == 200
    lines = [record.getMessage() for record in caplog.records if "chat_turn turn=aaaa" in record.getMessage()]
    assert [(fields(line)["chat"], fields(line)["outcome"]) for line in lines] == [("-", "interrupted")]
