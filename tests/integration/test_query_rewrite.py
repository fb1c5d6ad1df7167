"""QUERY_REWRITE: what a follow-up is searched as, and what of it is shown."""

import html
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.rag.errors import LLMError
from app.search.hits import Hit, SearchFilters
from app.settings import Settings
from app.store.models.chats import Turn
from tests.asgi import Client, in_app
from tests.integration.turn_kit import rows
from tests.scripted import ScriptedModel, ScriptedSearch, Step, hit
from tests.sse import Frame

FIRST, NEXT = "How often are backups made?", "And on Sundays?"
WORDED = "How often are backups made on Sundays?"
NOWHERE = "http://127.0.0.1:9/v1"


class FindsOnly(ScriptedSearch):
    """Finds something close only for what holds one of the words."""

    def __init__(self, *words: str) -> None:
        super().__init__(hit(1))
        self.words = words

    def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
        found = super().search(query, user_id=user_id, k=k, filters=filters)
        return found if any(word in query for word in self.words) else [hit(1, score=0.1)]


def talked(settings: Settings, model: ScriptedModel, search: ScriptedSearch, **changes: Any) -> list[list[Frame]]:
    """The frames of the question and of its follow-up."""
    app = create_app(settings.model_copy(update=changes), chat_for=model, searcher=search)
    turns: list[list[Frame]] = []

    async def test(client: Client) -> None:
        turns.append(await (await client.ask(FIRST)).all_frames())
        turns.append(await (await client.ask(NEXT, chat_id=turns[0][0].data["chat_id"])).all_frames())

    in_app(app, test)
    return turns


def numbers_of(settings: Settings) -> dict[str, Any]:
    """What the follow-up recorded."""
    return max(rows(settings, Turn), key=lambda turn: turn.started_at).numbers


def model(*wording: Step) -> ScriptedModel:
    return ScriptedModel(["Nightly [1]."], wording, ["On Sundays, too [1]."])


def test_the_model_words_a_follow_up_and_the_receipt_says_so(settings: Settings) -> None:
    """One request more, before the search; the answer is asked for with what was typed. It is no round of the turn."""
    search, asked = ScriptedSearch(hit(1)), model(WORDED)
    turns = talked(settings, asked, search, query_rewrite="model", llm_base_url=NOWHERE, llm_model="m")
    assert [query for query, *_ in search.asked] == [FIRST, WORDED]
    assert len(asked.requests) == 3
    assert asked.requests[2][-1]["content"] == NEXT
    numbers = numbers_of(settings)
    assert (numbers["searched"], numbers["rewrite"], numbers["rounds"]) == (WORDED, "model", 1)
    assert turns[1][-1].event == "done"
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        start = turns[1][0].data
        receipt = html.unescape(client.get(f"/turns/{start['turn_id']}").text)
        page = html.unescape(client.get(f"/chats/{start['chat_id']}").text)
    assert f"<code>{WORDED}</code> worded by the model in " in receipt
    assert f"“{WORDED}”" in page


@pytest.mark.parametrize("wording", [(LLMError("llm_unavailable"),), ("",), ("Two\nlines",)])
def test_a_wording_that_can_not_be_used_leaves_it_to_the_rules(settings: Settings, wording: tuple[Step, ...]) -> None:
    """And nothing of it shows."""
    search = ScriptedSearch(hit(1))
    turns = talked(settings, model(*wording), search, query_rewrite="model", llm_base_url=NOWHERE, llm_model="m")
    assert [query for query, *_ in search.asked] == [FIRST, f"{FIRST} {NEXT}"]
    assert numbers_of(settings)["rewrite"] == "rules"
    assert [frame.event for frame in turns[1]] == ["start", "delta", "done"]
    assert turns[1][1].data["text"] == "On Sundays, too [1]."


def test_a_wording_that_finds_nothing_close_is_followed_by_the_rules(settings: Settings) -> None:
    """The better of both counts."""
    search = FindsOnly(FIRST)
    turns = talked(settings, model("Weekend plans"), search, query_rewrite="model", llm_base_url=NOWHERE)
    assert [query for query, *_ in search.asked] == [FIRST, "Weekend plans", f"{FIRST} {NEXT}"]
    assert turns[1][0].data["mode"] == "grounded"
    assert numbers_of(settings)["rewrite"] == "rules"


def test_off_searches_what_was_typed(settings: Settings) -> None:
    """Nothing else."""
    search = ScriptedSearch(hit(1))
    talked(settings, ScriptedModel(["Yes [1]."]), search, query_rewrite="off", llm_base_url=NOWHERE)
    assert [query for query, *_ in search.asked] == [FIRST, NEXT]
    assert "rewrite" not in numbers_of(settings)


@pytest.mark.parametrize("changes", [{}, {"query_rewrite": "model"}])
def test_the_rules_are_the_default_and_what_is_left_without_a_server(
    settings: Settings, changes: dict[str, Any]
) -> None:
    """No request is spent on it."""
    search, asked = ScriptedSearch(hit(1)), ScriptedModel(["Yes [1]."])
    talked(settings, asked, search, **changes)
    assert [query for query, *_ in search.asked] == [FIRST, f"{FIRST} {NEXT}"]
    assert len(asked.requests) == 2
