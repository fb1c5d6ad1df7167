"""Packing: what fits is given in rank order, what does not is counted, and repacking gives way once."""

import json

import pytest

from app.rag.context import Prompt, pack, passages_of
from app.rag.gate import NOT_SEARCHED, Gate
from app.rag.prompts import PastTurn, parse_documents, parse_passages, parse_question
from app.rag.space import space_of
from app.rag.tokens import estimate_tokens
from app.search.hits import Hit
from app.settings import Settings


def hit(chunk_id: int, text: str) -> Hit:
    return Hit(
        chunk_id=chunk_id,
        document_id=chunk_id * 10,
        collection_id=1,
        path=f"{chunk_id}.md",
        title="A",
        heading="H",
        page=None,
        text=text,
        char_start=5,
        char_end=5 + len(text),
        line_start=1,
        line_end=2,
        score=0.9,
        fulltext_rank=1,
        vector_rank=None,
    )


def grounded(count: int, chars: int = 350) -> Gate:
    hits = tuple(hit(n, f"passage {n} " + "x" * (chars - 10)) for n in range(1, count + 1))
    return Gate("grounded", hits, (), 0.9, 1, "q")


def packed(gate: Gate, settings: Settings, history: tuple[PastTurn, ...] = (), **update: int) -> Prompt:
    return pack(gate, "q?", history, space_of(settings.model_copy(update=update)), documents=429)


def size(prompt: Prompt) -> int:
    return sum(estimate_tokens(message["content"]) + 4 for message in prompt.messages)


def test_everything_is_given_where_everything_fits(settings: Settings) -> None:
    """Twelve passages of the usual size fit the window that is assumed for an unknown model."""
    prompt = packed(grounded(12, 1200), settings)
    assert [passage.n for passage in prompt.passages] == list(range(1, 13))
    assert prompt.dropped == 0
    assert [given.n for given in parse_passages(prompt.messages)] == list(range(1, 13))
    assert parse_question(prompt.messages) == "q?"


@pytest.mark.parametrize("window", [1024, 2048, 4096])
def test_a_prompt_and_its_answer_fit_the_window(settings: Settings, window: int) -> None:
    """Passages are dropped from the end of the ranking, and counted."""
    history = tuple(PastTurn(f"question {n}", "answer " * 40) for n in range(20))
    prompt = packed(grounded(40), settings, history, llm_context_tokens=window, llm_max_tokens=300)
    assert size(prompt) <= window - 300
    assert 0 < len(prompt.passages) < 40
    assert len(prompt.passages) + prompt.dropped == 40
    assert [passage.chunk_id for passage in prompt.passages] == list(range(1, len(prompt.passages) + 1))


def test_room_is_used_up(settings: Settings) -> None:
    """One passage more would not have fitted."""
    prompt = packed(grounded(40), settings, llm_context_tokens=2048, llm_max_tokens=300)
    assert 2048 - 300 - 150 < size(prompt) <= 2048 - 300


def test_the_best_passage_is_given_even_where_it_seems_too_long(settings: Settings) -> None:
    """The estimate errs on the safe side; a grounded prompt without a passage would be none."""
    prompt = packed(grounded(3, 4000), settings, llm_context_tokens=512)
    assert [passage.n for passage in prompt.passages] == [1]
    assert prompt.dropped == 2


def test_the_oldest_turns_give_way_first_and_whole(settings: Settings) -> None:
    """History takes at most a third of what is left; what is kept is the newest, in order, user and assistant."""
    history = tuple(PastTurn(f"question {n}", "answer " * 60) for n in range(30))
    prompt = packed(grounded(2), settings, history, llm_context_tokens=4096)
    asked = [message["content"] for message in prompt.messages if message["role"] == "user"]
    assert asked[-2] == "question 29"
    assert 3 < len(asked) < 30
    assert asked[:-1] == [f"question {n}" for n in range(31 - len(asked), 30)]
    assert [message["role"] for message in prompt.messages[1:]] == ["user", "assistant"] * (len(asked) - 1) + ["user"]


def test_history_loses_markers_and_turns_without_an_answer(settings: Settings) -> None:
    """An old number would point at another passage now; two questions in a row would break the taking of turns."""
    history = (PastTurn("q1", "It is so [3]."), PastTurn("q2", " \n"), PastTurn("q3", "Yes.[1][2]"))
    prompt = packed(grounded(1), settings, history)
    assert [message["content"] for message in prompt.messages[1:]] == ["q1", "It is so.", "q3", "Yes.", "q?"]


def test_a_deflected_prompt_says_how_much_was_searched(settings: Settings) -> None:
    """And a turn without documents doesn't claim that anything was."""
    deflected = packed(Gate("deflected", (), (), 0.1, 1, "q"), settings)
    assert parse_documents(deflected.messages) == 429
    assert deflected.passages == ()
    without = packed(NOT_SEARCHED, settings)
    assert parse_documents(without.messages) is None
    assert "without their documents" in without.messages[0]["content"]


def test_repacking_halves_once_and_keeps_the_numbers(settings: Settings) -> None:
    """The answer's numbers still mean the passages that the page already lists."""
    history = (PastTurn("q1", "a1"), PastTurn("q2", "a2"))
    prompt = packed(grounded(5), settings, history)
    assert prompt.repack()
    assert [passage.n for passage in prompt.passages] == [1, 2, 3]
    assert prompt.dropped == 2
    assert [given.n for given in parse_passages(prompt.messages)] == [1, 2, 3]
    assert [message["content"] for message in prompt.messages[1:]] == ["q2", "a2", "q?"]
    assert not prompt.repack()
    assert [passage.n for passage in prompt.passages] == [1, 2, 3]


def test_there_is_nothing_to_repack_in_a_bare_prompt(settings: Settings) -> None:
    """One passage and no history: the question itself is too long, and asking again would not help."""
    assert not packed(grounded(1), settings).repack()
    assert not packed(NOT_SEARCHED, settings).repack()


def test_passages_carry_what_the_hit_knew(settings: Settings) -> None:
    """Numbered from 1 in rank order."""
    first, second = passages_of([hit(4, "four"), hit(2, "two")])
    assert (first.n, first.chunk_id, first.document_id, first.text, first.char_start) == (1, 4, 40, "four", 5)
    assert (second.n, second.path, second.heading, second.line_end, second.score) == (2, "2.md", "H", 2, 0.9)


def test_the_estimate_counts_other_scripts_by_character() -> None:
    """A Chinese character is about a token, an English one a quarter."""
    assert estimate_tokens("") == 0
    assert estimate_tokens("x" * 35) == 10
    assert estimate_tokens("管理界面") == 4


DEFINITIONS = [{"type": "function", "function": {"name": "read", "description": "Reads. " * 60, "parameters": {}}}]


def test_tools_get_a_third_of_the_room(settings: Settings) -> None:
    """Definitions, passages, and results up to what is left: together they fit."""
    gate = grounded(40, 1200)
    prompt = pack(gate, "q?", (), space_of(settings), documents=1, tools=DEFINITIONS)
    defined = estimate_tokens(json.dumps(DEFINITIONS))
    assert prompt.tool_room == prompt.room - size(prompt) - defined
    assert prompt.tool_room + defined >= prompt.room / 3
    assert len(prompt.passages) < len(pack(gate, "q?", (), space_of(settings), documents=1).passages)
    assert "with the tools" in prompt.messages[0]["content"]
    prompt.drop_tools()
    assert prompt.tool_room == 0
    assert "with the tools" not in prompt.messages[0]["content"]


def test_no_tools_where_they_would_not_fit_or_nothing_was_found(settings: Settings) -> None:
    """A small window is for the passages; a deflected turn is offered none."""
    small = settings.model_copy(update={"llm_context_tokens": 2048})
    for gate, chosen in ((grounded(4), small), (Gate("deflected", (), (), 0.1, 1, "q"), settings)):
        prompt = pack(gate, "q?", (), space_of(chosen), documents=1, tools=DEFINITIONS)
        assert prompt.tool_room == 0
        assert prompt.messages == pack(gate, "q?", (), space_of(chosen), documents=1).messages


def test_a_repack_keeps_the_tools(settings: Settings) -> None:
    """They were not what was too long."""
    prompt = pack(grounded(6), "q?", (), space_of(settings), documents=1, tools=DEFINITIONS)
    assert prompt.repack()
    assert "with the tools" in prompt.messages[0]["content"]
