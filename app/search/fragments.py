"""What of a question the word index can't match: writing without spaces, and names that are more or less than a word.

Owns which parts of a question are looked up as substrings, and which of them stand in a passage. Pure; the look-up is
`app.search.grams`'.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.search.stopwords import STOP_WORDS

MOST_GRAMS = 64
MOST_LITERALS = 8
LITERAL_CHARS = (3, 100)

_PAIRED = (
    "\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Han, kana, bopomofo and hangul: two characters are a word as often as not."""

_TRIPLED = "\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Tibetan, Burmese and Khmer: letters and marks, of which two tell little."""

_RUN = re.compile(f"([{_PAIRED}]+)|([{_TRIPLED}]+)")
_LATIN = re.compile(r"[A-Za-z0-9]{3,}")
_EDGES = re.compile(r"^[^\w\-./$@\\~]+|[^\w/]+$")
_INNER = re.compile(r"\w[._:/\\@=#-]+\w")
_HYPHENED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_LEADING = re.compile(r"(?:--?|\$|\.|/|~/|@)\w")
_CAMEL, _UPPER, _LETTER, _DIGIT = (re.compile(one) for one in (r"[a-z][A-Z]", r"[A-Z_]{4,}\d*", r"[^\W\d_]", r"\d"))
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Fragments:
    """The parts of a question to be looked up as substrings, all case-folded as the index folds.

    `grams` are of writing without spaces, one to three characters; `joined` are names held together by punctuation
    (`--log.level`), which the word index takes apart; `names` look like identifiers but are one word to it (`UserBy`),
    so that they count only where it does not know them. `rest` is the question without what became grams.
    """

    rest: str
    grams: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.grams or self.joined or self.names)


def fragments_of(question: str) -> Fragments:
    """What to look up as substrings; nothing for most questions."""
    runs = _RUN.findall(question)
    rest = _RUN.sub(" ", question)
    grams = [gram for paired, tripled in runs for gram in _grams(paired or tripled, 2 if paired else 3)]
    tokens = [_EDGES.sub("", token) for token in rest.split()]
    joined = [fold(token) for token in tokens if _fits(token) and _is_joined(token)]
    names = [fold(token) for token in tokens if _fits(token) and _is_name(token)]
    glued = [fold(token) for token in _LATIN.findall(rest) if grams]
    literals = (_first(some, MOST_LITERALS) for some in (joined, names, glued))
    return Fragments(rest, _first(grams, MOST_GRAMS), *literals)


def fold(text: str) -> str:
    """Small letters, one character for each one, as the index and SQLite's `lower` fold them: only A to Z."""
    return "".join(one.lower() if one.isascii() else one for one in text)


def grams_in(grams: Iterable[str], passage: str) -> set[str]:
    """Those of `grams` that stand in a passage."""
    return {gram for gram in grams if gram in passage}


def _grams(run: str, length: int) -> list[str]:
    return [run[at : at + length] for at in range(max(1, len(run) - length + 1))]


def _fits(token: str) -> bool:
    return LITERAL_CHARS[0] <= len(token) <= LITERAL_CHARS[1]


def _is_joined(token: str) -> bool:
    """Whether punctuation inside or before it is part of what it says; not `up-to-date`, `and/or`, nor `e.g`."""
    words = _WORD.findall(token)
    if _HYPHENED.fullmatch(token) or all(len(word) == 1 or word.casefold() in STOP_WORDS for word in words):
        return False
    return bool(_INNER.search(token) or _LEADING.match(token))


def _is_name(token: str) -> bool:
    is_mixed = bool(_LETTER.search(token) and _DIGIT.search(token))
    return bool(_WORD.fullmatch(token) and (is_mixed or _CAMEL.search(token) or _UPPER.fullmatch(token)))


def _first(parts: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parts))[:most]
