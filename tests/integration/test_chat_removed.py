"""Removing a chat while questions are still being asked in it."""

import asyncio
import logging
import time
from datetime import UTC, datetime

import pytest

from app.errors import NotFoundError
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database, Session
from app.store.models.setup import LOCAL_USER_ID
from tests.asgi import Client, in_app
from tests.integration.turn_life_kit import app_of, services_of
from tests.scripted import Gate, ScriptedModel


def test_no_turn_survives_the_chat_it_was_asked_in(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """A question that comes between the stop and the removal is stopped as well: nothing runs on in a chat that is
    gone, nobody's removal fails, and no write fails for want of the chat."""
    caplog.set_level(logging.WARNING)
    waiting = Gate()

    async def test(client: Client) -> None:
        for number in range(15):
            first = await client.ask()
            await first.until("start")
            chat = int(first.headers["x-chat-id"])
            removal = asyncio.create_task(client.open("DELETE", f"/api/chats/{chat}"))
            late: list[int] = []
            while not removal.done():
                key = f"late-{number}-{len(late)}"
                reply = await client.post("/api/chat", {"chat_id": chat, "message": "Again?", "client_key": key})
                late.append(reply.status)
            assert (await removal).status == 204
            assert set(late) <= {200, 404, 409}
            assert (await client.get(f"/api/chats/{chat}")).status == 404
            assert services_of(client).turns.active == 0
        waiting.open()

    in_app(app_of(settings, ScriptedModel(*[["Backups ", waiting] for _ in range(2000)])), test)
    assert [record.getMessage() for record in caplog.records] == []


NOW = datetime(2026, 3, 1, tzinfo=UTC)


def begun(database: Database, number: int, chat_id: int | None) -> turns.BegunTurn:
    new = turns.NewTurn(
        turn_id=f"t{number}",
        user_id=LOCAL_USER_ID,
        chat_id=chat_id,
        client_key=f"k{number}",
        question=f"Question {number}?",
        now=NOW,
        collections=None,
    )

    def work(session: Session) -> turns.BegunTurn:
        found = turns.begin_turn(session, new)
        turns.interrupt_turn(session, new.turn_id, NOW)
        return found

    return database.write(work)


def test_a_chat_of_any_length_can_be_removed(database: Database) -> None:
    """Twelve hundred messages, each the parent of the next, go at once; another chat's stay."""
    other = begun(database, 0, None)
    chat_id: int | None = None
    for number in range(1, 601):
        chat_id = begun(database, number, chat_id).chat_id
    assert chat_id is not None

    def removed(session: Session) -> float:
        """Seconds of the writer's own time: what else the machine does meanwhile is no part of it."""
        began = time.thread_time()
        chats.delete_chat(session, LOCAL_USER_ID, chat_id)
        return time.thread_time() - began

    assert database.write(removed) < 2
    with pytest.raises(NotFoundError):
        database.read(lambda session: chats.list_messages(session, LOCAL_USER_ID, chat_id))
    kept = database.read(lambda session: chats.list_messages(session, LOCAL_USER_ID, other.chat_id))
    assert [message.role for message in kept] == ["user", "assistant"]


def test_an_answer_that_ends_after_its_chat_was_removed_writes_nothing(settings: Settings) -> None:
    """The removal by another process: the turn ends in order, and the log of questions gets no row."""
    waiting = Gate()

    async def test(client: Client) -> None:
        reply = await client.ask()
        await reply.until("delta")
        chat_id = int(reply.headers["x-chat-id"])
        database = services_of(client).database
        await database.awrite(lambda session: chats.delete_chat(session, LOCAL_USER_ID, chat_id))
        waiting.open()
        assert (await reply.all_frames())[-1].event == "done"
        assert (await (await client.get("/api/queries")).json())["queries"] == []

    in_app(app_of(settings, ScriptedModel(["Backups ", waiting, "nightly."])), test)
