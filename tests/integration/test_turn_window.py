"""A turn packs for the window its server has, says what did not fit, and notices a prompt that was cut."""

import asyncio
import html
import json
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store.models.chats import Turn
from tests.asgi import Client, in_app
from tests.integration.turn_kit import rows
from tests.route_server import CHAT, LLAMA_CPP, OLLAMA, VLLM, Answer, listing, routes
from tests.scripted import ScriptedModel, ScriptedSearch, hit
from tests.sse import Frame

WORDS = "The backup of every volume starts at two in the morning and is kept for thirty days. " * 18
HITS = [hit(n, text=f"Volume {n}. {WORDS}", char_end=40 + len(WORDS) + 12) for n in range(1, 13)]


def says(prompt_tokens: int | None, text: str = "Every night [1].") -> Answer:
    """A streamed answer of a server that counted so many tokens."""
    events: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 3}},
    ]
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Answer(f"{lines}data: [DONE]\n\n".encode(), kind="text/event-stream")


def asked(
    settings: Settings, table: Mapping[str, Answer], *, questions: int = 1, hits: Any = HITS, **changes: Any
) -> list[list[Frame]]:
    """The frames of so many questions in one chat, one after the other, with a model server of fixed answers."""
    turns: list[list[Frame]] = []
    with routes(table) as server:
        values = {"llm_base_url": f"{server.url}/v1", "llm_retry_max": 0, "agent_enabled": False, **changes}
        app = create_app(settings.model_copy(update=values), searcher=ScriptedSearch(*hits))

        async def test(client: Client) -> None:
            chat: dict[str, Any] = {}
            for _ in range(questions):
                frames = await (await client.ask("How often are backups of volumes made?", **chat)).all_frames()
                turns.append(frames)
                chat = {"chat_id": frames[0].data["chat_id"]}
                await asyncio.gather(*[task for task in asyncio.all_tasks() if task.get_name() == "window"])

        in_app(app, test)
    return turns


def notices(frames: list[Frame]) -> dict[str, str]:
    return {frame.data["code"]: frame.data["message"] for frame in frames if frame.event == "notice"}


def numbers_of(settings: Settings) -> list[dict[str, Any]]:
    """What each turn recorded, in order."""
    return [turn.numbers for turn in sorted(rows(settings, Turn), key=lambda turn: turn.started_at)]


def pages(settings: Settings, frames: list[Frame]) -> tuple[str, str]:
    """The words of the chat's page and of the receipt."""
    start = frames[0].data
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        texts = [client.get(path).text for path in (f"/chats/{start['chat_id']}", f"/turns/{start['turn_id']}")]
    return html.unescape(texts[0]), html.unescape(texts[1])


@pytest.mark.parametrize(
    ("table", "model", "window"),
    [
        ({**OLLAMA, "GET /api/ps": Answer({"models": [{"name": "qwen3:8b", "context_length": 5000}]})}, None, 5000),
        ({**LLAMA_CPP, "GET /props": Answer({"default_generation_settings": {"n_ctx": 3000}})}, None, 3000),
        ({**VLLM, "GET /v1/models": listing("org/model", owned_by="vllm", max_model_len=4000)}, "org/model", 4000),
    ],
)
def test_the_prompt_fits_what_the_server_runs_with(
    settings: Settings, table: dict[str, Answer], model: str | None, window: int
) -> None:
    """Also the very first one. How many of the passages fit stands in notice, line and receipt, with what was found."""
    ((start, *frames),) = asked(settings, {**table, CHAT: says(None)}, llm_model=model)
    given = len(start.data["sources"])
    assert 0 < given < 12
    assert notices(frames)["context_trimmed"].startswith(f"{given} of 12 passages fit")
    (numbers,) = numbers_of(settings)
    assert (numbers["window"], numbers["window_source"], numbers["taken"]) == (window, "server", given)
    assert numbers["estimated_tokens"] <= numbers["prompt_room"] < window
    page, receipt = pages(settings, [start])
    assert f"{given} of 12 passages fit, 1 cited" in page
    assert f"{given} of 12 passages fit the model's window" in receipt
    assert "The window is what the server says it runs with." in receipt


def test_everything_fits_a_large_window_and_nothing_is_said(settings: Settings) -> None:
    """A notice is for what is missing."""
    props = Answer({"default_generation_settings": {"n_ctx": 32768}})
    (frames,) = asked(settings, {**LLAMA_CPP, "GET /props": props, CHAT: says(None)})
    assert len(frames[0].data["sources"]) == 12
    assert notices(frames) == {}


def test_a_cut_is_told_with_what_to_change_and_the_next_prompt_is_smaller(settings: Settings) -> None:
    """A server that says nothing of its window reads 2,048 of about 7,000 tokens: the next question fits into that."""
    first, second = asked(settings, {"GET /v1/models": listing("m"), CHAT: says(2048)}, questions=2)
    cut = notices(first)["prompt_cut"]
    assert cut.startswith("The server read 2,048 of about ")
    assert "LLM_CONTEXT_TOKENS" in cut
    assert [frame.event for frame in first].index("notice") < len(first) - 1
    assert first[-1].event == "done"
    one, two = numbers_of(settings)
    assert one["cut"]["read"] == 2048
    assert (two["window"], two["window_source"]) == (2048, "learned")
    assert "prompt_cut" not in notices(second)
    assert len(second[0].data["sources"]) < len(first[0].data["sources"])
    page, receipt = pages(settings, first)
    assert cut in page
    assert cut in receipt


def test_ollama_is_told_apart_and_its_own_word_replaces_what_it_kept(settings: Settings) -> None:
    """It keeps half of its window of a prompt that is too long; the setting said that it had more. Whether its word is
    there when the first answer ends is a matter of milliseconds."""
    table = {**OLLAMA, CHAT: says(4098)}
    long = [hit(n, text=WORDS * 2, char_end=40 + 2 * len(WORDS)) for n in range(1, 13)]
    turns = asked(settings, table, questions=3, hits=long, llm_model="qwen3:8b", llm_context_tokens=16384)
    numbers = numbers_of(settings)
    assert numbers[0]["cut"]["read"] == 4098
    assert (numbers[0]["window"], numbers[0]["window_source"]) == (16384, "setting")
    assert (numbers[1]["window"], numbers[1]["window_source"]) == (8192, "learned")
    told = next(at for at, row in enumerate(numbers) if "cut" in row and row["server"])
    assert notices(turns[told])["prompt_cut"].startswith("Ollama read 4,098 of about ")
    assert "num_ctx" in notices(turns[told])["prompt_cut"]
    if told == 0:
        assert "The server says 8,192." in pages(settings, turns[0])[1]


def test_dense_text_makes_the_next_prompt_smaller(settings: Settings) -> None:
    """The model counts half as many tokens again as estimated, so the room is two thirds."""
    first, second = asked(settings, {"GET /v1/models": listing("m"), CHAT: says(10_500)}, questions=2)
    assert len(second[0].data["sources"]) < len(first[0].data["sources"])
    assert "prompt_cut" not in notices(first)


def test_a_refused_prompt_is_repacked_told_and_asks_for_the_window_again(settings: Settings) -> None:
    """The server was started anew with less; the sentence has the numbers of the second prompt."""
    refusal = Answer({"error": {"message": "exceeds the available context size", "type": "exceed_context_size_error"}})
    table = {**LLAMA_CPP, CHAT: Answer(refusal.body, 400)}
    with routes(table) as server:
        values = {"llm_base_url": f"{server.url}/v1", "llm_model": "m", "agent_enabled": False}
        app = create_app(settings.model_copy(update=values), searcher=ScriptedSearch(*HITS[:4]))

        async def test(client: Client) -> None:
            frames = await (await client.ask()).all_frames()
            assert notices(frames)["context_trimmed"].startswith("2 of 4 passages fit")
            assert frames[-1].data["code"] == "llm_rejected"
            await asyncio.gather(*[task for task in asyncio.all_tasks() if task.get_name() == "window"])

        in_app(app, test)
    assert len(server.asked("GET /props")) >= 2
    assert len(server.asked(CHAT)) == 2


def test_a_server_that_is_gone_is_asked_anew(settings: Settings) -> None:
    """Another one may come up in its place."""
    table = {**LLAMA_CPP, CHAT: Answer({"error": {"message": "down"}}, 503)}
    with routes(table) as server:
        values = {"llm_base_url": f"{server.url}/v1", "llm_model": "m", "llm_retry_max": 0}
        app = create_app(settings.model_copy(update=values), searcher=ScriptedSearch(*HITS[:1]))

        async def test(client: Client) -> None:
            for _ in range(2):
                frames = await (await client.ask()).all_frames()
                assert frames[-1].data["code"] == "llm_unavailable"

        in_app(app, test)
    assert len(server.asked("GET /props")) >= 2


def test_how_much_of_the_talk_fits_is_told(settings: Settings) -> None:
    """Long answers push the first questions out."""
    small = settings.model_copy(update={"llm_context_tokens": 2048, "llm_max_tokens": 200})
    app = create_app(
        small,
        chat_for=ScriptedModel([" ".join(f"w{n}" for n in range(250)) + " [1]."]),
        searcher=ScriptedSearch(hit(1)),
    )
    turns: list[list[Frame]] = []

    async def test(client: Client) -> None:
        chat: dict[str, Any] = {}
        for _ in range(4):
            turns.append(await (await client.ask(**chat)).all_frames())
            chat = {"chat_id": turns[0][0].data["chat_id"]}

    in_app(app, test)
    assert [bool(notices(frames)) for frames in turns] == [False, False, True, True]
    assert notices(turns[2]) == {"context_trimmed": "Of this chat's 2 earlier turns, the last one fits."}
    assert notices(turns[3]) == {"context_trimmed": "Of this chat's 3 earlier turns, the last one fits."}
    page, receipt = pages(settings, turns[3])
    assert "1 passage given, 1 cited · last turn of 3" in page
    assert "Of this chat's 3 earlier turns, the last one fits." in receipt


def test_neighbours_given_as_one_count_each(settings: Settings) -> None:
    """Six that follow each other and six that don't: the denominator is what was found."""
    text = WORDS[:600]
    near = [
        hit(1, chunk_id=n, text=text, char_start=n * 601, char_end=n * 601 + 600, line_start=n * 2, line_end=n * 2 + 1)
        for n in range(6)
    ]
    far = [hit(n, text=WORDS, char_end=40 + len(WORDS)) for n in range(2, 8)]
    small = settings.model_copy(update={"llm_context_tokens": 3200})
    app = create_app(small, chat_for=ScriptedModel(["Yes [1]."]), searcher=ScriptedSearch(*near, *far))
    found: list[Frame] = []

    async def test(client: Client) -> None:
        found.extend(await (await client.ask()).all_frames())

    in_app(app, test)
    (numbers,) = numbers_of(settings)
    assert numbers["given"] == len(found[0].data["sources"]) == numbers["taken"] - 5
    assert numbers["taken"] + len(numbers["dropped"]) == 12
    assert f"{numbers['taken']} of 12 passages fit" in pages(settings, found)[0]


def test_a_connection_test_has_the_window_asked_again(settings: Settings) -> None:
    """Whoever changed the server tests it; the next turn knows."""
    with routes({**LLAMA_CPP, CHAT: says(None)}) as server:
        values = {"llm_base_url": f"{server.url}/v1", "llm_model": "m"}
        app = create_app(settings.model_copy(update=values), searcher=ScriptedSearch(*HITS[:1]))
        asked_before: list[int] = []

        async def test(client: Client) -> None:
            await (await client.ask()).all_frames()
            asked_before.append(len(server.asked("GET /props")))
            assert (await (await client.post("/api/settings/test", {})).json())["ok"] is True
            asked_before.append(len(server.asked("GET /props")))
            await (await client.ask()).all_frames()

        in_app(app, test)
    assert asked_before[1] == asked_before[0] + 1
    assert len(server.asked("GET /props")) > asked_before[1]
