"""Fusing two lists, spreading over documents, and the score."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.fusion import PER_DOCUMENT, Fused, fuse, score, spread

KEYS = st.lists(st.integers(0, 30), max_size=20)


def test_a_key_in_both_lists_comes_before_those_in_one() -> None:
    """Agreement of words and meaning is what fusion is for."""
    assert [one.key for one in fuse(["a", "b"], ["c", "b"])] == ["b", "a", "c"]


def test_ranks_tell_the_place_in_each_list() -> None:
    """1-based, None where a list lacks the key."""
    assert [Fused("a", 1, 2), Fused("b", None, 1)] == fuse(["a"], ["b", "a"])


def test_equal_sums_keep_the_order_of_full_text() -> None:
    """The order is the same on every run."""
    assert [one.key for one in fuse(["a"], ["x"])] == ["a", "x"]


@given(KEYS, KEYS)
def test_fusion_keeps_every_key_once(fulltext: list[int], vector: list[int]) -> None:
    """Nothing is lost, nothing doubled, whatever is listed twice."""
    fused = [one.key for one in fuse(fulltext, vector)]

    assert sorted({*fulltext, *vector}) == sorted(fused)


@given(KEYS)
def test_one_list_alone_keeps_its_order(fulltext: list[int]) -> None:
    """Without vectors the order is full text's."""
    assert list(dict.fromkeys(fulltext)) == [one.key for one in fuse(fulltext, [])]


@given(KEYS, KEYS)
def test_a_key_better_in_both_lists_comes_first(fulltext: list[int], vector: list[int]) -> None:
    """Fusion never turns around what both lists agree on."""
    fused = fuse(fulltext, vector)
    for first, second in itertools.pairwise(fused):
        ranks = [(first.fulltext_rank, second.fulltext_rank), (first.vector_rank, second.vector_rank)]
        worse = [(a or math.inf) > (b or math.inf) for a, b in ranks]
        assert not all(worse)


def test_a_document_gives_a_few_passages_while_others_have_some() -> None:
    """The cap makes room, the order stays."""
    assert spread([7, 7, 7, 7, 7, 8], 4) == [0, 1, 2, 5]


def test_passages_over_the_cap_fill_what_nothing_else_fills() -> None:
    """A library of one document is not cut to three passages."""
    assert spread([7] * 9, 4) == [0, 1, 2, 3]


def test_without_a_cap_the_first_ones_are_kept() -> None:
    """As when a filter names the document."""
    assert spread([7, 7, 7, 7, 8], 4, None) == [0, 1, 2, 3]


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 50))
def test_spread_keeps_as_many_as_asked_in_order(documents: list[int], k: int) -> None:
    """At most k, never fewer than there are, each place once."""
    kept = spread(documents, k)

    assert sorted(set(kept)) == kept
    assert min(k, len(documents)) == len(kept)


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 50))
def test_the_cap_is_broken_only_when_nothing_else_is_left(documents: list[int], k: int) -> None:
    """More of a document than the cap means that every other document's allowance is used."""
    kept = [documents[place] for place in spread(documents, k)]
    if max((kept.count(one) for one in kept), default=0) > PER_DOCUMENT:
        assert all(kept.count(one) >= min(PER_DOCUMENT, documents.count(one)) for one in documents)


def test_the_score_is_the_larger_of_cosine_and_share_of_terms() -> None:
    """Either way of fitting is enough."""
    idf = {"rare": 3.0, "common": 1.0}

    assert score(0.2, {"rare"}, idf) == 0.75
    assert score(0.9, {"common"}, idf) == 0.9


@pytest.mark.parametrize("cosine", [None, -0.3, 0.0])
def test_without_likeness_and_terms_the_score_is_zero(cosine: float | None) -> None:
    """A negative cosine is clipped; a question without terms divides by nothing."""
    assert score(cosine, (), {}) == 0.0
    assert score(cosine, (), {"term": 2.0}) == 0.0


@given(
    st.none() | st.floats(-1.001, 1.001),
    st.dictionaries(st.text(max_size=3), st.floats(1e-6, 20), max_size=8),
    st.data(),
)
def test_the_score_lies_between_zero_and_one(cosine: float | None, idf: dict[str, float], data: st.DataObject) -> None:
    """Whatever rounding does."""
    standing = data.draw(st.sets(st.sampled_from(sorted(idf)))) if idf else set()

    assert 0.0 <= score(cosine, standing, idf) <= 1.0
