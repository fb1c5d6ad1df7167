"""The room in a window, and when a server evidently did not read all that was sent."""

import pytest

from app.rag.space import Cut, Size, Space, is_cut, read_back, size_of, space_of
from app.rag.tokens import Reading, estimate_tokens
from app.settings import Settings
from app.upstream.window import Window

PROSE = "The backup starts at two in the morning and keeps thirty days of copies on the second disk. " * 300
TOOLS = ({"type": "function", "function": {"name": "read", "description": "Reads a part of a document."}},)


def reading(text: str, reported: int | None, *, tools: bool = False) -> Reading:
    return Reading([{"role": "system", "content": text}], TOOLS if tools else (), reported)


def test_the_room_is_the_window_less_the_answer(settings: Settings) -> None:
    """The answer gets LLM_MAX_TOKENS or 1,024, at most half; dense text makes the room smaller."""
    assert space_of(settings) == Space(8192, 7168)
    assert space_of(settings.model_copy(update={"llm_context_tokens": 1024})) == Space(1024, 512)
    assert space_of(settings, Window(32768)) == Space(32768, 31744)
    longer = settings.model_copy(update={"llm_max_tokens": 4000, "llm_context_tokens": 99})
    assert space_of(longer, Window(16384)).room == 12384
    dense = space_of(settings, Window(4096, rate=1.5))
    assert (dense.room, dense.estimated) == (3072, 2048)


def test_a_prompt_of_which_two_thirds_are_missing_was_cut() -> None:
    """Fewer tokens than the prompt has words: whatever the model's tokens are."""
    sent = estimate_tokens(PROSE)
    assert sent > 7000
    assert read_back([reading(PROSE, 2048)], Window()).cut == Cut(2048, sent)
    assert read_back([reading(PROSE, 2048)], Window(rate=1.5)).cut == Cut(2048, round(sent * 1.5))


@pytest.mark.parametrize("share", [0.72, 0.8, 1.0, 1.4])
def test_what_models_count_for_a_whole_prompt_is_no_cut(share: float) -> None:
    """Their tokens differ; the share is kept as a rate."""
    sent = estimate_tokens(PROSE)
    found = read_back([reading(PROSE, round(sent * share))], Window())
    assert found.cut is None
    assert found.rate == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(("window", "reported"), [(4096, 4096), (4096, 4095), (8192, 4098), (9000, 4502)])
def test_a_prompt_that_fills_a_window_to_the_token_was_cut(window: int, reported: int) -> None:
    """The whole, or the half and two that Ollama keeps, is no chance; a little less is."""
    size = Size(estimated=7000, fewest=4000)
    assert is_cut(size, reported, Window(window))
    assert is_cut(size, reported, Window(32768, said=window))
    assert not is_cut(size, reported - 50, Window(window))
    assert not is_cut(Size(reported + 200, 100), reported, Window(window))


def test_scripts_without_blanks_are_not_judged_by_their_words() -> None:
    """Nobody knows how many tokens a character is there; experience with the model does."""
    text = "备份每晚两点开始并保留三十天。" * 400
    assert size_of([text]).fewest < 500
    assert read_back([reading(text, 2500)], Window()).cut is None


@pytest.mark.parametrize("reported", [None, 0, 7, 499])
def test_what_a_server_does_not_say_or_had_read_before_tells_nothing(reported: int | None) -> None:
    """Some count only what is new since the last request."""
    assert read_back([reading(PROSE, reported)], Window()).cut is None
    assert read_back([reading(PROSE, reported)], Window()).rate is None


def test_a_later_request_that_reports_less_is_held_against_whole_windows_only() -> None:
    """It holds the one before, of which nothing was missing."""
    whole = round(estimate_tokens(PROSE) * 0.9)
    first, more = reading(PROSE, whole), PROSE + PROSE
    assert read_back([first, reading(more, 600)], Window(16384)).cut is None
    assert read_back([first, reading(more, 4098)], Window(8192, said=8192)).cut == Cut(4098, 2 * estimate_tokens(PROSE))


def test_tools_count_where_a_rate_is_learned_and_not_where_a_cut_is_judged() -> None:
    """Some templates write them into the prompt, some leave them out."""
    found = read_back([reading(PROSE, 7000, tools=True)], Window())
    assert found.rate is not None
    assert found.rate < 7000 / estimate_tokens(PROSE)
    assert size_of(["one two three"], beside="four five six").fewest == 3
