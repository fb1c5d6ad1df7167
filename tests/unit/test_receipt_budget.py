"""The receipt's bar of what the model's window was spent on."""

from typing import Any

from app.catalog import load_catalog
from app.rag.pieces import Passage
from app.rag.prompts import PastTurn, build_grounded_prompt, build_messages, passage_block
from app.rag.tokens import estimate_tokens
from app.web.receipt_budget import ORDER, budget
from app.web.receipt_time import BAR_WIDTH

CATALOG = load_catalog()
PASSAGE = Passage(1, 7, 71, "a.md", "Plan", "Backups", None, "Backups run at two. " * 40, 0, 800, 1, 9, 0.8)
TALK = (PastTurn("When do backups run?", "At two."),)


def prompt_of(*, passages: tuple[Passage, ...] = (PASSAGE,), talk: tuple[PastTurn, ...] = TALK) -> list[dict[str, Any]]:
    """A grounded turn's messages."""
    return [dict(message) for message in build_messages(build_grounded_prompt(passages), talk, "And on Sundays?")]


def tokens_of(prompt: list[dict[str, Any]], **numbers: Any) -> dict[str, int]:
    """By kind, in the order of the bar."""
    parts = budget(prompt, {"window": 8192, "prompt_room": 7168, **numbers}, CATALOG)
    return {part.kind: part.tokens for part in parts}


def test_every_token_of_the_window_is_in_one_part() -> None:
    """The parts stand in their order, none is empty, and together they are the window."""
    found = tokens_of(prompt_of())
    assert list(found) == [kind for kind in ORDER if kind != "tools"]
    assert sum(found.values()) == 8192
    assert found["reserve"] == 1024
    assert found["passages"] == estimate_tokens(passage_block(PASSAGE))
    assert found["history"] == estimate_tokens("When do backups run?") + estimate_tokens("At two.")
    assert found["question"] == estimate_tokens("And on Sundays?")


def test_the_bar_has_no_gap_and_no_overlap() -> None:
    """Each stretch begins where the one before it ends; the last ends at the end."""
    parts = budget(prompt_of(), {"window": 8192, "prompt_room": 7168}, CATALOG)
    ends = [part.x + part.width for part in parts]
    assert [part.x for part in parts] == [0, *ends[:-1]]
    assert ends[-1] == BAR_WIDTH


def test_what_has_nothing_is_left_out() -> None:
    """A first question has no earlier turns; a deflected one no passages."""
    assert "history" not in tokens_of(prompt_of(talk=()))
    assert "passages" not in tokens_of([{"role": "system", "content": "Say no."}, {"role": "user", "content": "Why?"}])


def test_tool_rounds_count_and_take_from_what_was_kept() -> None:
    """Calls and results follow the question; more than the window leaves nothing free and nothing kept."""
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path": "/library/a.md"}'}}
    rounds = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "Backups run at two. " * 100},
    ]
    found = tokens_of([*prompt_of(), *rounds])
    assert found["tools"] > estimate_tokens("Backups run at two. " * 100)
    crowded = tokens_of([*prompt_of(), *rounds], window=600, prompt_room=500)
    assert "free" not in crowded
    assert "reserve" not in crowded


def test_the_passages_say_of_how_many() -> None:
    """As the line over the answer does, where some did not fit."""
    numbers = {"window": 8192, "prompt_room": 7168, "taken": 7, "dropped": [{}] * 5}
    labels = [part.label for part in budget(prompt_of(), numbers, CATALOG)]
    assert "Passages, 7 of 12" in labels
    assert "Kept for the answer" in labels


def test_nothing_is_drawn_of_what_was_not_recorded() -> None:
    """An old turn has no window, an aborted one no prompt."""
    assert budget(prompt_of(), {}, CATALOG) == ()
    assert budget([], {"window": 8192, "prompt_room": 7168}, CATALOG) == ()
    assert budget(prompt_of(), {"window": 100, "prompt_room": 200}, CATALOG) == ()
