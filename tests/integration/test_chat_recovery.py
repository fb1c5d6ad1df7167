"""Leaked tool syntax over the whole way: a real model server, the client, the agent, frames, rows and the line."""

import logging

import pytest

from app.main import create_app
from app.rag.prompts import CORRECTION_LINE
from app.settings import Settings
from app.store.models.chats import Message, QueryLog
from tests.asgi import Client, in_app
from tests.e2e.mock_llm import MockLlm
from tests.e2e.mock_scaffolding import LEAK
from tests.integration.turn_kit import fields, rows, turn_lines
from tests.scripted import ScriptedSearch, hit
from tests.sse import Frame, text_of

GROUNDED = ScriptedSearch(hit(1), hit(2, score=0.5))
DEFLECTED = ScriptedSearch(hit(1, score=0.1))


def ask(settings: Settings, mock: MockLlm, search: ScriptedSearch, message: str) -> list[Frame]:
    """One question to a Docent that is connected to the mock."""
    frames: list[Frame] = []
    connected = settings.model_copy(update={"llm_base_url": mock.base_url, "llm_model": "mock-model"})

    async def test(client: Client) -> None:
        reply = await client.ask(message)
        frames.extend(await reply.all_frames())

    in_app(create_app(connected, searcher=search), test)
    return frames


@pytest.mark.parametrize(("search", "mode"), [(GROUNDED, "grounded"), (DEFLECTED, "deflected")])
def test_one_recovery_gives_a_clean_answer(
    settings: Settings, caplog: pytest.LogCaptureFixture, search: ScriptedSearch, mode: str
) -> None:
    """The done frame says so, the line counts what was removed, the log quotes it, the correction is in one place."""
    caplog.set_level(logging.INFO)
    with MockLlm() as mock:
        frames = ask(settings, mock, search, "e2e-scaffold-once How often?")
        first, second = mock.requests
    assert frames[-1].event == "done"
    assert frames[-1].data["recovered"] is True
    assert "tool_call" not in "".join(str(frame.data) for frame in frames)
    (line,) = turn_lines(caplog)
    assert line.endswith(f"retries=0 scaffold_stripped={len(LEAK)}")
    assert {key: fields(line)[key] for key in ("mode", "outcome", "rounds", "recovered")} == {
        "mode": mode,
        "outcome": "ok",
        "rounds": "2",
        "recovered": "1",
    }
    assert CORRECTION_LINE not in str(first.body)
    assert str(second.body).count(CORRECTION_LINE) == 1
    (strip,) = [text for record in caplog.records if (text := record.getMessage()).startswith("scaffolding_stripped ")]
    assert f"pattern=lfm2_call chars={len(LEAK)} terminated=1" in strip
    (kept,) = [row.content for row in rows(settings, Message) if row.role == "assistant"]
    assert "tool_call" not in kept
    assert rows(settings, QueryLog)[0].recovered is True


@pytest.mark.parametrize("search", [GROUNDED, DEFLECTED], ids=["grounded", "deflected"])
def test_a_second_leak_is_the_dedicated_error(
    settings: Settings, caplog: pytest.LogCaptureFixture, search: ScriptedSearch
) -> None:
    """No delta, no done, no row among the questions, one line that counts both requests."""
    caplog.set_level(logging.INFO, "app.chat")
    with MockLlm() as mock:
        frames = ask(settings, mock, search, "e2e-scaffold-twice How often?")
        assert len(mock.requests) == 2
    assert [frame.event for frame in frames] == ["start", "error"]
    assert frames[-1].data["code"] == "malformed_reply"
    assert frames[-1].data["message"] == "The model returned a malformed reply — please try again."
    assert rows(settings, QueryLog) == []
    (line,) = turn_lines(caplog)
    assert fields(line)["outcome"] == "malformed"
    assert line.endswith(f"scaffold_stripped={2 * len(LEAK)}")


@pytest.mark.parametrize(
    ("trigger", "left"),
    [
        ("e2e-scaffold-mixed", "Before the call.  After the call."),
        ("e2e-scaffold-split", "Split  apart."),
        ("e2e-scaffold-open", "Cut off: "),
    ],
)
def test_the_text_around_a_call_is_the_answer(settings: Settings, trigger: str, left: str) -> None:
    """No recovery: there is something to read."""
    with MockLlm() as mock:
        frames = ask(settings, mock, GROUNDED, f"{trigger} How often?")
        assert len(mock.requests) == 1
    assert text_of(frames) == left
    assert frames[-1].event == "done"


def test_a_clean_turn_strips_nothing(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """The field is uniform."""
    caplog.set_level(logging.INFO, "app.chat")
    with MockLlm() as mock:
        ask(settings, mock, GROUNDED, "How often?")
    (line,) = turn_lines(caplog)
    assert line.endswith("retries=0 scaffold_stripped=0")
