"""Questions that are refused, doubled or raced, and the life of a chat over HTTP."""

import asyncio
from typing import Any

import pytest

from app.api.chat import ChatBody
from app.settings import Settings
from app.store.models.chats import Chat, Message, Turn
from tests.asgi import Client, in_app
from tests.integration.turn_kit import ANSWER, app_of, ask, rows
from tests.scripted import Gate, ScriptedModel


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
