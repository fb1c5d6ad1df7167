"""Settling and drafts in a real database: the table of ends, what a kill loses, the sweep at start."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.rag.turn import TurnStats
from app.store import chats, turns
from app.store.engine import Database
from app.store.models.chats import QueryLog
from app.store.models.setup import LOCAL_USER_ID
from app.turns import settle
from app.turns.drafts import DraftWriter
from app.turns.settle import Draft, Ending

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)


def begin(database: Database, turn_id: str = "t1") -> turns.BegunTurn:
    new = turns.NewTurn(turn_id, LOCAL_USER_ID, None, turn_id, "How often?", NOW)
    return database.write(lambda session: turns.begin_turn(session, new))


def stats_of(begun: turns.BegunTurn) -> TurnStats:
    return TurnStats(turn=begun.turn_id, chat=begun.chat_id, user=LOCAL_USER_ID, mode="grounded", chunks=3)


@pytest.mark.parametrize(
    ("end", "state", "status", "outcome", "code"),
    [
        ("answer", "done", "complete", "ok", None),
        ("malformed", "error", "error", "malformed", "malformed_reply"),
        ("failed", "error", "error", "error", "llm_timeout"),
        ("stopped", "stopped", "stopped", "stopped", None),
        ("interrupted", "interrupted", "interrupted", "interrupted", "interrupted"),
    ],
)
def test_each_end_has_its_states(
    database: Database, end: settle.End, state: str, status: str, outcome: str, code: str | None
) -> None:
    """Turn, message and outcome follow the contract's table; only an answer is in the log of questions."""
    begun = begin(database)
    stats, draft = stats_of(begun), Draft(begun.message_id, "Night", "hm", [{"n": 1}], [{"role": "user"}])
    query = settle.query_row(stats, draft, "How often?", [7], now=NOW, mode="grounded") if end == "answer" else None
    database.write(lambda s: settle.settle(s, Ending(end, code, query), stats, draft, now=NOW))
    turn = database.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1"))
    answer = database.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id))
    logged = database.read(lambda s: list(s.scalars(select(QueryLog))))
    assert (turn.state, turn.outcome, turn.error_code, turn.mode, stats.outcome) == (
        state,
        outcome,
        code,
        "grounded",
        outcome,
    )
    assert (turn.numbers or {})["chunks"] == 3
    assert turn.prompt == ({"role": "user"},)
    assert (answer.status, answer.error_code, answer.content, answer.thinking) == (status, code, "Night", "hm")
    assert answer.sources == ({"n": 1},)
    assert [row.question for row in logged] == (["How often?"] if end == "answer" else [])


def test_a_failing_log_of_questions_leaves_the_answer_unsettled(database: Database) -> None:
    """Answer and log row are one transaction: never one without the other."""
    begun = begin(database)
    stats, draft = stats_of(begun), Draft(begun.message_id, "Nightly.")
    query = settle.query_row(stats, draft, "How often?", [], now=NOW, mode="grounded")
    query = replace(query, user_id=99)
    with pytest.raises(Exception, match="FOREIGN KEY"):
        database.write(lambda s: settle.settle(s, Ending("answer", None, query), stats, draft, now=NOW))
    assert database.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1")).state == "running"
    assert database.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id)).status == "streaming"


def test_the_sweep_interrupts_what_a_kill_left_and_logs_what_is_known(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """The text stays, the line has `-` where only the dead process knew."""
    prompted, early = begin(database, "t1"), begin(database, "t2")
    numbers = {"model": "qwen3", "top_score": 0.7, "chunks": 4, "retrieval_ms": 12, "rounds": 0}
    marked = turns.Prompted("t1", "grounded", numbers, [], [{"n": 1}])
    database.write(lambda s: turns.mark_prompted(s, prompted.message_id, marked))
    database.write(lambda s: turns.save_drafts(s, [(prompted.message_id, "Half", "")]))
    with caplog.at_level(logging.INFO, "app.chat"):
        settle.sweep_at_start(database, NOW)
        settle.sweep_at_start(database, NOW)
    answer = database.read(lambda s: chats.get_message(s, LOCAL_USER_ID, prompted.message_id))
    assert (answer.status, answer.content, answer.sources) == ("interrupted", "Half", ({"n": 1},))
    assert [record.getMessage() for record in caplog.records] == [
        f"chat_turn turn=t1 chat={prompted.chat_id} user=1 mode=grounded outcome=interrupted model=qwen3 "
        "top_score=0.700 chunks=4 rounds=- tool_calls=- read_docs=- recovered=- guard=- cited=- dropped_cites=- "
        "thinking_chars=0 answer_chars=4 prompt_tokens=- retrieval_ms=12 first_ms=- total_ms=- retries=- "
        "scaffold_stripped=-",
        f"chat_turn turn=t2 chat={early.chat_id} user=1 mode=- outcome=interrupted model=- "
        "top_score=- chunks=- rounds=- tool_calls=- read_docs=- recovered=- guard=- cited=- dropped_cites=- "
        "thinking_chars=0 answer_chars=0 prompt_tokens=- retrieval_ms=- first_ms=- total_ms=- retries=- "
        "scaffold_stripped=-",
    ]


def test_drafts_are_written_once_per_change(database: Database) -> None:
    """Growing text reaches the database with the next beat; text that stands still costs nothing."""
    begun = begin(database)
    draft = Draft(begun.message_id)

    async def test() -> list[int]:
        writer = DraftWriter(database)
        with writer.keeping(draft):
            counts = [await writer.write()]
            draft.content = "Night"
            counts += [await writer.write(), await writer.write()]
            draft.thinking = "hm"
            counts.append(await writer.write())
            draft.prompted = turns.Prompted("t1", "grounded", {"chunks": 1}, [], [{"n": 1}])
            counts += [await writer.write(), await writer.write()]
        counts.append(await writer.write())
        return counts

    assert asyncio.run(test()) == [0, 1, 0, 1, 1, 0, 0]
    answer = database.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id))
    assert (answer.content, answer.thinking, answer.status) == ("Night", "hm", "streaming")
    assert answer.sources == ({"n": 1},)
    assert database.read(lambda s: turns.get_turn(s, LOCAL_USER_ID, "t1")).mode == "grounded"


def test_drafts_go_on_after_a_write_that_failed(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """A full disk for a moment costs a beat, not the rest of the answer."""
    begun = begin(database)
    draft = Draft(begun.message_id, "Night")

    class FailsOnce(Database):
        def __init__(self) -> None:
            super().__init__(database.url)
            self.failures = 1

        async def awrite(self, work):  # type: ignore[no-untyped-def]
            if self.failures:
                self.failures -= 1
                raise OperationalError("UPDATE messages", {}, Exception("disk I/O error"))
            await super().awrite(work)
            written.set()

    flaky, written = FailsOnce(), asyncio.Event()

    async def test() -> None:
        writer = DraftWriter(flaky, beat_s=0.01)
        with writer.keeping(draft):
            task = asyncio.create_task(writer.run())
            await asyncio.wait_for(written.wait(), 10)
            task.cancel()

    asyncio.run(test())
    flaky.close()
    assert "drafts_not_written error=OperationalError" in caplog.text
    assert database.read(lambda s: chats.get_message(s, LOCAL_USER_ID, begun.message_id)).content == "Night"
