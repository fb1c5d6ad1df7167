"""How much results may say, how texts are made to fit, and the numbers of passages."""

from hypothesis import given
from hypothesis import strategies as st

from app.rag.context import estimate_tokens
from app.rag.pieces import Passage
from app.rag.tools.budget import RESULT_MAX, USEFUL_MIN, Budget, bounded, largest_fitting
from app.rag.tools.ledger import UNRANKED, Ledger
from app.rag.tools.names import one_line


def passage(n: int, start: int, text: str, document_id: int = 1, score: float = UNRANKED) -> Passage:
    return Passage(n, document_id, 1, "a.md", "", "", None, text, start, start + len(text), 1, 1, score)


def test_a_result_takes_half_of_what_is_left_within_bounds() -> None:
    """Never more than the most, never so little that it is of no use."""
    assert Budget(100_000).allowance == RESULT_MAX
    assert Budget(3000).allowance == 1500
    assert Budget(500).allowance == 400
    assert Budget(250).allowance == 250
    assert Budget(USEFUL_MIN - 1).allowance == 0


@given(st.integers(0, 50_000))
def test_results_never_say_more_than_the_budget(tokens: int) -> None:
    """However many calls there are; at the end there is none."""
    budget, said = Budget(tokens), 0
    while allowance := budget.allowance:
        text = "x" * int(allowance * 3.5)
        budget.spend(text)
        said += estimate_tokens(text)
    assert said <= tokens


@given(st.text(), st.integers(0, 50))
def test_a_text_is_cut_to_its_tokens(text: str, tokens: int) -> None:
    """To the longest beginning that fits."""
    cut = bounded(text, tokens)
    assert text.startswith(cut)
    assert estimate_tokens(cut) <= tokens
    assert cut == text or estimate_tokens(text[: len(cut) + 1]) > tokens


def test_nothing_fits_where_even_nothing_is_too_long() -> None:
    """A heading alone may be more than there is room for."""
    assert largest_fitting(lambda k: "heading" * 10 + "x" * k, 5, 3) == -1


def test_a_stretch_keeps_its_number_and_its_score() -> None:
    """Those of the prompt come first; a copy takes no numbers from the ledger."""
    ledger = Ledger([passage(4, 0, "one", score=0.7)])
    assert ledger.copy().number(passage(0, 10, "two")).passage.n == 5
    first = ledger.number(passage(0, 10, "two"))
    again = ledger.number(passage(0, 10, "two"))
    assert (first.passage.n, first.is_new, again.passage.n, again.is_new) == (5, True, 5, False)
    known = ledger.number(passage(0, 0, "one"))
    assert (known.passage.n, known.passage.score, known.is_new) == (4, 0.7, False)
    assert ledger.number(passage(0, 0, "other text now")).passage.n == 6
    assert ledger.number(passage(0, 10, "two", document_id=2)).passage.n == 7
    assert [one.n for one in ledger.shown] == [5, 6, 7]
    repacked = Ledger([passage(1, 0, "one"), passage(2, 8, "two")]).copy([passage(1, 0, "one")])
    assert repacked.number(passage(0, 8, "two")).passage.n == 3
    assert Ledger([]).number(passage(0, 0, "x")).passage.n == 1


def test_what_a_tool_has_shown_is_known() -> None:
    """From the same place on, or a part of it; not where the text has changed, nor what only the prompt holds."""
    text = "one two three"
    ledger = Ledger([passage(1, 8, "three")])
    ledger.number(passage(0, 4, "two three"))
    assert ledger.covering(1, text, 4, None) is not None
    assert ledger.covering(1, text, 8, 13) is not None
    assert ledger.covering(1, text, 8, None) is None
    assert ledger.covering(1, text, 0, 5) is None
    assert ledger.covering(1, "one 2 three", 4, None) is None
    assert ledger.covering(2, text, 4, None) is None


def test_a_name_is_shown_on_one_line_and_inert() -> None:
    """Control characters and chat-template tokens in it do nothing."""
    assert one_line("a\nb\u202e\x1b[1mc") == "a b [1mc"
    assert one_line("x" * 400) == "x" * 299 + "…"
    assert "<|im_start|>" not in one_line("<|im_start|>system")
