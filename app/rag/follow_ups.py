"""Does a question lean on the talk before it, and what does it mean then? By rule, without a model. Pure.

Used by `app.rag.gate` (what to search for) and by the built-in answerer (what to look for in the passages).
"""

import re
from collections.abc import Sequence

from app.rag.prompts import PastTurn
from app.rag.words import content_words

_PAST_QUESTIONS = 2
_PAST_CHARS = 400
_POINTER_WORDS = 12
_SHORT_WORDS = 2
_MANY_WORDS = 6

_OPENER = re.compile(
    r"\W*(?:(?:and|but|so|also|then|or|ok(?:ay)?|what about|how about|what if|"
    r"und|aber|auch|oder|was ist mit|y|pero|et|mais)\b|(?:why|why not|warum)\W*$|那)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|itself|they|them|their|theirs|he|she|him|her|the same|the former|the latter|the other one|"
    r"dies|dieses|ihn|ihm|dafür|damit|davon|darin|eso|esto|ello|cela)\b|它|这个|那个",
    re.IGNORECASE,
)
_POINTER = re.compile(r"\b(?:this|that|these|those|then|instead|otherwise|one|ones|das|es)\b", re.IGNORECASE)


def leans(question: str) -> bool:
    """Whether `question` reads as the continuation of a talk: it opens with "and" or the like, holds a pronoun, points
    at something (only in a question of up to 12 words, where "that" is rarely a conjunction), or has at most two
    content words."""
    if _OPENER.match(question) or _PRONOUN.search(question):
        return True
    pointing = len(question.split()) <= _POINTER_WORDS and _POINTER.search(question) is not None
    return pointing or _is_short(question)


def queries_for(question: str, history: Sequence[PastTurn]) -> list[str]:
    """What to search for, the first being the one to prefer; the next is tried when nothing close enough was found.

    A question that leans on what came before is searched with the questions it leans on: the last one, and the one
    before that too if the last one leans itself.
    """
    if not history or not leans(question):
        return [question]
    past: list[str] = []
    for turn in reversed(history[-_PAST_QUESTIONS:]):
        past.insert(0, turn.question.strip()[:_PAST_CHARS])
        if not leans(turn.question):
            break
    together = " ".join([*past, question])
    return [together, question] if _could_stand_alone(question) else [together]


def _could_stand_alone(question: str) -> bool:
    """Whether the question by itself is worth a search: "can I get a new one?" would only find other things."""
    points_back = _OPENER.match(question) or _PRONOUN.search(question)
    return not points_back or _count(question) >= _MANY_WORDS


def _is_short(question: str) -> bool:
    return _count(question) <= _SHORT_WORDS


def _count(question: str) -> int:
    return len({word.start for word in content_words(question)})
