"""An embedder's floor: found from what unrelated and related texts have, whatever all texts have in common."""

from collections.abc import Callable

import numpy as np
import pytest

from app.search.embeddings import FloatMatrix, FloatVector
from app.search.errors import EmbedError
from app.search.floor import AT_ONCE, HALF_WAY, HIGHEST, Pair, floor_from, measure, pairs
from tests.fake_embedder import WordEmbedder

SPOKEN, FOREIGN = "spoken", "foreign"
SIZE = 6
PAIRS = [Pair(SPOKEN, f"why topic{number}", f"warum topic{number}", f"topic{number} is so") for number in range(20)]


def block(unrelated: float, related: float, spread: float = 0.02) -> FloatMatrix:
    """Cosines of one language: related ones on the diagonal, unrelated ones around their mean."""
    square = np.full((SIZE, SIZE), unrelated)
    square += spread * np.where(np.add.outer(np.arange(SIZE), np.arange(SIZE)) % 2, 1, -1)
    np.fill_diagonal(square, related)
    return square.astype(np.float32)


def languages(*blocks: FloatMatrix) -> FloatMatrix:
    """Blocks beside each other; between languages there is nothing."""
    matrix = np.zeros((SIZE * len(blocks), SIZE * len(blocks)), dtype=np.float32)
    for place, one in enumerate(blocks):
        matrix[place * SIZE : (place + 1) * SIZE, place * SIZE : (place + 1) * SIZE] = one
    return matrix


def floor_of(own: FloatMatrix, abroad: FloatMatrix | None = None, names: tuple[str, ...] = (SPOKEN,)) -> float | None:
    """By default questions in another language find nothing."""
    return floor_from(own, np.zeros_like(own) if abroad is None else abroad, named(*names))


def named(*names: str) -> list[str]:
    return [name for name in names for _ in range(SIZE)]


@pytest.mark.parametrize("common", [0.2, 0.5, 0.7, 0.9])
def test_what_all_texts_have_in_common_is_the_floor(common: float) -> None:
    """Cosines like those of the English embedder, squeezed into common..1: counted from it they are as before."""
    plain = block(HALF_WAY - 0.25, HALF_WAY + 0.25)
    assert floor_of(common + (1 - common) * plain) == pytest.approx(common, abs=0.01)


def test_an_embedder_like_the_english_one_has_none() -> None:
    """Nor has one with even less in common: a floor below 0 would find something in everything."""
    assert floor_of(block(HALF_WAY - 0.25, HALF_WAY + 0.3)) == 0.0
    assert floor_of(block(-0.1, 0.4)) == 0.0


def test_a_narrow_scale_is_judged_by_its_middle() -> None:
    """Unrelated 0.78, related 0.86: half-way between them counts as much as it does with the English embedder."""
    floor = floor_of(block(0.78, 0.86, 0.01))
    assert floor is not None
    assert (0.82 - floor) / (1 - floor) == pytest.approx(HALF_WAY, abs=0.01)


def test_languages_that_it_does_not_know_say_nothing() -> None:
    """There, all texts look alike, related or not."""
    both = languages(block(0.05, 0.6), block(0.6, 0.62, 0.05))
    assert floor_of(both, names=(SPOKEN, FOREIGN)) == floor_of(block(0.05, 0.6)) == 0.0


def test_where_it_knows_no_language_well_the_best_one_counts() -> None:
    half = block(0.6, 0.7, 0.02)
    half[0, 1] = half[2, 3] = 0.9
    weak = languages(half, block(0.9, 0.89, 0.02))
    assert floor_of(weak, names=("a", "b")) == pytest.approx((0.66 - HALF_WAY) / (1 - HALF_WAY), abs=0.02)


def test_questions_in_another_language_than_the_passages_are_not_lost() -> None:
    """Where it knows how to compare them, their half-way counts if it is less."""
    own = block(0.78, 0.86, 0.01)
    assert floor_of(own, block(0.73, 0.8, 0.01)) == pytest.approx((0.765 - HALF_WAY) / (1 - HALF_WAY), abs=0.01)
    assert floor_of(own, block(0.3, 0.29, 0.01)) == floor_of(own)
    assert floor_of(own, block(0.9, 0.99, 0.01)) == floor_of(own)


@pytest.mark.parametrize("cosines", [np.ones((SIZE, SIZE)), block(0.5, 0.4)])
def test_an_embedder_that_tells_nothing_apart_has_no_floor(cosines: FloatMatrix) -> None:
    assert floor_of(cosines.astype(np.float32)) is None


def test_a_floor_leaves_room_above_it() -> None:
    assert floor_of(block(0.998, 0.999, 0.0001)) == HIGHEST


def test_questions_are_embedded_as_questions() -> None:
    """A model may treat them differently."""
    embedder = WordEmbedder(dim=256)
    measured = measure(embedder, lambda: True, PAIRS)
    assert measured is not None
    assert measured.floor is not None
    assert embedder.queries == 2 * len(PAIRS)


def test_it_asks_before_each_few_texts_and_ends_when_told_to() -> None:
    """Nothing is said then: it is measured the next time."""
    embedder = WordEmbedder()
    assert measure(embedder, answers(True, False), PAIRS) is None
    assert embedder.queries == AT_ONCE
    assert measure(embedder, answers(False), PAIRS) is None
    assert embedder.queries == AT_ONCE


def test_vectors_of_another_length_meanwhile_are_an_error() -> None:
    class Changing(WordEmbedder):
        def embed_query(self, text: str) -> FloatVector:
            return np.ones(65, dtype=np.float32)

    with pytest.raises(EmbedError) as caught:
        measure(Changing(), lambda: True, PAIRS)
    assert caught.value.code == "embed_changed"


def test_the_texts_are_enough_and_each_stands_once() -> None:
    """Several languages with the same weight each, and no passage that answers two questions by being there twice."""
    known = pairs()
    by_language = [sum(pair.language == name for pair in known) for name in {pair.language for pair in known}]
    assert len(by_language) >= 7
    assert min(by_language) >= 5
    questions = [text for pair in known for text in (pair.question, pair.abroad)]
    assert len(set(questions)) == 2 * len(known)
    assert len({pair.passage for pair in known}) == len(known)
    assert all(len(pair.passage) > len(pair.question) for pair in known)


def answers(*given: bool) -> Callable[[], bool]:
    left = iter(given)
    return lambda: next(left)
