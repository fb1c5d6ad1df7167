"""Two lists into one order, and what of it is kept. Pure.

Owns how words and meaning are weighed, the second look with the question moved towards what was found, the cap on
passages per document and the score; asks no database.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from app.search.embeddings import FloatMatrix, FloatVector, unit

MEANING = 0.5
"""The weight of the cosine; the rest is that of the words. Ranks alone forget how good a match is: the best of fifty
passages that share one common word with the question counted as much as the one that holds every word of it."""

FEEDBACK_PASSAGES = 5
FEEDBACK = 0.3
"""The best passages of the first look, and how far the question's vector is moved towards their mean for the second."""

PER_DOCUMENT = 3
"""Passages of one document, as long as other documents have something to say."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Key]):
    """A key with its 1-based places in the two lists, None where it is missing, and its cosine, None without a
    vector."""

    key: Key
    fulltext_rank: int | None
    vector_rank: int | None
    cosine: float | None = None


def fuse(
    words: Mapping[Key, float],
    near: Sequence[Key],
    vectors: Mapping[Key, FloatVector],
    query: FloatVector | None,
    floor: float = 0.0,
) -> list[Fused[Key]]:
    """Both lists as one, best first; equal ones keep full text's order.

    Args:
        words: What the words found, best first: the strength of the match, 0..1.
        near: What the question's vector found, nearest first.
        vectors: The vectors (unit length) of any of both. A passage without one is taken to be as near as the others
            are on average.
        query: The question's vector, unit length; None where words alone have to serve.
        floor: The cosine that texts about different things have with this embedder; it counts as 0, and 1 as 1.
    """
    keys = list(dict.fromkeys([*words, *near]))
    strengths = np.array([words.get(key, 0.0) for key in keys], dtype=np.float32)
    known = [place for place, key in enumerate(keys) if key in vectors]
    cosines: list[float | None] = [None] * len(keys)
    total = strengths
    if query is not None and known:
        matrix = np.stack([vectors[keys[place]] for place in known])
        first = _cosines(matrix, query, floor)
        for place, cosine in zip(known, first.tolist(), strict=True):
            cosines[place] = cosine
        total = _second_look(strengths, known, matrix, (query, first, floor))
    by_words = {key: rank for rank, key in enumerate(words, 1)}
    by_meaning = {key: rank for rank, key in enumerate(dict.fromkeys(near), 1)}
    order: list[int] = np.argsort(-total, kind="stable").tolist()
    return [Fused(keys[at], by_words.get(keys[at]), by_meaning.get(keys[at]), cosines[at]) for at in order]


def _second_look(
    strengths: FloatVector, known: Sequence[int], matrix: FloatMatrix, look: tuple[FloatVector, FloatVector, float]
) -> FloatVector:
    """The order's numbers, with the question moved towards the best passages of the first look: its vector, its
    cosines, the embedder's floor."""
    query, first, floor = look
    total = _mixed(strengths, known, first)[known]
    best = np.argsort(-total, kind="stable")[:FEEDBACK_PASSAGES]
    moved = unit(query + np.float32(FEEDBACK) * matrix[best].mean(axis=0))
    return _mixed(strengths, known, _cosines(matrix, moved, floor))


def _cosines(matrix: FloatMatrix, vector: FloatVector, floor: float) -> FloatVector:
    """Not by `@`, which would set every core to work on so little."""
    cosines: FloatVector = np.einsum("ij,j->i", matrix, vector)
    return (cosines - np.float32(floor)) / np.float32(1 - floor) if floor else cosines


def _mixed(strengths: FloatVector, known: Sequence[int], cosines: FloatVector) -> FloatVector:
    near: FloatVector = np.full(len(strengths), cosines.mean(), dtype=np.float32)
    near[known] = cosines
    total: FloatVector = np.add(MEANING * near, (1 - MEANING) * strengths, dtype=np.float32)
    return total


def spread(documents: Sequence[int], k: int, cap: int | None = PER_DOCUMENT) -> list[int]:
    """Which places of a ranked list to keep, in order: at most `k`, and at most `cap` of one document.

    Args:
        documents: The document of each place.
        cap: None for no cap. Places over the cap come in again where nothing else is left.
    """
    taken: list[int] = []
    over: list[int] = []
    seen: Counter[int] = Counter()
    for place, document in enumerate(documents):
        if len(taken) == k:
            break
        seen[document] += 1
        (taken if cap is None or seen[document] <= cap else over).append(place)
    return sorted(taken + over[: k - len(taken)])


def score(cosine: float | None, standing: Iterable[str], idf: Mapping[str, float], absent: float = 0.0) -> float:
    """How well a passage fits, 0..1: by its cosine or by the terms it holds, whichever tells more; less where what the
    question is about stands nowhere.

    Args:
        cosine: Of question and passage, -1..1; None where there is no vector.
        standing: Those stems of the question that stand in the passage.
        idf: The weight of every stem of the question, above 0.
        absent: `fulltext.absence` of the question.
    """
    total = sum(idf.values())
    share = sum(idf[stem] for stem in standing) / total if total else 0.0
    return min(1.0, max(0.0, cosine or 0.0, share)) * (1 - absent)
