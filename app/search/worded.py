"""What the words of a question find: by the word index, and by the trigram index where that can't.

Owns the two look-ups as one list, and what of a question stands in a passage. Called by `app.search.hybrid`; which
parts of a question are looked up as substrings is `fragments`', the indexes are `fulltext` and `grams`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.orm import Session

from app.search import candidates, fulltext, grams
from app.search.candidates import BY_WORDS, Candidate, Located
from app.search.fragments import Fragments, fold, fragments_of, grams_in
from app.search.frequencies import Frequencies
from app.search.fulltext import WeightedTerm
from app.search.scope import Scope
from app.search.words import Words

RERANKED = 200
"""Passages whose grams are counted, of those that hold the most telling ones."""

_K1 = 1.2
"""BM25's, for how often a gram stands in a passage."""


@dataclass(frozen=True, slots=True)
class Worded:
    """What the words of a question found, and how to tell what of it stands in a passage.

    `idf` is the weight of every part of the question: stems of the word index, and grams. `names` gives the stem of a
    name that stands nowhere as a word, but does as a part of one.
    """

    found: list[Candidate]
    idf: Mapping[str, float]
    absent: float
    stems: Sequence[str]
    grams: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def standing(self, words: Words, passages: Sequence[str]) -> list[set[str]]:
        """For each passage, those parts of the question that stand in it."""
        standing = words.standing(self.stems, passages)
        if not self.grams and not self.names:
            return standing
        folded = [fold(passage) for passage in passages]
        return [
            stems | grams_in(self.grams, passage) | {stem for name, stem in self.names.items() if name in passage}
            for stems, passage in zip(standing, folded, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Parts:
    """What substrings found: the weight of the grams, and by chunk what it holds is worth."""

    grams: list[grams.WeightedGram]
    names: Mapping[str, str]
    by_grams: Mapping[int, float]
    by_literals: Mapping[int, float]


def by_words(session: Session, words: Words, frequencies: Frequencies, question: str, scope: Scope) -> Worded:
    """The visible chunks that fit the words of a question, best first."""
    total = fulltext.size(session)
    fragments = fragments_of(question)
    terms = fulltext.weigh(session, words.question_terms(fragments.rest), total, frequencies)
    idf = {term.term.stem: term.idf for term in terms}
    matches, ceiling = fulltext.matches(terms, total), fulltext.ceiling(terms)
    if not fragments:
        found = candidates.by_words(session, matches, ceiling, scope)
        return Worded(found, idf, fulltext.absence(session, terms, total), list(idf))
    parts = _look_up(session, fragments, terms, total)
    ceiling += fulltext.SATURATED * sum(gram.idf for gram in parts.grams)
    found = candidates.by_words(session, matches, ceiling, scope)
    absent = 0.0 if fragments.grams else fulltext.absence(session, terms, total)
    idf |= {gram.gram: gram.idf for gram in parts.grams}
    found = _with_parts(session, found, parts, ceiling, scope)
    return Worded(found, idf, absent, [term.term.stem for term in terms], list(fragments.grams), parts.names)


def _look_up(session: Session, fragments: Fragments, terms: Sequence[WeightedTerm], total: int) -> _Parts:
    weighted = grams.weigh(session, fragments.grams, total)
    unknown = {term.term.word: term.term.stem for term in terms if not term.chunks}
    known = {term.term.word for term in terms if term.chunks}
    names = [name for name in fragments.names if name not in known]
    by_grams = grams.holders(session, weighted)
    holding = [grams.holding(session, literal) for literal in dict.fromkeys([*fragments.joined, *names])]
    holding += [grams.holding(session, word, by_grams) for word in fragments.glued]
    by_literals: dict[int, float] = {}
    for ids in holding:
        for chunk_id in ids:
            by_literals[chunk_id] = by_literals.get(chunk_id, 0.0) + grams.idf(len(ids), total)
    stems = {name: unknown[name] for name in names if name in unknown}
    return _Parts(weighted, stems, by_grams, by_literals)


def _with_parts(
    session: Session, found: Sequence[Candidate], parts: _Parts, ceiling: float, scope: Scope
) -> list[Candidate]:
    """Both lists as one, best first: what a passage's parts are worth is added to what its words are."""
    rows = _best_visible(session, parts.by_grams, RERANKED, scope)
    rows |= _best_visible(session, parts.by_literals, BY_WORDS, scope)
    worth = {chunk_id: parts.by_literals.get(chunk_id, 0.0) for chunk_id in rows}
    for chunk_id, row in rows.items():
        worth[chunk_id] += _gram_worth(parts.grams, row.text) if parts.grams else 0.0
    for one in found:
        worth.setdefault(one.chunk_id, parts.by_grams.get(one.chunk_id, 0.0) + parts.by_literals.get(one.chunk_id, 0.0))
    known = {one.sha256: one for one in found}
    for chunk_id, row in rows.items():
        known.setdefault(row.sha256, Candidate(chunk_id, row.document_id, row.sha256))
    summed = [
        replace(one, strength=min(1.0, one.strength + worth.get(one.chunk_id, 0.0) / ceiling)) for one in known.values()
    ]
    return sorted(summed, key=lambda one: -one.strength)[: max(BY_WORDS, len(found))]


def _best_visible(session: Session, worth: Mapping[int, float], most: int, scope: Scope) -> dict[int, Located]:
    """The visible ones among the best, each with its text; tried from the best on until there are enough."""
    ranked = sorted(worth, key=lambda chunk_id: (-worth[chunk_id], chunk_id))
    rows: dict[int, Located] = {}
    for start in range(0, len(ranked), most):
        rows |= candidates.located(session, ranked[start : start + most], scope)
        if len(rows) >= most:
            break
    return rows


def _gram_worth(weighted: Iterable[grams.WeightedGram], text: str) -> float:
    folded = fold(text)
    counts = ((one.idf, folded.count(one.gram)) for one in weighted)
    return sum(idf * count * (_K1 + 1) / (count + _K1) for idf, count in counts if count)
