"""Fusing two lists, spreading over documents, and the score."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.search.fusion import PER_DOCUMENT, fuse, score, spread

KEYS = st.lists(st.integers(0, 30), max_size=20, unique=True)
QUESTION = np.array([1, 0, 0], dtype=np.float32)


def at(cosine: float, sideways: float = 0.0) -> np.ndarray:
    """A vector of that cosine with the question; the rest points to the second axis, `sideways` of it to the third."""
    rest = math.sqrt(max(0.0, 1 - cosine**2))
    return np.array([cosine, rest * math.sqrt(1 - sideways**2), rest * sideways], dtype=np.float32)


def order(words: dict[str, float], cosines: dict[str, float]) -> list[str]:
    """The fused order of passages with these strengths and cosines, all on one side of the question."""
    near = sorted(cosines, key=lambda key: -cosines[key])
    return [one.key for one in fuse(words, near, {key: at(cosine) for key, cosine in cosines.items()}, QUESTION)]


def test_a_key_that_fits_both_ways_comes_before_those_that_fit_one_way() -> None:
    """Agreement of words and meaning is what fusion is for."""
    assert order({"a": 0.6, "b": 0.6}, {"c": 0.6, "b": 0.6, "a": 0.1}) == ["b", "a", "c"]


def test_a_weak_match_of_words_does_not_push_a_near_passage_down() -> None:
    """The first of a list of bad matches is still a bad match."""
    assert order({"word": 0.1}, {"near": 0.6, "word": 0.2}) == ["near", "word"]


def test_ranks_tell_the_place_in_each_list_and_the_cosine_is_that_of_the_question() -> None:
    """1-based, None where a list lacks the key; moving the question changes the order, not what is told."""
    fused = fuse({"a": 0.9}, ["b", "a"], {"b": at(0.8), "a": at(0.6)}, QUESTION)

    assert [(one.key, one.fulltext_rank, one.vector_rank) for one in fused] == [("a", 1, 2), ("b", None, 1)]
    assert [one.cosine for one in fused] == pytest.approx([0.6, 0.8])


def test_what_unrelated_texts_have_in_common_counts_as_nothing() -> None:
    """An embedder whose vectors all point one way: a cosine at its floor is 0, what lies above is stretched to 1."""
    vectors = {"near": at(0.86), "far": at(0.72), "same": at(1.0)}
    fused = {one.key: one.cosine for one in fuse({}, list(vectors), vectors, QUESTION, floor=0.72)}
    assert [fused["far"], fused["near"], fused["same"]] == pytest.approx([0.0, 0.5, 1.0], abs=1e-3)


def test_a_floor_lets_words_decide_between_passages_that_are_equally_far() -> None:
    cosines = {"words": at(0.73), "none": at(0.75)}
    assert fuse({"words": 0.3}, ["none", "words"], cosines, QUESTION, floor=0.72)[0].key == "words"


def test_equals_keep_the_order_of_full_text() -> None:
    """The order is the same on every run."""
    assert order({"a": 0.5, "b": 0.5}, {"b": 0.4, "a": 0.4}) == ["a", "b"]


def test_passages_like_the_best_ones_gain_in_the_second_look() -> None:
    """The best passages say in the library's own words what the question said in others."""
    vectors = {"best": at(0.7), "like": at(0.39), "unlike": at(0.4, sideways=-1.0)}
    fused = fuse({"best": 0.9}, ["best", "unlike", "like"], vectors, QUESTION)

    assert [one.key for one in fused] == ["best", "like", "unlike"]


def test_a_passage_whose_vector_is_still_to_come_counts_as_an_average_one() -> None:
    """What was added a moment ago is found by its words, before what fits neither way."""
    fused = fuse({"new": 0.5, "old": 0.4}, ["old", "far"], {"old": at(0.5), "far": at(0.1)}, QUESTION)

    assert [one.key for one in fused] == ["old", "new", "far"]
    assert fused[1].cosine is None


@given(KEYS, KEYS)
def test_fusion_keeps_every_key_once(words: list[int], near: list[int]) -> None:
    """Nothing is lost, nothing doubled."""
    vectors = {key: at(key / 31) for key in near}
    fused = [one.key for one in fuse(dict.fromkeys(words, 0.5), near, vectors, QUESTION)]

    assert sorted({*words, *near}) == sorted(fused)


@given(KEYS)
def test_without_vectors_the_order_is_that_of_the_words(words: list[int]) -> None:
    """As when the embedder is down."""
    strengths = {key: 1 / (2 + place) for place, key in enumerate(words)}

    assert words == [one.key for one in fuse(strengths, [], {}, None)]


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


def test_what_the_question_is_about_and_nothing_names_lowers_the_score() -> None:
    """However near the passage lies."""
    assert score(0.6, (), {"term": 2.0}, absent=0.5) == 0.3


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
