"""Which words of a sentence carry meaning, and how alike two sentences are by them. Pure.

Used by `app.rag.citations` (which sentence of a passage supports a claim), `app.rag.quoting` (which sentences answer a
question) and `app.rag.gate` (does a question lean on the one before). Search has its own ways with words; this is for
texts of a few hundred words that are already at hand.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"[^\W_]+(?:[_.:/@-]+[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the and or but nor so yet if then else than as at by for from in into of off on onto out over per to up
        upon via with within without about after again against all also am any are aren be because been before being
        below between both can cannot could couldn did didn do does doesn doing don done down during each either few
        further get gets got had hadn has hasn have haven having he her here hers him his how i is isn it its itself
        just let ll m may me might more most must my myself need no not now one only other our ours own please s same
        shall she should shouldn some such t that their theirs them themselves there these they this those though
        through thus too under until us use used uses using ve very was wasn we were weren what when where whether
        which while who whom whose why will won would wouldn you your yours yourself
        der die das den dem des ein eine einen einem einer und oder aber nicht ist sind war im in zu zum zur mit von
        vom für auf an als auch wie was wer wo wenn dass ich du er sie es wir ihr mein habe haben hat kann wird werden
        el la los las un una unos unas y o pero no es son de del al en con por para que qué cómo si mi su se lo
        le les et ou mais pas est sont du des dans avec pour sur qui que quoi comment je il elle nous vous mon ma
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Word:
    """A content word at `text[start:end]`; `stem` is what is compared."""

    stem: str
    start: int
    end: int


def content_words(text: str) -> list[Word]:
    """The words of `text` that carry meaning, in order, with their places.

    A compound (`--keep-within`, `max_retries`, `127.0.0.1:8384`) counts as itself and as each of its parts; Chinese,
    Japanese and Korean text is taken by pairs of characters.
    """
    found: list[Word] = []
    for token in _TOKEN.finditer(text):
        whole = token.group().lower()
        if _CJK.search(whole):
            found.extend(_pairs(whole, token.start()))
            continue
        parts = list(_PART.finditer(text, token.start(), token.end()))
        if len(parts) > 1:
            found.append(Word(whole, token.start(), token.end()))
        for part in parts:
            word = part.group().lower()
            if word not in STOP_WORDS and (len(word) > 1 or word.isdigit()):
                found.append(Word(stem(word), part.start(), part.end()))
    return found


def stems(text: str) -> set[str]:
    """The distinct content words of `text`."""
    return {word.stem for word in content_words(text)}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """`word` without its commonest English endings (`backups` and `backup` meet), number words as digits."""
    if word in _NUMBERS:
        return _NUMBERS[word]
    if len(word) < 4 or any(character.isdigit() for character in word):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and (len(word) - len(ending) >= 3 or ending == instead):
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sle":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word[-1] in "ey" else word


_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
_ENDINGS = (
    ("ization", "iz"),
    ("isation", "iz"),
    ("ations", "at"),
    ("ation", "at"),
    ("ments", ""),
    ("ment", ""),
    ("ings", ""),
    ("ing", ""),
    ("ies", "y"),
    ("ied", "y"),
    ("ers", "er"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ed", ""),
    ("ly", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
)


def rarity(texts: Iterable[set[str]]) -> dict[str, float]:
    """How much each word tells, given sets of words: ln(1 + N / n), and half as much again for words with digits."""
    counts: dict[str, int] = {}
    total = 0
    for words in texts:
        total += 1
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    return {
        word: math.log(1 + total / count) * (1.5 if any(character.isdigit() for character in word) else 1.0)
        for word, count in counts.items()
    }


def weight(words: Iterable[str], rarities: Mapping[str, float]) -> float:
    """The summed rarity of `words`; a word that was never counted tells nothing."""
    return sum(rarities.get(word, 0.0) for word in words)


def _pairs(token: str, offset: int) -> list[Word]:
    if len(token) == 1:
        return [Word(token, offset, offset + 1)]
    return [Word(token[at : at + 2], offset + at, offset + at + 2) for at in range(len(token) - 1)]
