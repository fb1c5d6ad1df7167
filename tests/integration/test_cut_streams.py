"""A recorded exchange with a real model server, cut after every byte: never a hung turn, never half an answer as whole.

The exchange is what llama.cpp's server sent for a short question, without three of its tokens. Every 16th byte is
tried; all of them with `DOCENT_LONG=1`.
"""

import os
from pathlib import Path

import pytest

from app.settings import Settings
from tests.fault_catalogue import Case
from tests.fault_server import Fault, Reply
from tests.integration.fault_ends import LIMIT_S, play_all

EXCHANGE = (Path(__file__).parents[1] / "fixtures" / "llamacpp_reply.http").read_bytes()
LONG = bool(os.environ.get("DOCENT_LONG"))
STEP, PARTS = (1, 10) if LONG else (16, 1)
WORDS = ("The", " capital", " Paris", ".")
FINISH = b'"finish_reason":"length"'


def cut_after(size: int) -> Fault:
    """The exchange's first bytes, then the end of the connection."""

    async def run(reply: Reply) -> None:
        await reply.raw(EXCHANGE[:size])
        reply.close()

    return run


def line_end(of: bytes) -> int:
    """Where the line with these bytes has arrived whole."""
    return EXCHANGE.index(b"\n", EXCHANGE.index(of)) + 1


def expected(size: int) -> Case:
    """What a turn has to make of the exchange's first bytes: the words whose lines are whole, an answer only when the
    finish reason's line is."""
    said = "".join(word for word in WORDS if size >= line_end(f'"content":"{word}"'.encode()))
    if size >= line_end(FINISH):
        end = "ok"
    else:
        end = "llm_incomplete.cut" if said or body_ended(size) else "llm_unavailable.reset"
    return Case(cut_after(size), end, said, 1, endpoint={"retry_max": 0})


def body_ended(size: int) -> bool:
    """Whether the reply was closed properly, its last chunk included."""
    return size >= len(EXCHANGE)


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("part", range(PARTS))
def test_an_exchange_cut_at_any_byte_ends_the_turn_with_the_text_that_came(
    settings: Settings, caplog: pytest.LogCaptureFixture, part: int
) -> None:
    """G4: the words that had arrived are kept; without a finish reason the turn is an error."""
    sizes = sorted({*range(0, len(EXCHANGE), STEP), line_end(FINISH) - 1, line_end(FINISH), len(EXCHANGE)})
    named = [(f"{size} bytes", expected(size)) for size in sizes]
    assert {case.end for _, case in named} == {"ok", "llm_incomplete.cut", "llm_unavailable.reset"}
    assert play_all(settings, caplog, named[part::PARTS], "first", again=False) == []
