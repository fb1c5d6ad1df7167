"""Where the words of a passage stand among the characters of a PDF page. Pure.

Called by `pdf_page`. Extraction joins lines, takes hyphens out, puts columns one after the other and cells into rows;
so neither offsets nor white space can be carried over. What survives all of it is the order of letters and digits
within a line. A passage is therefore found as runs of letters: at each place the longest run that the page has, cut
back to whole words, so that a run does not reach into the column beside it.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_SEED = 6
"""Letters that have to be the same before a place is looked at; a seed that stands at more places says nothing."""
_MOST_PLACES = 64
_STRONG = 20
"""Letters of a run that are no coincidence; shorter runs count only beside such a one."""
_NEAR = 24
_MOST_TRIMMED = 8
MAX_LETTERS = 60_000


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters and digits of a text, case and form evened out: `text[i]` comes from `origins[i]` of the source,
    `begins[i]` says whether a word begins there."""

    text: str
    origins: Sequence[int]
    begins: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Run:
    """`length` letters that are the same from `passage_at` and from `page_at` on."""

    passage_at: int
    page_at: int
    length: int

    @property
    def passage_end(self) -> int:
        """The first letter of the passage after it."""
        return self.passage_at + self.length


def letters_of(characters: Sequence[str]) -> Letters:
    """The letters of a sequence of characters (a text, or a page's list), at most `MAX_LETTERS`."""
    text: list[str] = []
    origins: list[int] = []
    begins: list[bool] = []
    fresh = True
    for origin, character in enumerate(characters):
        found = [part for part in unicodedata.normalize("NFKD", character).casefold() if part.isalnum()]
        if not found:
            fresh = fresh or not _is_mark(character)
        for part in found:
            text.append(part)
            origins.append(origin)
            begins.append(fresh)
            fresh = False
        if len(text) >= MAX_LETTERS:
            break
    return Letters("".join(text), origins, begins)


def find_runs(page: Letters, passage: Letters) -> list[Run]:
    """The runs of `passage` that `page` has, in the passage's order; none overlap on either side. Empty where nothing
    longer than a coincidence is on the page."""
    finder = _Finder(page, passage.text)
    runs = finder.long_runs()
    strong = min(_STRONG, max(1, (len(passage.text) + 1) // 2))
    anchors = [run for run in runs if run.length >= strong]
    if not anchors and len(passage.text) >= _SEED:
        return []
    kept = [run for run in runs if run.length >= strong or _is_beside(run, anchors)]
    return finder.with_gaps(kept)


def _is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it, or is what a word is broken with: no word begins after it."""
    return unicodedata.category(character[:1] or " ") in ("Mn", "Cf")


def _is_beside(run: Run, anchors: Sequence[Run]) -> bool:
    return any(
        run.passage_at - anchor.passage_end <= _NEAR and anchor.passage_at - run.passage_end <= _NEAR
        for anchor in anchors
    )


class _Finder:
    """Looks a passage's letters up in a page's, taking each letter of the page once."""

    def __init__(self, page: Letters, passage: str) -> None:
        self._page = page
        self._passage = passage
        self._taken = bytearray(len(page.text))
        self._seeds: dict[str, list[int]] = {}
        for at in range(len(page.text) - _SEED + 1):
            places = self._seeds.setdefault(page.text[at : at + _SEED], [])
            if len(places) <= _MOST_PLACES:
                places.append(at)

    def long_runs(self) -> list[Run]:
        """From left to right, the longest run at each place."""
        runs: list[Run] = []
        at, expected = 0, 0
        while at <= len(self._passage) - _SEED:
            run = self._longest(at, expected)
            if run is None:
                at += 1
                continue
            self._take(run)
            runs.append(run)
            at, expected = run.passage_end, run.page_at + run.length
        return runs

    def with_gaps(self, runs: Sequence[Run]) -> list[Run]:
        """`runs` and what lies between them and at the ends where it is on the page as whole words: last lines of
        paragraphs, words that stand alone."""
        self._taken = bytearray(len(self._page.text))
        for run in runs:
            self._take(run)
        found: list[Run] = []
        start, expected = 0, runs[0].page_at if runs else 0
        for run in [*runs, None]:
            end = run.passage_at if run else len(self._passage)
            gap = self._gap(start, end, expected) if 0 < end - start <= _NEAR else None
            if gap is not None:
                self._take(gap)
                found.append(gap)
            if run is not None:
                found.append(run)
                start, expected = run.passage_end, run.page_at + run.length
        return found

    def _longest(self, at: int, expected: int) -> Run | None:
        places = self._seeds.get(self._passage[at : at + _SEED], [])
        if len(places) > _MOST_PLACES:
            places = [expected] if self._page.text.startswith(self._passage[at : at + _SEED], expected) else []
        best = max((self._rank(at, place, expected) for place in places), default=(0, False, 0, 0))
        length, place = best[0], best[3]
        return Run(at, place, self._whole_words(place, length)) if length >= _SEED else None

    def _rank(self, at: int, place: int, expected: int) -> tuple[int, bool, int, int]:
        """How good a place is: its run's length, then whether it lies ahead, and how near."""
        return self._reach(at, place), place >= expected, -abs(place - expected), place

    def _reach(self, at: int, place: int) -> int:
        page, passage = self._page.text, self._passage
        length = 0
        limit = min(len(passage) - at, len(page) - place)
        while length < limit and passage[at + length] == page[place + length] and not self._taken[place + length]:
            length += 1
        return length

    def _whole_words(self, place: int, length: int) -> int:
        """`length`, or less where the run ends within a word of the page that began just before."""
        end = place + length
        if end >= len(self._page.text) or self._page.begins[end]:
            return length
        for back in range(1, min(_MOST_TRIMMED, length - _SEED) + 1):
            if self._page.begins[end - back]:
                return length - back
        return length

    def _gap(self, start: int, end: int, expected: int) -> Run | None:
        words = self._passage[start:end]
        best: Run | None = None
        place = self._page.text.find(words)
        while place >= 0:
            if self._is_free(place, len(words)) and (
                best is None or abs(place - expected) < abs(best.page_at - expected)
            ):
                best = Run(start, place, len(words))
            place = self._page.text.find(words, place + 1)
        return best

    def _is_free(self, place: int, length: int) -> bool:
        end = place + length
        whole = self._page.begins[place] and (end == len(self._page.text) or self._page.begins[end])
        return whole and not any(self._taken[place:end])

    def _take(self, run: Run) -> None:
        self._taken[run.page_at : run.page_at + run.length] = b"\x01" * run.length
