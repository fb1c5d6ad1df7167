"""A passage that was found, as lists show it: its place in words, and the stretch that holds what was looked for, in
parts. Pure.

Used by `app.web.search_view` (the search page and the library's hits) and `app.web.reader_view`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.catalog import Catalog
from app.rag.words import STOP_WORDS

SNIPPET_CHARS = 320

_RULER = re.compile(r"([^\w\s])\1{3,}")
"""What underlines a heading or rules a table in plain text: a row of signs, no words."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a snippet; `marked` where a word of the query stands."""

    text: str
    marked: bool


def place_words(page: object, lines: tuple[object, object], catalog: Catalog) -> str:
    """`lines 15–23`, `line 15` or `p. 7`; empty where neither page nor line is known."""
    first, last = lines
    if page:
        return catalog.t("reader.page", page=page)
    if not first:
        return ""
    if first == last or not last:
        return catalog.t("reader.line", start=first)
    return catalog.t("reader.lines", start=first, end=last)


def marked(text: str, words: str) -> tuple[Part, ...]:
    """The stretch of `text` that holds the most of the words, in parts.

    A word is marked with what it ends in, inside of other words only where it stands nowhere by itself; writing without
    spaces is marked wherever it stands, words like "the" only where nothing else is looked for.
    """
    flat = " ".join(_RULER.sub(" ", text).split())
    pattern = _pattern(words)
    if not pattern.search(flat):
        pattern = _within(words)
    start, end = _best(flat, [(match.start(), match.group().casefold()) for match in pattern.finditer(flat)])
    parts: list[Part] = [Part("… ", False)] if start else []
    shown, at = flat[start:end], 0
    for match in pattern.finditer(shown):
        parts += [Part(shown[at : match.start()], False), Part(match.group(), True)]
        at = match.end()
    parts.append(Part(shown[at:] + (" …" if end < len(flat) else ""), False))
    return tuple(part for part in parts if part.text)


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile("|".join(map(_ending, _wanted(words))) or r"(?!)", re.IGNORECASE)


def _within(words: str) -> re.Pattern[str]:
    """Finds words inside of others, as search does by parts of words of three letters and more."""
    parts = [re.escape(word) for word in _wanted(words) if len(word) > 2]
    return re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)


def _wanted(words: str) -> list[str]:
    found = sorted({word for word in re.findall(r"\w+", words) if len(word) > 1}, key=len, reverse=True)
    return [word for word in found if word.lower() not in STOP_WORDS] or found


def _ending(word: str) -> str:
    """A word with what it may end in: three letters, one for a short word, which would else begin many others."""
    if not word.isascii() and not _has_case(word):
        return re.escape(word)
    return rf"\b{re.escape(word)}[^\W_]{{0,{3 if len(word) > 3 else 1}}}" + ("" if len(word) > 3 else r"(?![^\W_])")


def _has_case(word: str) -> bool:
    """Whether a word is of a script with capitals, which all part their words by spaces."""
    return word.lower() != word.upper()


def _best(text: str, marks: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Start and end of a stretch that holds as many different words as one of its length can."""
    if len(text) <= SNIPPET_CHARS:
        return 0, len(text)
    starts = [max(0, at - SNIPPET_CHARS // 5) for at, _ in marks] or [0]
    kinds = [len({word for at, word in marks if start <= at < start + SNIPPET_CHARS - 20}) for start in starts]
    start = starts[max(range(len(starts)), key=lambda place: (kinds[place], -place))]
    if start:
        space = text.find(" ", start)
        start = space + 1 if 0 <= space < start + 30 else start
    space = text.rfind(" ", start + SNIPPET_CHARS - 30, start + SNIPPET_CHARS)
    end = min(len(text), space if space > 0 and start + SNIPPET_CHARS < len(text) else start + SNIPPET_CHARS)
    return start, end
