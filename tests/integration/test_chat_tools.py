"""A turn with tools over a real library: rounds, frames, sources, what is stored, and the line."""

import json
import logging
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI

from app.main import create_app
from app.rag.pieces import ToolCallPiece
from app.rag.toolbox import DEFINITIONS
from app.settings import Settings
from app.store.models import Message, QueryLog, Turn
from tests.asgi import Client, in_app
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import IngestLibrary
from tests.integration.turn_kit import fields, rows, turn_lines
from tests.scripted import ScriptedModel, Step
from tests.sse import Frame

RAID = "# RAID\n\nA rebuild of the array takes nine hours.\n"
SCRUB = "# Scrub\n\n" + "A scrub runs every Sunday at four.\n" * 3
QUESTION = "How long does a rebuild of the array take?"


@pytest.fixture
def library(settings: Settings) -> Settings:
    """Two documents that can be found, and a model server in the settings."""
    with IngestLibrary(settings, embedder=WordEmbedder()).start() as made:
        made.add_all({"raid.md": RAID, "scrub.md": SCRUB})
        made.settle()
    return settings.model_copy(update={"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m"})


def call(name: str, identity: str = "c1", **arguments: Any) -> ToolCallPiece:
    return ToolCallPiece(0, identity, name, json.dumps(arguments))


class Asked:
    """One question to a scripted model over the library."""

    def __init__(self, settings: Settings, *scripts: list[Step], question: str = QUESTION) -> None:
        self.model = ScriptedModel(*scripts)
        self.frames: list[Frame] = []
        app: FastAPI = create_app(settings, chat_for=self.model, embedder=WordEmbedder())

        async def test(client: Client) -> None:
            reply = await client.ask(question, client_key=uuid4().hex)
            self.frames = await reply.all_frames()

        in_app(app, test)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [frame.data for frame in self.frames if frame.event == event]

    def turn(self, settings: Settings) -> Turn:
        """Its row."""
        (identity,) = [data["turn_id"] for data in self.named("start")]
        return next(turn for turn in rows(settings, Turn) if turn.id == identity)

    @property
    def end(self) -> Frame:
        return self.frames[-1]


def test_a_document_that_was_read_can_be_cited(library: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Its passage gets the next number; the marker is checked, linked and stored like any other."""
    caplog.set_level(logging.INFO)
    first = Asked(library, ["x"]).named("start")[0]["sources"]
    n = len(first) + 1
    answer = f"A scrub runs every Sunday at four [{n}]."
    asked = Asked(library, [call("read", path="/library/scrub.md", offset=3, limit=2)], [answer])
    start, end = asked.named("tool")
    assert (start["status"], end["status"], start["id"]) == ("start", "ok", end["id"])
    assert start["args"] == {"path": "/library/scrub.md", "offset": 3, "limit": 2}
    assert [(source["n"], source["path"]) for source in end["sources"]] == [(n, "scrub.md")]
    assert "Sunday" not in json.dumps([start, end])
    (cited,) = [source for source in asked.end.data["sources"] if source["cited"]]
    assert (cited["n"], cited["path"]) == (n, "scrub.md")
    assert "every Sunday at four" in cited["quote"]
    assert [document["path"] for document in asked.end.data["read_docs"]] == ["scrub.md"]
    line = fields(turn_lines(caplog)[-1])
    assert (line["rounds"], line["tool_calls"], line["read_docs"], line["cited"]) == ("2", "1", "1", "1")
    turn, message, query = asked.turn(library), rows(library, Message)[-1], rows(library, QueryLog)[-1]
    (step,) = turn.numbers["tools"]
    assert step == {key: end[key] for key in ("id", "name", "args", "status", "summary", "ms")} | {
        "at_ms": step["at_ms"]
    }
    assert [sent["role"] for sent in turn.prompt] == ["system", "user", "assistant", "tool"]
    assert message.sources == asked.end.data["sources"]
    assert (query.tool_calls, query.rounds, len(query.read_docs)) == (1, 2, 1)
    assert query.chunk_ids == list(dict.fromkeys(source["chunk_id"] for source in message.sources))
    assert len(message.sources) == n


def test_every_tool_answers_over_the_library(library: Settings) -> None:
    """Each once, in one turn; none of them fails."""
    calls: list[Step] = [
        call("ls", "c1"),
        call("find", "c2", pattern="*.md"),
        call("grep", "c3", pattern="Sunday"),
        call("search", "c4", query="scrub"),
        call("read", "c5", path="raid.md"),
    ]
    asked = Asked(library, calls, ["So."])
    ended = [step for step in asked.named("tool") if step["status"] != "start"]
    assert [(step["name"], step["status"]) for step in ended] == [
        (name, "ok") for name in ("ls", "find", "grep", "search", "read")
    ]
    results = [message["content"] for message in asked.model.requests[1] if message["role"] == "tool"]
    for result, expected in zip(results, ("/library", "raid.md", "Sunday", "passage 2", "passage 1"), strict=True):
        assert expected in result


def test_what_goes_wrong_with_a_call_is_its_result(library: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Broken JSON, an unknown tool, a path outside: the turn goes on, nothing leaks, one line."""
    caplog.set_level(logging.INFO)
    calls: list[Step] = [
        ToolCallPiece(0, "c1", "read", '{"path": "raid'),
        call("delete_everything", "c2"),
        call("read", "c3", path="/etc/passwd"),
        call("grep", "c4", pattern="(a+)+$"),
    ]
    asked = Asked(library, calls, ["Nine hours [1]."])
    ended = [step for step in asked.named("tool") if step["status"] != "start"]
    assert [step["status"] for step in ended] == ["error", "error", "error", "ok"]
    assert all(step["summary"] for step in ended)
    assert asked.end.event == "done"
    assert len(turn_lines(caplog)) == 1


def test_a_deflected_turn_and_one_without_the_agent_are_offered_no_tools(library: Settings) -> None:
    """Nor is one without a model server."""
    deflected = Asked(library, ["No."], question="zebra xylophone quixotic")
    assert deflected.named("start")[0]["mode"] == "deflected"
    off = Asked(library.model_copy(update={"agent_enabled": False}), ["Nine hours [1]."])
    alone = Asked(library.model_copy(update={"llm_base_url": None}), ["Nine hours [1]."])
    assert [asked.model.tools for asked in (deflected, off, alone)] == [[None], [None], [None]]
    assert "with the tools" not in off.model.requests[0][0]["content"]


def test_a_turn_is_offered_the_five_tools_and_no_more_rounds_than_set(library: Settings) -> None:
    """A model that calls for ever is made to answer."""
    scripts: list[list[Step]] = [[call("ls", path="/library")]] * 2
    asked = Asked(library.model_copy(update={"agent_max_rounds": 2}), *scripts, ["Nine hours [1]."])
    assert asked.model.tools == [DEFINITIONS, DEFINITIONS, None]
    assert asked.end.event == "done"


def test_a_failure_after_tools_keeps_their_rows(library: Settings) -> None:
    """What was read, and what was said before, is there after a reload."""
    asked = Asked(library, ["I will look.", call("read", path="scrub.md")], [call("ls")], [" "], [" "])
    assert (asked.end.event, asked.end.data["code"]) == ("error", "malformed_reply")
    turn, message = asked.turn(library), rows(library, Message)[-1]
    assert [step["name"] for step in turn.numbers["tools"]] == ["read", "ls"]
    assert message.content == "I will look."
    assert message.sources[-1]["path"] == "scrub.md"
