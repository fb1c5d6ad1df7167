"""The loop guard on `/v1`: what is sent on, what is refused, and what the log keeps of it (loop-guard rows P and M)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import openai
import pytest

from app.guard.notes import MARKER, NOTE_LIMIT
from app.settings import Settings
from app.store import settings as stored
from app.store.models.loop_guard import LoopGuardTrip
from app.store.models.setup import LOCAL_USER_ID
from tests.integration.openai_kit import SILENT, Answer, Docent, chunk, sse, standing, stream, whole
from tests.unit.guard.talk import Talk
from tests.waiting import until

TOOL = {"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}
USAGE = {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97}
NAMES = count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    with standing(tmp_path_factory.mktemp("docent"), changes={"llm_retry_max": 1}) as docent:
        yield docent


@pytest.fixture
def docent(served: Docent) -> Iterator[Docent]:
    """In mode note, whatever the last test set; its server answers as a whole."""
    before = served.services
    served.upstream.says(Answer(whole()))
    yield served
    served.app.state.docent = before
    set_page(served, None)


def set_page(docent: Docent, mode: str | None) -> None:
    now = docent.services.clock.now()
    docent.services.database.write(lambda s: stored.put(s, {"loop_guard_mode": mode}, LOCAL_USER_ID, now))


def set_environment(docent: Docent, **changes: Any) -> None:
    """The environment's values, as a start with them would have it."""
    settings = docent.services.settings
    fixed = Settings.model_construct(settings.model_fields_set | set(changes), **{**dict(settings), **changes})
    docent.app.state.docent = replace(docent.services, settings=fixed)


def looping(times: int = 3, name: str = "write_file", result: Any = "done", talk: Talk | None = None) -> Talk:
    talk = talk or Talk()
    for _ in range(times):
        talk.call(name, {"path": "a.md"}, result)
    return talk


def stagnating(times: int = 6) -> Talk:
    talk = Talk()
    for _ in range(times):
        talk.say("Let me check.")
    return talk


def body_of(talk: Talk, **more: Any) -> dict[str, Any]:
    """A request of a model of its own, whose rows in the log are the test's."""
    return {"model": f"model-{next(NAMES)}", "messages": talk.messages, "tools": [TOOL], **more}


def trips_of(docent: Docent, body: dict[str, Any], outcomes: int = 1) -> list[LoopGuardTrip]:
    """The log's rows of a request's model, once the outcomes of so many are known."""
    found: list[LoopGuardTrip] = []

    def known() -> bool:
        found[:] = [trip for trip in docent.trips() if trip.model_name == body["model"]]
        return sum(trip.outcome is not None for trip in found) >= outcomes

    until(known, "outcomes in the log")
    return found


MODES = [None, "off", "note", "refuse"]


@pytest.mark.parametrize("page", MODES)
@pytest.mark.parametrize("environment", MODES)
def test_M35_the_environment_wins_then_the_page_then_note(
    docent: Docent, environment: str | None, page: str | None
) -> None:
    """Sixteen combinations, by what becomes of a looping request; mode off also counts nothing (M41)."""
    set_page(docent, page)
    if environment is not None:
        set_environment(docent, loop_guard_mode=environment)
    before = docent.scanned()
    raw = json.dumps(body_of(looping())).encode()
    reply = docent.post(raw)
    seen = docent.upstream.seen
    expected = environment or page or "note"
    assert reply.status_code == (400 if expected == "refuse" else 200)
    assert len(seen) == (0 if expected == "refuse" else 1)
    if expected != "refuse":
        assert (seen[0].raw == raw) is (expected == "off")
        assert (MARKER in seen[0].raw.decode()) is (expected == "note")
    assert docent.scanned() - before == (0 if expected == "off" else 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("done", "one message: text, blank line, note"),
        ("", "one message: note"),
        ([{"type": "text", "text": "done"}], "one message: one part more"),
        (None, "one message more"),
    ],
)
def test_M36_the_note_stands_in_the_last_message(docent: Docent, content: Any, expected: str) -> None:
    """As the model server gets it; everything before it is the client's."""
    body = body_of(looping(result=content))
    assert docent.post(body).status_code == 200
    sent = docent.upstream.seen[0].body
    last = sent["messages"][-1]
    assert {**sent, "messages": None} == {**body, "messages": None}
    if expected == "one message more":
        assert sent["messages"][:-1] == body["messages"]
        assert (last["role"], last["content"].startswith(MARKER)) == ("user", True)
        return
    assert sent["messages"][:-1] == body["messages"][:-1]
    assert last["role"] == "tool"
    text = last["content"] if isinstance(content, str) else last["content"][-1]["text"]
    before = f"{content}\n\n" if content and isinstance(content, str) else ""
    assert text.startswith(f"{before}{MARKER}")


@pytest.mark.parametrize("name", ["n" * 5000, "ü\u202e<b>" * 400, "a\ud800" * 300])
def test_M37_a_long_or_odd_name_makes_a_short_valid_note(docent: Docent, name: str) -> None:
    """Bounded, and text that any server can read."""
    assert docent.post(body_of(looping(name=name))).status_code == 200
    note = docent.upstream.seen[0].body["messages"][-1]["content"].removeprefix("done\n\n")
    assert note.startswith(MARKER)
    assert len(note) <= NOTE_LIMIT
    assert note.encode()


def test_M38_a_noted_request_is_judged_as_if_there_were_no_note(docent: Docent) -> None:
    """Sent again as it went out: one more call still trips, and other work still passes."""
    docent.post(body_of(looping()))
    noted = docent.upstream.seen[0].body["messages"]
    assert MARKER in noted[-1]["content"]
    again, other = Talk(None), Talk(None)
    again.messages, other.messages = [*noted], [*noted]
    docent.post(body_of(again.call("write_file", {"path": "a.md"})))
    docent.post(body_of(other.call("read_file", {"path": "b.md"})))
    assert [MARKER in str(asked.body["messages"][-1]["content"]) for asked in docent.upstream.seen[1:]] == [True, False]


def test_M39_a_note_that_does_not_fit_is_in_the_log_as_not_sent(docent: Docent) -> None:
    """The server's refusal reaches the client, and the decision stays one."""
    too_long = {"error": {"message": "exceeds the available context size", "code": "context_length_exceeded"}}
    docent.upstream.says(Answer(too_long, 400))
    body = body_of(looping())
    reply = docent.post(body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert [trip.outcome for trip in trips_of(docent, body)] == ["not_sent:context"]


def test_M40_a_server_that_dies_once_gets_the_note_again(docent: Docent) -> None:
    """Two requests, the same bytes, one decision, one scan."""
    before = docent.scanned()
    upstream = docent.upstream.says(Answer(refused=True), Answer(whole()))
    body = body_of(looping())
    assert docent.post(body).status_code == 200
    first, second = upstream.seen
    assert first.raw == second.raw
    assert MARKER in first.raw.decode()
    assert [trip.outcome for trip in trips_of(docent, body)] == ["delivered"]
    assert docent.scanned() - before == 1


@pytest.mark.parametrize(("talk", "code"), [(looping(), "loop_detected"), (stagnating(), "stagnation_detected")])
@pytest.mark.parametrize("streamed", [True, False])
def test_M41_a_refused_request_reaches_nobody(docent: Docent, talk: Talk, code: str, streamed: bool) -> None:
    """The client gets a 400 that says why and how to change it."""
    set_page(docent, "refuse")
    body = body_of(talk, stream=streamed)
    with pytest.raises(openai.BadRequestError, match="loop guard") as caught:
        docent.client.chat.completions.create(**body)
    assert (caught.value.code, caught.value.type) == (code, code)
    assert docent.upstream.seen == []
    (trip,) = trips_of(docent, body)
    assert (trip.mode, trip.action, trip.outcome) == ("refuse", "refuse", "not_sent:refused")
    assert (trip.detector, trip.signature_hash is None) == (code.split("_")[0], code.startswith("stag"))


def built_thrice(*, asked: bool) -> Talk:
    talk = Talk("Build it.")
    for _ in range(3):
        talk.call("build", {})
        if asked:
            talk.user("Again.")
    return talk


@pytest.mark.parametrize(
    ("talk", "noted"),
    [
        (Talk(None), False),
        (Talk(), False),
        (looping(2), False),
        (looping(3).call("read_file", {"path": "b.md"}), False),
        (looping(3, "read_file"), False),
        (looping(16, "read_file"), True),
        (built_thrice(asked=True), False),
        (built_thrice(asked=False), True),
        (looping(14, "read_file", talk=looping(15, "read_file").user("And?")), False),
        (stagnating(5), False),
        (stagnating(6), True),
        (stagnating(6).user("Go on."), False),
    ],
    ids=[
        "P25",
        "P25-first",
        "P26-two",
        "moved-on",
        "P27",
        "P27-16",
        "P29-asked",
        "P29",
        "P30",
        "G19",
        "G19-six",
        "P31",
    ],
)
def test_P_rows_hold_for_what_is_sent(docent: Docent, talk: Talk, noted: bool) -> None:
    """A verdict is what the model server sees of it: a note, or the client's own bytes."""
    raw = json.dumps(body_of(talk)).encode()
    docent.post(raw)
    sent = docent.upstream.seen[0].raw
    assert (MARKER in sent.decode()) is noted
    assert (sent == raw) is not noted


@pytest.mark.parametrize("tools", [[TOOL], None])
@pytest.mark.parametrize("streamed", [True, False])
def test_what_a_note_came_to_is_in_the_log(docent: Docent, streamed: bool, tools: Any) -> None:
    """Delivered, what it cost, and whether the conversation did something else the next time."""
    events = [chunk("Else."), chunk(finish="stop"), {"choices": [], "usage": USAGE}]
    docent.upstream.says(stream(*events) if streamed else Answer(whole() | {"usage": USAGE}))
    body = body_of(looping(), stream=streamed, tools=tools)
    session = {"x_docent_session_id": f"s-{body['model']}"}
    docent.post(body, **session)
    docent.post(body, **session)
    docent.post({**body, "messages": looping().call("other", {}).messages}, **session)
    first, second = trips_of(docent, body, 2)
    assert [(trip.outcome, trip.next_turn) for trip in (first, second)] == [
        ("delivered", "same"),
        ("delivered", "changed"),
    ]
    assert (first.prompt_tokens, first.completion_tokens) == (90, 7)
    assert 0 < (first.seconds or 0) < 20
    assert (first.session_hash, first.session_hash is None) == (second.session_hash, False)
    assert (first.path, first.mode, first.detector, first.action) == ("proxy", "note", "loop", "note")


def test_a_client_that_left_before_an_answer_got_no_note(docent: Docent) -> None:
    """The log says so."""
    docent.upstream.says(SILENT)
    body = body_of(looping())
    with pytest.raises(openai.APITimeoutError):
        docent.client.with_options(timeout=0.3).chat.completions.create(**body)
    assert [trip.outcome for trip in trips_of(docent, body)] == ["not_sent:left"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(refused=True), "not_sent:llm_unavailable"),
        (Answer({"error": "x"}, 401), "not_sent:http_401"),
        (Answer(sse(chunk("a"), done=False), kind="text/event-stream", then="cut"), "delivered"),
    ],
)
def test_a_note_was_delivered_once_there_was_an_answer(docent: Docent, answer: Answer, outcome: str) -> None:
    """That it broke off is another matter."""
    docent.upstream.says(answer)
    body = body_of(looping(), stream=True)
    docent.post(body)
    assert [trip.outcome for trip in trips_of(docent, body)] == [outcome]


def test_the_log_holds_no_text_and_a_bounded_model(docent: Docent) -> None:
    """Of names, arguments, sessions and a model's name nothing but keys and 256 characters."""
    body = body_of(looping(name="canary_tool")) | {"model": "é" * 300}
    docent.post(body, x_docent_session_id="canary-session")
    body["model"] = "é" * 256
    (trip,) = trips_of(docent, body)
    kept = json.dumps({column: getattr(trip, column) for column in trip.__table__.columns.keys()})  # noqa: SIM118
    assert "canary" not in kept
