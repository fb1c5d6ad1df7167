"""What can go wrong in a turn, and what a reader should know: frames, sentences, rows."""

import logging
from typing import Any

import pytest

from app.catalog import load_catalog
from app.rag.errors import LLMError, MalformedReplyError
from app.rag.pieces import StreamPiece
from app.rag.prompts import NO_ANSWER_SENTENCE
from app.search.errors import EmbedError
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database
from app.store.models.chats import Message, QueryLog, Turn
from app.store.models.setup import LOCAL_USER_ID
from app.web.chat_view import turn_views
from tests.asgi import Client, in_app
from tests.integration.turn_kit import ANSWER, app_of, ask, fields, rows, turn_lines
from tests.scripted import ScriptedModel, ScriptedSearch, hit, usage
from tests.sse import text_of


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
    settings: Settings, caplog: pytest.LogCaptureFixture, error: Exception, code: str, outcome: str, retryable: bool
) -> None:
    """One error frame with a sentence, no done, no row among the questions, one line; what had arrived stays."""
    caplog.set_level(logging.INFO, "app.chat")
    frames, _ = ask(settings, "Backups are made ", error)
    last = frames[-1]
    assert (last.event, last.data["code"], last.data["retryable"]) == ("error", code, retryable)
    assert [frame.event for frame in frames].count("done") == 0
    assert "secret" not in str(last.data)
    answer = rows(settings, Message)[1]
    assert (answer.content, answer.status, answer.error_code) == ("Backups are made ", "error", code)
    assert answer.sources[0]["path"] == "manual-1.md"
    assert rows(settings, Turn)[0].state == "error"
    assert problem_on_page(settings) == last.data["message"]
    assert rows(settings, QueryLog) == []
    (line,) = turn_lines(caplog)
    assert fields(line)["outcome"] == outcome


def problem_on_page(settings: Settings) -> str | None:
    """The sentence that the chat's page shows for its only turn, once it is loaded anew."""
    database = Database(settings.database)
    try:
        chat_id = rows(settings, Turn)[0].chat_id or 0
        messages = database.read(lambda session: chats.list_messages(session, LOCAL_USER_ID, chat_id))
        listed = database.read(lambda session: turns.list_turns(session, LOCAL_USER_ID, chat_id))
    finally:
        database.close()
    return turn_views(load_catalog(), messages, listed)[0].problem


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


def test_a_search_that_fails_ends_the_turn_before_it_starts(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """No start frame: the turn ended before retrieval was over."""
    caplog.set_level(logging.INFO, "app.chat")
    frames, _ = ask(settings, ANSWER, search=ScriptedSearch(error=EmbedError()))
    assert [(frame.event, frame.data["code"]) for frame in frames] == [("error", "retrieval_failed")]
    (line,) = turn_lines(caplog)
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
    assert (numbers["searched"], numbers["min_score"]) == ("How often?", 0.35)


def test_retries_are_shown_and_counted(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """A retry frame per retry, and the number in done and line."""
    caplog.set_level(logging.INFO, "app.chat")
    retry = StreamPiece("retry", data={"attempt": 1, "max": 2, "delay_ms": 500, "reason": "connect"})
    frames, _ = ask(settings, retry, ANSWER)
    assert frames[1].data == {"attempt": 1, "max": 2, "delay_ms": 500, "reason": "connect"}
    assert frames[-1].data["retries"] == 1
    (line,) = turn_lines(caplog)
    assert fields(line)["retries"] == "1"


def test_what_is_no_character_is_replaced_in_stream_and_row_alike(settings: Settings) -> None:
    """A lone surrogate can't be stored; both sides show the same instead."""
    frames, _ = ask(settings, "a\ud800b\x00c\u2028[1]")
    assert text_of(frames) == "a?b\x00c\u2028[1]" == rows(settings, Message)[1].content
