"""Checks an answer's citations without a model: does the passage exist, and which of its sentences supports the claim.

Pure. Called by `app.api` after the answer. Owns the check and the rows of `sources` in frames and messages;
where markers stand is `app.rag.markers`' business, how a citation looks is the renderer's.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from app.rag.markers import Marker, find_markers
from app.rag.numbers import number_words
from app.rag.pieces import Passage
from app.rag.quote_cut import cut_quote
from app.rag.words import Word, content_words, rarity, weight
from app.render.sentences import Sentence, sentences

_LEAST_SHARE = 0.3
"""Of a claim's words, where only one is shared: below, that one is a coincidence and backs nothing."""
_MARK_GAP = 24
"""Supporting words with no more than this many characters between them are marked as one."""


@dataclass(frozen=True, slots=True)
class Support:
    """The sentence of a passage that backs a claim: `passage.text[start:end]`, and in the canonical text of its
    document `[char_start:char_end]`. `marks` are the spans of the words shared with the claim, in the passage's
    text."""

    start: int
    end: int
    char_start: int
    char_end: int
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Cite:
    """One valid number of one marker. `answer[start:end]` is the whole marker (`[1, 2]` makes two cites with the same
    span), `answer[said_start:said_end]` the sentence that it backs; `support` is None when nothing overlaps."""

    n: int
    start: int
    end: int
    said_start: int
    said_end: int
    support: Support | None


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """`valid` and `dropped` count numbers in markers. `dropped_spans` are markers without one valid number: they are
    not shown."""

    valid: int
    dropped: int
    cites: tuple[Cite, ...]
    dropped_spans: tuple[tuple[int, int], ...]


def check(answer: str, passages: Sequence[Passage]) -> CitationCheck:
    """Checks every marker of `answer` against the passages that the model was given."""
    readers = {passage.n: _PassageReader(passage) for passage in passages}
    markers = find_markers(answer)
    claims = _claims(answer, markers)
    cites: list[Cite] = []
    dropped = 0
    dropped_spans: list[tuple[int, int]] = []
    for marker, claim in zip(markers, claims, strict=True):
        numbers = [n for n in marker.numbers if n in readers]
        dropped += len(marker.numbers) - len(numbers)
        if not numbers:
            dropped_spans.append((marker.start, marker.end))
        for n in numbers:
            support = readers[n].support(claim.words)
            cites.append(Cite(n, marker.start, marker.end, claim.start, claim.end, support))
    return CitationCheck(len(cites), dropped, tuple(cites), tuple(dropped_spans))


@dataclass(frozen=True, slots=True)
class _Claim:
    start: int
    end: int
    words: set[str]


def _claims(answer: str, markers: Sequence[Marker]) -> list[_Claim]:
    """For each marker the sentence it backs: the one it stands in, or the one before where it stands alone."""
    units = sentences(answer)
    cuts = [marker.start for marker in markers]
    known: dict[int, _Claim] = {}
    claims: list[_Claim] = []
    at = 0
    for marker in markers:
        while at + 1 < len(units) and units[at + 1].start <= marker.start:
            at += 1
        if at not in known and units:
            candidates = [_claim(answer, units[back], markers, cuts) for back in range(at, max(at - 3, -1), -1)]
            known[at] = next((claim for claim in candidates if claim.words), candidates[0])
        claims.append(known.get(at) or _Claim(marker.start, marker.end, set()))
    return claims


def _claim(answer: str, unit: Sentence, markers: Sequence[Marker], cuts: Sequence[int]) -> _Claim:
    own = markers[bisect_left(cuts, unit.start) : bisect_left(cuts, unit.end)]
    edges = [unit.start, *(edge for marker in own for edge in (marker.start, marker.end)), unit.end]
    words: set[str] = set()
    for start, end in list(pairwise(edges))[::2]:
        words |= {word.stem for word in _words(answer[start:end])}
    return _Claim(unit.start, unit.end, words)


class _PassageReader:
    """A passage cut into sentences once, however often it is cited."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._units = [unit for unit in sentences(passage.text) if unit.kind != "heading"] or sentences(passage.text)
        self._words = [_shift(_words(passage.text[unit.start : unit.end]), unit.start) for unit in self._units]
        self._stems = [{word.stem for word in words} for words in self._words]
        self._rarity = rarity(self._stems)

    def support(self, claim: set[str]) -> Support | None:
        """The sentence that shares most with `claim`, by the rarity of the shared words; of equals the one that says
        the least besides."""
        best: tuple[float, int] | None = None
        for at, words in enumerate(self._stems):
            shared = words & claim
            if len(shared) > 1 or len(shared) > _LEAST_SHARE * len(claim):
                score = weight(shared, self._rarity) - 0.02 * weight(words - shared, self._rarity)
                if best is None or score > best[0]:
                    best = (score, at)
        return None if best is None else self._support(best[1], claim)

    def _support(self, at: int, claim: set[str]) -> Support:
        unit, offset = self._units[at], self._passage.char_start
        marks: list[tuple[int, int]] = []
        for word in self._words[at]:
            if word.stem not in claim:
                continue
            if marks and word.start - marks[-1][1] <= _MARK_GAP:
                marks[-1] = (marks[-1][0], max(marks[-1][1], word.end))
            else:
                marks.append((word.start, word.end))
        return Support(unit.start, unit.end, offset + unit.start, offset + unit.end, tuple(marks))


def _words(text: str) -> list[Word]:
    """What is compared: content words, and numbers by their value too, in order."""
    return sorted([*content_words(text), *number_words(text)], key=lambda word: (word.start, word.end))


def _shift(words: Sequence[Word], offset: int) -> list[Word]:
    return [Word(word.stem, word.start + offset, word.end + offset) for word in words]


def source_rows(passages: Sequence[Passage], check: CitationCheck | None) -> list[dict[str, Any]]:
    """The `sources` of a frame or message, one row per passage, in order.

    Without a check (frame `start`): n, document_id, chunk_id, path, title, heading, page, score. With one (`done`,
    `messages.sources`) also line_start, line_end, char_start, char_end, cited, quote, marks, support, supports: `quote`
    is a cut of the passage (`quote_cut`); `marks` are `[start, end]` in the quote; `supports` has for each mention of
    the source, in the answer's order, the `[char_start, char_end]` of its supporting sentence in the document's
    canonical text, or None; `support` is the first of them that there is.
    """
    if check is None:
        return [_start_row(passage) for passage in passages]
    supports: dict[int, list[Support | None]] = {}
    for cite in check.cites:
        supports.setdefault(cite.n, []).append(cite.support)
    return [_done_row(passage, supports.get(passage.n, ())) for passage in passages]


def _start_row(passage: Passage) -> dict[str, Any]:
    return {
        "n": passage.n,
        "document_id": passage.document_id,
        "chunk_id": passage.chunk_id,
        "path": passage.path,
        "title": passage.title,
        "heading": passage.heading,
        "page": passage.page,
        "score": round(passage.score, 3),
    }


def _done_row(passage: Passage, supports: Sequence[Support | None]) -> dict[str, Any]:
    first = next((found for found in supports if found is not None), None)
    quote, marks = cut_quote(passage.text, first and first.start, first.marks if first else ())
    return {
        **_start_row(passage),
        "line_start": passage.line_start,
        "line_end": passage.line_end,
        "char_start": passage.char_start,
        "char_end": passage.char_end,
        "cited": bool(supports),
        "quote": quote,
        "marks": [list(mark) for mark in marks],
        "support": _span(first),
        "supports": [_span(found) for found in supports],
    }


def _span(support: Support | None) -> list[int] | None:
    return None if support is None else [support.char_start, support.char_end]
