"""Which sentences of the given passages answer a question best, by words alone. Pure and deterministic.

Used by `app.rag.quoting`. A candidate is a sentence, a table row, or a block of code with the sentence that introduces
it. It is valued by the question's words it holds (rare ones count more), by those its heading and its neighbours hold,
and by the rank of its passage; then candidates are taken one by one so that each says something new.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.rag.prompts import GivenPassage
from app.rag.words import rarity, stems, weight
from app.render.sentences import Sentence, sentences

MOST = 5
_USUAL = 3
_HEADING_SHARE = 0.6
_NEIGHBOUR_SHARE = 0.25
_RANK_LOSS = 0.12
_CODE_LINES = 14
_CODE_CHARS = 600
_SAME = 0.65
_WORTH = 0.5
_WORTH_AT_FIRST = 0.2
_PER_PASSAGE = 3

_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|often|big|large|old)|when|size|ports?|version|minimum|maximum|limit|"
    r"defaults?|timeout|interval|retention|code|cost|wie ?(?:viele?|lange|oft)|cuánt\w+|combien)\b"
    r"|多少|几",
    re.IGNORECASE,
)
_ASKS_HOW = re.compile(
    r"\b(?:how (?:do|can|to|should|would)|command|flag|option|set up|install|configure|enable|disable|reset|"
    r"wie|cómo|comment)\b|怎么|如何",
    re.IGNORECASE,
)
_OPTION = re.compile(r"[`*]*--?[A-Za-z]")
_FRAGMENT = re.compile(r"[a-z]+[ ,;]|[,;)\]]|E\.g\.|For (?:example|instance)\b")
"""An item or an example that goes on with what stands above it: it says little alone."""
_COMMAND = re.compile(r"`[^`\n]*[\w-][^`\n]*`")


@dataclass(frozen=True, slots=True)
class Quote:
    """A chosen stretch of a passage: `passage.text[unit.start:unit.end]` for each of `units`, which follow each
    other."""

    passage: GivenPassage
    units: tuple[Sentence, ...]


def choose(question: str, meant: str, passages: Sequence[GivenPassage]) -> list[list[Quote]]:
    """The best quotes (at most 5), in groups of one passage each: the best group first, in each group the best quote
    and then the others in the text's order. Empty only when the passages hold no sentence.

    Args:
        question: The question as asked; its own words count double.
        meant: The question with those before it that it leans on.
    """
    candidates = [candidate for rank, passage in enumerate(passages) for candidate in _candidates(passage, rank)]
    own = stems(question)
    asked = own | stems(meant)
    told = rarity([candidate.words for candidate in candidates])
    told = {word: told[word] * (1 if word in own else 0.5) for word in asked if word in told}
    total = weight(asked, told) or 1.0
    for candidate in candidates:
        candidate.value = _value(candidate, asked, told, question) / total
    chosen = _take(candidates, asked, told, total)
    return _grouped(chosen)


@dataclass(slots=True)
class _Candidate:
    quote: Quote
    rank: int
    place: int
    words: set[str]
    around: set[str]
    heading: set[str]
    text: str
    value: float = 0.0

    @property
    def is_code(self) -> bool:
        return self.quote.units[-1].kind == "code"


def _candidates(passage: GivenPassage, rank: int) -> list[_Candidate]:
    units = sentences(passage.text)
    found: list[_Candidate] = []
    heading = stems(f"{passage.path} {passage.title} {passage.heading}")
    at = 0
    while at < len(units):
        taken = _together(passage.text, units, at)
        at += len(taken)
        if taken[0].kind == "heading":
            heading = heading | stems(passage.text[taken[0].start : taken[0].end])
            continue
        text = passage.text[taken[0].start : taken[-1].end]
        quote = Quote(passage, taken)
        found.append(_Candidate(quote, rank, len(found), stems(text), set(), heading, text))
    for here, following in pairwise(found):
        here.around |= following.words
        following.around |= here.words
    return found


def _together(text: str, units: Sequence[Sentence], at: int) -> tuple[Sentence, ...]:
    """The unit at `at`, with what it only introduces."""
    unit = units[at]
    if unit.kind != "prose" or at + 1 == len(units):
        return (unit,)
    following = units[at + 1]
    introduces = text[unit.start : unit.end].rstrip("*_ ").endswith(":")
    if following.kind == "code" and (introduces or unit.end - unit.start < 200):
        return (unit, following)
    return (unit, following) if introduces and following.kind == "prose" else (unit,)


def _value(candidate: _Candidate, asked: set[str], told: dict[str, float], question: str) -> float:
    own = weight(candidate.words & asked, told)
    context = weight((candidate.heading & asked) - candidate.words, told)
    around = weight((candidate.around & asked) - candidate.words - candidate.heading, told)
    value = own + _HEADING_SHARE * context + _NEIGHBOUR_SHARE * around
    if own and re.search(r"\d", candidate.text) and _ASKS_NUMBER.search(question):
        value *= 1.25
    is_command = candidate.is_code or (_COMMAND.search(candidate.text) and not _OPTION.match(candidate.text))
    if own and is_command and _ASKS_HOW.search(question):
        value *= 1.15
    value += 0.02 / (1 + candidate.place)
    return value * _fitness(candidate) / (1 + _RANK_LOSS * candidate.rank)


def _fitness(candidate: _Candidate) -> float:
    """Less for what is too short to say anything, too long to read, or a question itself."""
    count = len(candidate.text.split())
    if candidate.is_code:
        return 0.5 if candidate.text.count("\n") > _CODE_LINES or len(candidate.text) > _CODE_CHARS else 1.0
    if count < 4:
        return 0.5
    if candidate.text.rstrip().endswith("?") or _is_label(candidate.text.split()):
        return 0.6
    whole = 0.8 if _FRAGMENT.match(candidate.text) else 1.0
    return whole if count <= 45 else max(0.3, 45 / count)


def _is_label(words: Sequence[str]) -> bool:
    """Names or settings in a row rather than a sentence: hardly a word in small letters that is no
    `key="value"` and no `key:`."""
    small = sum(word[:1].islower() and "=" not in word and not word.endswith(":") for word in words)
    return len(words) > 3 and small < 0.3 * len(words)


def _take(candidates: Sequence[_Candidate], asked: set[str], told: dict[str, float], total: float) -> list[_Candidate]:
    """Greedy: the best of what is left, where words of the question that are already covered count half."""
    chosen: list[_Candidate] = []
    covered: set[str] = set()
    left = list(candidates)
    best = max((candidate.value for candidate in left), default=0.0)
    while left and len(chosen) < MOST:
        gains = [
            candidate.value
            - 0.5 * weight(candidate.words & asked & covered, told) / total / (1 + _RANK_LOSS * candidate.rank)
            for candidate in left
        ]
        at = max(range(len(left)), key=lambda place: (gains[place], -place))
        candidate = left.pop(at)
        if candidate.value < best * (_WORTH_AT_FIRST if len(chosen) < _USUAL else _WORTH):
            continue
        if _repeats(candidate, chosen):
            continue
        chosen.append(candidate)
        covered |= candidate.words & asked
    return chosen


def _repeats(candidate: _Candidate, chosen: Sequence[_Candidate]) -> bool:
    """Whether it says much the same as one that is chosen, or its passage has had its say."""
    if sum(other.quote.passage.n == candidate.quote.passage.n for other in chosen) >= _PER_PASSAGE:
        return True
    for other in chosen:
        union = len(candidate.words | other.words)
        if union and len(candidate.words & other.words) / union >= _SAME:
            return True
    return False


def _grouped(chosen: Sequence[_Candidate]) -> list[list[Quote]]:
    groups: dict[int, list[_Candidate]] = {}
    for candidate in chosen:
        groups.setdefault(candidate.quote.passage.n, []).append(candidate)
    return [
        [group[0].quote, *(other.quote for other in sorted(group[1:], key=lambda other: other.place))]
        for group in groups.values()
    ]
