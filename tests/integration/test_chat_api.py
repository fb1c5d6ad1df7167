"""A question over HTTP, end to end but for model and library: frames, rows and the one log line."""

import asyncio
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.api.chat import ChatBody
from app.main import create_app
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.pieces import StreamPiece
from app.rag.prompts import NO_ANSWER_SENTENCE
from app.search.errors import EmbedError
from app.search.hits import SearchFilters
from app.settings import Settings
from app.store.models.chats import Chat, Message, QueryLog, Turn
from tests.asgi import Client, in_app
from tests.scripted import Gate, ScriptedModel, ScriptedSearch, Step, hit, usage
from tests.sse import Frame, text_of

ANSWER = "Backups are made every night at two [1]. They are kept for thirty days [1]."


def app_of(settings: Settings, model: ScriptedModel, search: ScriptedSearch | None = None) -> FastAPI:
    return create_app(settings, chat_for=model, searcher=search or ScriptedSearch(hit(1), hit(2, score=0.5)))


def ask(
    settings: Settings, *script: Step, search: ScriptedSearch | None = None, message: str = "How often?", **more: Any
) -> tuple[list[Frame], FastAPI]:
    """One question; its frames, and the application (closed) for its rows."""
    frames: list[Frame] = []
    app = app_of(settings, ScriptedModel(script), search)

    async def test(client: Client) -> None:
        reply = await client.ask(message, **more)
        assert reply.status == 200
        frames.extend(await reply.all_frames())

    in_app(app, test)
    return frames, app


def rows(settings: Settings, kind: type[Any]) -> list[Any]:
    from app.store.engine import Database

    database = Database(settings.database)
    try:
        return database.read(lambda session: list(session.scalars(select(kind).order_by(kind.id))))
    finally:
        database.close()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The per-turn lines."""

    class Lines(list[str]):
        def __iter__(self) -> Iterator[str]:
            return iter([r.getMessage() for r in caplog.records if r.getMessage().startswith("chat_turn ")])

        def __len__(self) -> int:
            return len(list(iter(self)))

    with caplog.at_level(logging.INFO, "app.chat"):
        yield Lines()


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", line))


def test_a_grounded_answer_streams_with_its_sources(settings: Settings, lines: list[str]) -> None:
    """Start, deltas, done; the frames, the rows and the line say the same."""
    frames, _ = ask(settings, StreamPiece("thinking", "hm"), ANSWER[:20], ANSWER[20:])
    assert [frame.id for frame in frames] == [str(n) for n in range(1, len(frames) + 1)]
    assert frames[0].event == "start"
    start, done = frames[0].data, frames[-1].data
    assert (start["v"], start["mode"], start["nearest"]) == (1, "grounded", [])
    assert [(row["n"], row["path"], row["score"]) for row in start["sources"]] == [
        (1, "manual-1.md", 0.8),
        (2, "manual-2.md", 0.5),
    ]
    assert text_of(frames) == ANSWER
    assert text_of(frames, "thinking") == "hm"
    assert done["citations"] == {"valid": 2, "dropped": 0}
    assert [row["cited"] for row in done["sources"]] == [True, False]
    assert (done["answer_chars"], done["thinking_chars"], done["recovered"]) == (len(ANSWER), 2, False)
    assert 'class="cite"' in done["html"]

    (chat,), (turn,), (query,) = rows(settings, Chat), rows(settings, Turn), rows(settings, QueryLog)
    question, answer = rows(settings, Message)
    assert chat.title == "How often?"
    assert (question.content, question.status) == ("How often?", "complete")
    assert (answer.content, answer.thinking, answer.status) == (ANSWER, "hm", "complete")
    assert answer.sources == done["sources"]
    assert answer.id == done["message_id"]
    assert (turn.id, turn.state, turn.outcome, turn.mode) == (start["turn_id"], "done", "ok", "grounded")
    assert [message["role"] for message in turn.prompt] == ["system", "user"]
    assert (query.question, query.mode, query.message_id, query.chunk_ids) == (
        "How often?",
        "grounded",
        answer.id,
        [101, 102],
    )

    (line,) = lines
    said = fields(line)
    assert (said["turn"], said["chat"], said["outcome"], said["mode"]) == (turn.id, str(chat.id), "ok", "grounded")
    assert (said["chunks"], said["cited"], said["rounds"], said["prompt_tokens"]) == ("2", "2", "1", "321")
    assert (said["answer_chars"], said["thinking_chars"]) == (str(len(ANSWER)), "2")
    assert int(said["total_ms"]) == query.total_ms == done["total_ms"]
    assert line.endswith("retries=0 scaffold_stripped=0")


def test_a_question_nothing_answers_is_deflected_and_listed_as_a_gap(settings: Settings) -> None:
    """No sources, what came nearest, the deflecting prompt, and a row in the gaps."""
    model = ScriptedModel(["Your documents don't say."])
    app = app_of(settings, model, ScriptedSearch(hit(1, score=0.2), hit(2, score=0.3)))

    async def test(client: Client) -> None:
        frames = await (await client.ask("Who owns the boat?")).all_frames()
        gaps = await (await client.get("/api/queries")).json()
        start = frames[0].data
        assert (start["mode"], start["sources"]) == ("deflected", [])
        assert [row["document_id"] for row in start["nearest"]] == [2, 1]
        assert frames[-1].event == "done"
        assert frames[-1].data["sources"] == []
        assert [gap["question"] for gap in gaps["queries"]] == ["Who owns the boat?"]

    in_app(app, test)
    assert "DEFLECT_MODE" in model.requests[0][0]["content"]
    assert rows(settings, Message)[1].sources[0]["document_id"] == 2


def test_without_documents_nothing_is_searched_and_no_gap_is_made(settings: Settings) -> None:
    """Its own prompt, no search, no entry among the gaps."""
    model, search = ScriptedModel(["Four."]), ScriptedSearch(hit(1))

    async def test(client: Client) -> None:
        frames = await (await client.ask("Two and two?", without_documents=True)).all_frames()
        gaps = await (await client.get("/api/queries")).json()
        assert (frames[0].data["mode"], frames[0].data["sources"], frames[0].data["nearest"]) == ("deflected", [], [])
        assert gaps == {"queries": []}

    in_app(app_of(settings, model, search), test)
    assert search.asked == []
    assert "DEFLECT_MODE" not in model.requests[0][0]["content"]
    assert len(rows(settings, QueryLog)) == 1


def test_filters_reach_the_search_and_collections_stay_with_the_chat(settings: Settings) -> None:
    """Documents hold for one turn; collections until others are given."""
    search = ScriptedSearch(hit(1))

    async def test(client: Client) -> None:
        first = await client.ask(collections=[3, 4], documents=[9])
        chat_id = int(first.headers["x-chat-id"])
        await first.all_frames()
        await (await client.ask(chat_id=chat_id)).all_frames()
        await (await client.ask(chat_id=chat_id, collections=[])).all_frames()

    in_app(app_of(settings, ScriptedModel([ANSWER]), search), test)
    assert [asked[3] for asked in search.asked] == [
        SearchFilters((3, 4), (9,)),
        SearchFilters((3, 4), None),
        SearchFilters(None, None),
    ]


def test_the_next_question_brings_the_chat_along(settings: Settings) -> None:
    """Question and answer before it stand in the prompt; its search reads a question that leans on them together."""
    model, search = ScriptedModel([ANSWER], ["Yes [1]."]), ScriptedSearch(hit(1))

    async def test(client: Client) -> None:
        first = await client.ask("How often are backups made?")
        await first.all_frames()
        await (await client.ask("And where?", chat_id=int(first.headers["x-chat-id"]))).all_frames()

    in_app(app_of(settings, model, search), test)
    assert [message["role"] for message in model.requests[1]] == ["system", "user", "assistant", "user"]
    assert search.asked[1][0] == "How often are backups made? And where?"


@pytest.mark.parametrize(
    ("error", "code", "outcome", "retryable"),
    [
        (MalformedReplyError(), "malformed_reply", "malformed", True),
        (LLMError("llm_unavailable", reason="refused", params={"server": "nas:1"}), "llm_unavailable", "error", True),
        (
            LLMError("llm_rejected", reason="key", retryable=False, params={"server": "nas:1"}),
            "llm_rejected",
            "error",
            False,
        ),
        (LLMError("llm_incomplete", reason="cut"), "llm_incomplete", "error", True),
        (LLMError("something_new"), "llm_rejected", "error", True),
        (ZeroDivisionError("secret detail"), "internal", "error", True),
    ],
)
def test_each_failure_has_its_frame_and_keeps_the_text(
    settings: Settings, lines: list[str], error: Exception, code: str, outcome: str, retryable: bool
) -> None:
    """One error frame with a sentence, no done, no row among the questions, one line; what had arrived stays."""
    frames, _ = ask(settings, "Backups are made ", error)
    last = frames[-1]
    assert (last.event, last.data["code"], last.data["retryable"]) == ("error", code, retryable)
    assert [frame.event for frame in frames].count("done") == 0
    assert "secret" not in str(last.data)
    answer = rows(settings, Message)[1]
    assert (answer.content, answer.status, answer.error_code) == ("Backups are made ", "error", code)
    assert answer.sources[0]["path"] == "manual-1.md"
    assert rows(settings, Turn)[0].state == "error"
    assert rows(settings, QueryLog) == []
    (line,) = lines
    assert fields(line)["outcome"] == outcome


def test_a_malformed_reply_has_the_sentence_everybody_knows(settings: Settings) -> None:
    """It is quoted in the contract, word for word."""
    frames, _ = ask(settings, MalformedReplyError())
    assert frames[-1].data["message"] == "The model returned a malformed reply — please try again."


def test_an_unexpected_error_is_logged_once_with_its_traceback(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator sees where; the reader sees a sentence."""
    ask(settings, ZeroDivisionError())
    assert [record.exc_info is not None for record in caplog.records if "code=internal" in record.getMessage()] == [
        True
    ]


def test_a_search_that_fails_ends_the_turn_before_it_starts(settings: Settings, lines: list[str]) -> None:
    """No start frame: the turn ended before retrieval was over."""
    frames, _ = ask(settings, ANSWER, search=ScriptedSearch(error=EmbedError()))
    assert [(frame.event, frame.data["code"]) for frame in frames] == [("error", "retrieval_failed")]
    (line,) = lines
    assert (fields(line)["mode"], fields(line)["outcome"]) == ("-", "error")


def test_what_a_reader_should_know_comes_as_notices(settings: Settings) -> None:
    """A cut answer, an answer without a citation, a model that loads: a code and a sentence each."""
    frames, _ = ask(
        settings,
        StreamPiece("notice", data={"code": "model_loading"}),
        "Backups are made at night.",
        usage("length"),
    )
    notices = [frame.data for frame in frames if frame.event == "notice"]
    assert [notice["code"] for notice in notices] == ["model_loading", "answer_unsupported"]
    assert all(notice["message"].endswith(".") for notice in notices)


def test_an_answer_at_the_length_limit_says_so(settings: Settings) -> None:
    """finish_reason `length` is told, and the answer is an answer."""

    class Cut(ScriptedModel):
        async def _chat(self, messages: Any, *, tools: Any, content_filter: Any = None) -> Any:
            yield StreamPiece("content", ANSWER)
            yield usage("length")

    async def test(client: Client) -> None:
        frames = await (await client.ask()).all_frames()
        assert [frame.data["code"] for frame in frames if frame.event == "notice"] == ["answer_cut"]
        assert frames[-1].event == "done"

    in_app(app_of(settings, Cut([])), test)


def test_saying_that_the_passages_hold_no_answer_is_not_unsupported(settings: Settings) -> None:
    """The sentence the prompt asks for needs no passage."""
    frames, _ = ask(settings, NO_ANSWER_SENTENCE)
    assert [frame.event for frame in frames] == ["start", "delta", "done"]


def test_passages_that_do_not_fit_are_told(settings: Settings) -> None:
    """A window too small for all: fewer sources, a notice, and the receipt knows what was left out."""
    small = settings.model_copy(update={"llm_context_tokens": 1200, "llm_max_tokens": 200})
    long = [hit(n, text="word " * 400, score=0.8) for n in range(1, 6)]
    frames, _ = ask(small, "Yes [1].", search=ScriptedSearch(*long))
    given = len(frames[0].data["sources"])
    assert 0 < given < 5
    assert frames[1].data["code"] == "context_trimmed"
    numbers = rows(small, Turn)[0].numbers
    assert len(numbers["dropped"]) == 5 - given
    assert (numbers["searched"], numbers["min_score"]) == ("How often?", 0.45)


def test_retries_are_shown_and_counted(settings: Settings, lines: list[str]) -> None:
    """A retry frame per retry, and the number in done and line."""
    retry = StreamPiece("retry", data={"attempt": 1, "max": 2, "delay_ms": 500, "reason": "connect"})
    frames, _ = ask(settings, retry, ANSWER)
    assert frames[1].data == {"attempt": 1, "max": 2, "delay_ms": 500, "reason": "connect"}
    assert frames[-1].data["retries"] == 1
    (line,) = lines
    assert fields(line)["retries"] == "1"


def test_fast_text_is_gathered_and_stays_whole(settings: Settings) -> None:
    """A thousand pieces at once become a handful of frames with the same text."""
    words = [f"word{n} " for n in range(1000)]
    frames, _ = ask(settings, *words)
    deltas = [frame for frame in frames if frame.event == "delta"]
    assert text_of(frames) == "".join(words) == rows(settings, Message)[1].content
    assert len(deltas) < 100


def test_what_is_no_character_is_replaced_in_stream_and_row_alike(settings: Settings) -> None:
    """A lone surrogate can't be stored; both sides show the same instead."""
    frames, _ = ask(settings, "a\ud800b\x00c\u2028[1]")
    assert text_of(frames) == "a?b\x00c\u2028[1]" == rows(settings, Message)[1].content


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [("", 422, "question_empty"), (" \n\t ", 422, "question_empty"), ("x" * 100_000, 422, "question_too_long")],
)
def test_a_question_of_no_or_too_many_characters_is_refused(
    settings: Settings, message: str, status: int, code: str
) -> None:
    """Its own sentence, and nothing is stored."""

    async def test(client: Client) -> None:
        reply = await client.ask(message)
        body = await reply.json()
        assert (reply.status, body["error"]["code"]) == (status, code)
        assert reply.headers["content-type"] == "application/json"

    in_app(app_of(settings, ScriptedModel([ANSWER])), test)
    assert rows(settings, Chat) == rows(settings, Message) == rows(settings, Turn) == []


def test_the_longest_question_is_taken(settings: Settings) -> None:
    """The limit itself is allowed, whatever the characters cost as JSON."""
    question = "\U0001f600" * settings.question_max_chars
    frames, _ = ask(settings, ANSWER, message=question)
    assert frames[-1].event == "done"
    assert rows(settings, Message)[0].content == question


@pytest.mark.parametrize(
    "body",
    [
        {"message": "x"},
        {"message": "x", "client_key": ""},
        {"message": "x", "client_key": "k" * 101},
        {"message": 5, "client_key": "k"},
        {"message": "x", "client_key": "k", "chat_id": 0},
        {"message": "x", "client_key": "k", "chat_id": 2**63},
        {"message": "x", "client_key": "k", "collections": ["canary"]},
        {"message": "x", "client_key": "k", "canary": "canary"},
        *(
            {"message": "x", "client_key": "k", column.name: 1}
            for column in Turn.__table__.columns
            if column.name not in ChatBody.model_fields
        ),
        *({"message": "x", "client_key": "k", column.name: 1} for column in Chat.__table__.columns),
    ],
)
def test_a_body_that_is_not_understood_is_refused_and_changes_nothing(settings: Settings, body: dict[str, Any]) -> None:
    """Unknown fields too: no column of a table can be set from outside. What was sent is not repeated."""

    async def test(client: Client) -> None:
        reply = await client.post("/api/chat", body)
        answer = await reply.json()
        assert (reply.status, answer["error"]["code"]) == (422, "invalid_input")
        assert answer["error"]["message"].count("canary") == ("canary" in body)

    in_app(app_of(settings, ScriptedModel([ANSWER])), test)
    assert rows(settings, Turn) == []


def test_an_unknown_chat_is_not_found(settings: Settings) -> None:
    """404 before anything is stored."""

    async def test(client: Client) -> None:
        reply = await client.ask(chat_id=77)
        assert (reply.status, (await reply.json())["error"]["code"]) == (404, "chat_not_found")

    in_app(app_of(settings, ScriptedModel([ANSWER])), test)
    assert rows(settings, Turn) == []


def test_the_headers_name_turn_and_chat_and_forbid_buffering(settings: Settings) -> None:
    """They are there before the first frame."""
    gate = Gate()

    async def test(client: Client) -> None:
        reply = await client.ask()
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-chat-stream"] == "v1"
        assert reply.headers["x-accel-buffering"] == "no"
        assert reply.headers["cache-control"] == "no-store"
        gate.open()
        frames = await reply.all_frames()
        assert frames[0].data["turn_id"] == reply.headers["x-turn-id"]
        assert str(frames[0].data["chat_id"]) == reply.headers["x-chat-id"]

    in_app(app_of(settings, ScriptedModel([gate, ANSWER])), test)


def test_fifty_posts_with_one_key_are_one_turn(settings: Settings) -> None:
    """A double click, Enter twice, a repeated request: one chat, one request to the model, the same frames for all."""
    model = ScriptedModel([ANSWER])

    async def test(client: Client) -> None:
        body = {"message": "How often?", "client_key": "same"}
        replies = await asyncio.gather(*(client.post("/api/chat", body) for _ in range(50)))
        streams = [await reply.all_frames() for reply in replies]
        assert {reply.headers["x-turn-id"] for reply in replies} == {streams[0][0].data["turn_id"]}
        assert all(stream == streams[0] for stream in streams)

    in_app(app_of(settings, model), test)
    assert len(model.requests) == len(rows(settings, Turn)) == len(rows(settings, Chat)) == 1


def test_two_questions_at_once_in_one_chat_are_one_turn_and_one_refusal(settings: Settings) -> None:
    """The second is told which turn runs, and is stored nowhere."""
    gate = Gate()

    async def test(client: Client) -> None:
        first = await client.ask()
        chat_id = int(first.headers["x-chat-id"])
        await first.all_frames()
        replies = await asyncio.gather(*(client.ask(chat_id=chat_id) for _ in range(2)))
        (running,), (refused,) = (
            [reply for reply in replies if reply.status == 200],
            [reply for reply in replies if reply.status == 409],
        )
        body = await refused.json()
        assert (body["error"]["code"], body["turn_id"]) == ("chat_busy", running.headers["x-turn-id"])
        gate.open()
        assert (await running.all_frames())[-1].event == "done"

    in_app(app_of(settings, ScriptedModel([ANSWER], [gate, ANSWER])), test)
    assert len(rows(settings, Message)) == 4


def test_a_key_used_before_a_restart_names_its_turn(settings: Settings) -> None:
    """The log of events is gone, the answer is not: 409 says where it is."""
    body = {"message": "How often?", "client_key": "same"}
    turn_ids: list[str] = []

    async def before(client: Client) -> None:
        reply = await client.post("/api/chat", body)
        turn_ids.append(reply.headers["x-turn-id"])
        await reply.all_frames()

    async def after(client: Client) -> None:
        reply = await client.post("/api/chat", body)
        answer = await reply.json()
        assert (reply.status, answer["error"]["code"], answer["turn_id"]) == (409, "turn_gone", turn_ids[0])

    in_app(app_of(settings, ScriptedModel([ANSWER])), before)
    in_app(app_of(settings, ScriptedModel([ANSWER])), after)


def test_chats_are_listed_read_renamed_and_deleted(settings: Settings) -> None:
    """The whole life of a chat over HTTP."""

    async def test(client: Client) -> None:
        first = await client.ask("First?")
        await first.all_frames()
        await (await client.ask("Second?")).all_frames()
        chat_id = first.headers["x-chat-id"]
        listed = await (await client.get("/api/chats")).json()
        assert [chat["title"] for chat in listed["chats"]] == ["Second?", "First?"]
        paged = await (await client.get("/api/chats?limit=1")).json()
        assert ([chat["title"] for chat in paged["chats"]], paged["next"]) == (["Second?"], 1)
        read = await (await client.get(f"/api/chats/{chat_id}")).json()
        assert [message["content"] for message in read["messages"]] == ["First?", ANSWER]
        assert read["turn_id"] is None
        renamed = await client.open("PATCH", f"/api/chats/{chat_id}", json={"title": " Backups "})
        assert (await renamed.json())["title"] == "Backups"
        empty = await client.open("PATCH", f"/api/chats/{chat_id}", json={"title": ""})
        assert (empty.status, (await empty.json())["error"]["code"]) == (422, "title_empty")
        assert (await client.open("DELETE", f"/api/chats/{chat_id}")).status == 204
        assert (await client.get(f"/api/chats/{chat_id}")).status == 404
        assert (await client.open("DELETE", f"/api/chats/{chat_id}")).status == 404
        assert (await client.get(f"/api/chats/{chat_id}/active")).status == 404

    in_app(app_of(settings, ScriptedModel([ANSWER])), test)


def test_deleting_a_chat_stops_its_turn_first(settings: Settings) -> None:
    """The watcher sees `stopped`; nothing of the turn is left behind, and nothing fails."""
    gate = Gate()

    async def test(client: Client) -> None:
        reply = await client.ask()
        await gate.reached()
        assert (await client.open("DELETE", f"/api/chats/{reply.headers['x-chat-id']}")).status == 204
        assert (await reply.all_frames())[-1].event == "stopped"

    in_app(app_of(settings, ScriptedModel(["Backups ", gate])), test)
    assert rows(settings, Message) == rows(settings, Turn) == rows(settings, Chat) == []
