"""A question over HTTP, end to end but for model and library: frames, rows and the one log line."""

import logging

import pytest

from app.rag.pieces import StreamPiece
from app.search.hits import SearchFilters
from app.settings import Settings
from app.store.models.chats import Chat, Message, QueryLog, Turn
from tests.asgi import Client, in_app
from tests.integration.turn_kit import ANSWER, app_of, ask, fields, rows, turn_lines
from tests.scripted import ScriptedModel, ScriptedSearch, hit
from tests.sse import text_of


def test_a_grounded_answer_streams_with_its_sources(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Start, deltas, done; the frames, the rows and the line say the same."""
    caplog.set_level(logging.INFO, "app.chat")
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

    (line,) = turn_lines(caplog)
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


def test_fast_text_is_gathered_and_stays_whole(settings: Settings) -> None:
    """A thousand pieces at once become a handful of frames with the same text."""
    words = [f"word{n} " for n in range(1000)]
    frames, _ = ask(settings, *words)
    deltas = [frame for frame in frames if frame.event == "delta"]
    assert text_of(frames) == "".join(words) == rows(settings, Message)[1].content
    assert len(deltas) < 100
