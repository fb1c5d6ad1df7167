"""The model client's retries, and the content filter's place in the stream."""

import logging

import httpx2
import pytest

from app.catalog import load_catalog
from app.edge.errors import error_message
from app.rag.pieces import StreamPiece, ToolCallPiece
from app.upstream.client import Endpoint
from app.upstream.failures import failure_of_response
from tests.asking import ask, ask_filtered


@pytest.mark.parametrize(
    ("fault", "reason"), [("503-once", "http_5xx"), ("429-soon", "http_429"), ("reset-once", "connect")]
)
def test_a_failure_before_the_first_piece_is_tried_again(fault: str, reason: str) -> None:
    """S12: one retry piece that says what happens, then the answer."""
    outcome, server = ask(fault, retried=True, retry_max=2)
    assert (outcome.code, outcome.text()) == (None, "Hello")
    (retry,) = outcome.data("retry")
    assert {**retry, "delay_ms": 0} == {"attempt": 1, "max": 2, "delay_ms": 0, "reason": reason}
    assert 0 <= retry["delay_ms"] <= 4000
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("fault", "requests"),
    [("503", 3), ("408", 3), ("400", 1), ("401", 1), ("cut", 1), ("reset", 1), ("429-wait", 1), ("html", 1)],
)
def test_what_cannot_help_is_not_tried_again(fault: str, requests: int) -> None:
    """Three requests at most, one for a rejection, after a piece, or when the server wants a longer wait."""
    outcome, server = ask(fault, retried=True, retry_max=2)
    assert outcome.error is not None
    assert len(server.seen) == requests
    assert [retry["attempt"] for retry in outcome.data("retry")] == list(range(1, requests))


def test_a_long_wait_is_told_to_the_user() -> None:
    """Beyond 30 s the sentence says when to ask again."""
    outcome, _ = ask("429-wait", retried=True, retry_max=2)
    assert outcome.error is not None
    assert "ask again in 120 s" in error_message(load_catalog(), outcome.error)


def test_with_a_filter_a_leading_think_block_is_thinking() -> None:
    """Cut anywhere; the answer begins after it."""
    outcome, _ = ask_filtered("think")
    assert (outcome.text("thinking"), outcome.text()) == ("Hmm.", "\n\nYes.")


def test_with_a_filter_what_a_model_copied_of_an_inert_token_is_the_token() -> None:
    """The filter and a reader who copies it see what the document said; without a filter the text is the server's."""
    outcome, _ = ask_filtered("inert")
    assert (outcome.text("thinking"), outcome.text()) == ("Hm.", "Say [INST].")
    assert ask("inert")[0].text() == "<\u200bthink>Hm.<\u200b/think>Say [\u200b\u200bINST]."


def test_a_filter_is_flushed_before_the_tool_calls_and_when_a_reply_breaks_off() -> None:
    """Held text is shown: at the end of a reply, and as what arrived of a broken one."""
    outcome, _ = ask_filtered("tools")
    assert [type(p) for p in outcome.pieces] == [StreamPiece, ToolCallPiece, ToolCallPiece, StreamPiece]
    assert outcome.text() == "t"
    broken, _ = ask_filtered("cut")
    assert (broken.code, broken.text()) == ("llm_incomplete.cut", "half of")


def test_text_held_by_a_failed_attempt_never_leaks_into_the_next() -> None:
    """The reset attempt's held `a` is forgotten; the retry's text stands alone."""
    outcome, holding = ask_filtered("held-reset-once", retry_max=2)
    assert (outcome.code, outcome.text()) == (None, "Hello")
    assert holding.resets == 1


def test_each_strip_is_one_warning_up_to_a_hundred(caplog: pytest.LogCaptureFixture) -> None:
    """Logfmt with the span by repr; what is beyond is counted in one line."""
    caplog.set_level(logging.WARNING, "app.rag.llm")
    outcome, holding = ask_filtered("strips")
    assert outcome.text() == "ab"
    assert holding.stripped_chars == 120
    lines = [record.getMessage() for record in caplog.records if record.name == "app.rag.llm"]
    assert lines[0] == 'scaffolding_stripped turn=- pattern=x chars=1 terminated=1 span="x\'\\n"'
    assert len(lines) == 101
    assert lines[-1] == "scaffolding_stripped_more turn=- count=20"


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.0),
        ("17", 17.0),
        ("-3", 0.0),
        ("soon", None),
        ("", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_a_wait_is_read_from_a_number_or_a_date(header: str, told: float | None) -> None:
    """Retry-After in either form; nonsense is none."""
    response = httpx2.Response(503, headers={"retry-after": header}, content=b"")
    assert failure_of_response(response, Endpoint("http://h:1/v1")).retry_after == told


def test_a_redirect_to_nonsense_names_the_server_itself() -> None:
    """A target that is no address cannot be shown."""
    for location in ("http://[::1", "/login"):
        response = httpx2.Response(302, headers={"location": location}, content=b"")
        assert failure_of_response(response, Endpoint("http://h:1/v1")).params["target"] == "h:1"
