"""An embedder's floor: the cosine that counts as 0 with it, so that a score means the same with every embedder.

Owns the rule and the texts it is measured with: passages in several languages, each with a question that it answers, in
its own language and in another one; any two of different entries are unrelated. Whose floor is measured, and when, is
`app.ingest.floors`'; what is done with it is `app.search.fusion`'s.

Models differ in what unrelated texts have in common: next to nothing with the built-in English one, 0.75 with the e5
family, whose vectors all point one way; and related ones have 0.85 there, not 0.55. Half-way between both is where a
passage begins to have to do with a question. The threshold was chosen with the English embedder, so the floor is what
makes that point count as much as it does there.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.search.embeddings import Embedder, FloatMatrix
from app.search.errors import EmbedError

RULE = "1"
"""Kept with what was measured: another rule, or other texts, and it is measured anew."""

PAIRS = Path(__file__).parent / "assets" / "pairs.json"
AT_ONCE = 8
"""Texts between two looks at whether something more urgent wants the embedder."""

HALF_WAY = 0.3
"""Half-way between unrelated and related texts with the built-in English embedder, by this very rule (a test measures
it again)."""

KNOWN = 0.9
"""The share of questions that have to find their own passage first in a language that an embedder knows. All texts of a
language that it doesn't know look alike to it, which says nothing about those that it does."""

LOWEST, HIGHEST = 0.05, 0.95
"""Less is what measuring the English embedder again gives; more is an embedder to whom everything is the same."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A passage, a question that it answers in its language, and the same question in another one."""

    language: str
    question: str
    abroad: str
    passage: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What measuring came to; `floor` (0..0.95) is None for an embedder that tells no texts apart."""

    floor: float | None


def pairs() -> list[Pair]:
    """The built-in texts, those of a language together."""
    listed = json.loads(PAIRS.read_text(encoding="utf-8"))
    return [Pair(language, **one) for language, entries in listed.items() for one in entries]


def measure(embedder: Embedder, give_way: Callable[[], bool], known: Sequence[Pair] | None = None) -> Measured | None:
    """The floor of an embedder; None when `give_way` said that the process wants to end.

    Some hundred short texts, questions as questions and passages as passages. Blocking: seconds.

    Raises:
        EmbedError: when the embedder fails, or its vectors change their length meanwhile (`embed_changed`).
    """
    known = known if known is not None else pairs()
    questions = [pair.question for pair in known] + [pair.abroad for pair in known]
    parts: list[FloatMatrix] = []
    for some in _parts(questions):
        if not give_way():
            return None
        parts += [embedder.embed_query(question)[np.newaxis] for question in some]
    for some in _parts([pair.passage for pair in known]):
        if not give_way():
            return None
        parts.append(embedder.embed_passages(some))
    if len({part.shape[1] for part in parts}) != 1:
        raise EmbedError("embed_changed")
    matrix = np.concatenate(parts)
    cosines: FloatMatrix = matrix[: 2 * len(known)] @ matrix[2 * len(known) :].T
    own, abroad = cosines[: len(known)], cosines[len(known) :]
    return Measured(floor_from(own, abroad, [pair.language for pair in known]))


def floor_from(own: FloatMatrix, abroad: FloatMatrix, languages: Sequence[str]) -> float | None:
    """The floor by the cosines of questions (rows) and passages (columns), of which the i-th belong together.

    In each language: the mean cosine of unrelated texts, that of related ones, and half-way between. The mean of that
    over the languages that the embedder knows (else those it knows best), or half-way for questions in another language
    than the passages, if it knows how and that is less: no question may be lost for being asked in the wrong language.
    The floor is what makes (half-way - floor) / (1 - floor) equal `HALF_WAY`. None when no question finds its passage.

    Args:
        own: Questions in the passages' languages, shape (n, n).
        abroad: The same questions in another language.
        languages: Of the passages.
    """
    same = np.equal.outer(np.array(languages), np.array(languages))
    levels = [_level(own[np.ix_(rows, rows)]) for rows in (_places(languages, one) for one in dict.fromkeys(languages))]
    best = min(KNOWN, max(level.first for level in levels))
    if not best:
        return None
    half_way = float(np.mean([level.half_way for level in levels if level.first >= best]))
    crossing = _level(np.where(same, abroad, np.nan))
    if crossing.first >= KNOWN:
        half_way = min(half_way, crossing.half_way)
    floor = (half_way - HALF_WAY) / (1 - HALF_WAY)
    return round(min(floor, HIGHEST), 3) if floor >= LOWEST else 0.0


@dataclass(frozen=True, slots=True)
class _Level:
    """The cosine half-way between unrelated and related texts, and the share of questions whose own passage is nearer
    than every other."""

    half_way: float
    first: float


def _level(cosines: FloatMatrix) -> _Level:
    """Of a square whose diagonal is the related ones; NaN for what isn't compared."""
    own = np.eye(len(cosines), dtype=bool)
    related, unrelated = cosines[own], np.where(own, np.nan, cosines)
    half_way = (float(np.nanmean(unrelated)) + float(related.mean())) / 2
    return _Level(half_way, float((related > np.nanmax(unrelated, axis=1)).mean()))


def _places(languages: Sequence[str], language: str) -> list[int]:
    return [place for place, one in enumerate(languages) if one == language]


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    return (list(texts[start : start + AT_ONCE]) for start in range(0, len(texts), AT_ONCE))
