"""Two ranked lists into one, and what of it is kept. Pure.

Owns reciprocal rank fusion, the cap on passages per document and the score; asks no database.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

K = 20
"""Of reciprocal rank fusion: a list's place r counts 1 / (K + r). 60 is the usual value and does worse here."""

PER_DOCUMENT = 3
"""Passages of one document, as long as other documents have something to say."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Key]):
    """A key with its 1-based places in the two lists, None where it is missing."""

    key: Key
    fulltext_rank: int | None
    vector_rank: int | None


def fuse(fulltext: Sequence[Key], vector: Sequence[Key]) -> list[Fused[Key]]:
    """Both lists as one, best first. A key counts at its first place in each; equal sums keep full text's order."""
    by_words = {key: rank for rank, key in enumerate(dict.fromkeys(fulltext), 1)}
    by_meaning = {key: rank for rank, key in enumerate(dict.fromkeys(vector), 1)}
    fused = [Fused(key, by_words.get(key), by_meaning.get(key)) for key in {**by_words, **by_meaning}]
    return sorted(fused, key=_strength, reverse=True)


def _strength(fused: Fused[Key]) -> float:
    return sum(1 / (K + rank) for rank in (fused.fulltext_rank, fused.vector_rank) if rank is not None)


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


def score(cosine: float | None, standing: Iterable[str], idf: Mapping[str, float]) -> float:
    """How well a passage fits, 0..1: by its cosine or by the terms it holds, whichever tells more.

    Args:
        cosine: Of question and passage, -1..1; None where there is no vector.
        standing: Those stems of the question that stand in the passage.
        idf: The weight of every stem of the question, above 0.
    """
    total = sum(idf.values())
    share = sum(idf[stem] for stem in standing) / total if total else 0.0
    return min(1.0, max(0.0, cosine or 0.0, share))
