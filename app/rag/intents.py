"""Which kind of question is asked: an ordinary one, one about a whole document, or one about the catalogue. Pure.

Owns reading the question's form, by rule and without a model, in a handful of languages. Whether the document that a
question names exists is for `app.api.turn_whole` to find out: a form that fits no document is an ordinary question
after all. A question wrongly taken for a special one is worse than one that is missed: the forms stand for the whole
question (`app.rag.intent_patterns`), and anything longer than a few lines is ordinary.
"""

import re
from dataclasses import dataclass
from typing import Literal

from app.rag.intent_patterns import (
    AFTER_NAME,
    ALL_DOCUMENTS,
    BEFORE_NAME,
    IT,
    LISTS,
    MANNER,
    MENTIONS,
    POLITE,
    SUMMARIES,
    TRANSLATIONS,
)

_LONGEST = 300
_MOST_WORDS = 10
_AROUND = " \t\n.?!。？！¿¡…,;:"
_QUOTES = "\"'“”„‟«»‘’「」`"
_BEFORE_WORDS = re.compile(
    r"(?:the (?:words?|terms?|phrases?|names?|topics?|string) |something about |anything about |das wort |"
    r"die wörter |la palabra |le mot )",
    re.IGNORECASE,
)
_AFTER_WORDS = re.compile(
    r"\s+(?:at all|anywhere|in (?:my|the|our|this) (?:library|documents|collection|notes|files)|in it|"
    r"and how many|the most)$",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"(?:it|this|that|these|those|them|they|one|him|her|es|das|sie|esto|eso|cela|ça|它|这个|那个)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A question that only all of one document answers.

    `names` are the words that may name it, likeliest first. Without names, `is_bare` says that the question speaks of
    the document that is being talked about ("summarise it"); else it holds only where a document is fixed by other
    means. `task` `translate` needs the text itself, not what was noted about its parts.
    """

    names: tuple[str, ...]
    is_bare: bool
    task: Literal["summary", "list", "translate"] = "summary"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A question about which documents there are: those that mention `words`, all of them where it is empty. A phrase
    that has to stand word for word is in double quotes."""

    words: str


def read_intent(question: str) -> WholeDocument | Catalogue | None:
    """What `question` asks for by its form; None for an ordinary question."""
    asked = _plain(question)
    if not asked:
        return None
    if any(form.fullmatch(asked) for form in ALL_DOCUMENTS):
        return Catalogue("")
    for form in MENTIONS:
        if found := form.fullmatch(asked):
            words = _words(found.group("words"))
            return Catalogue(words) if words else None
    return _whole(asked)


def _whole(asked: str) -> WholeDocument | None:
    for form in LISTS:
        if found := form.fullmatch(asked):
            return WholeDocument(_names_at_end(found.group("rest")), is_bare=False, task="list")
    for form in TRANSLATIONS:
        if found := form.fullmatch(asked):
            return _about(found.group("x"), "translate")
    for form in SUMMARIES:
        if found := form.fullmatch(asked):
            return _about(found.groupdict().get("x") or "", "summary")
    return None


def _about(name: str, task: Literal["summary", "translate"]) -> WholeDocument:
    name = _bare(name)
    if not name or IT.fullmatch(name):
        return WholeDocument((), is_bare=True, task=task)
    return WholeDocument((name,), is_bare=False, task=task)


def _names_at_end(rest: str) -> tuple[str, ...]:
    """What may be the document's name in "commands in the storage handbook": what follows each preposition, the
    longest first, since names hold prepositions themselves."""
    rest = AFTER_NAME.sub("", rest)
    found: list[str] = []
    at = 0
    while match := BEFORE_NAME.search(rest, at):
        found.append(_bare(rest[match.end() :]))
        at = match.end() - 1
    return tuple(name for name in found if name)


def _plain(question: str) -> str:
    """The question in one line, without courtesies before it and what it says about the answer's form."""
    text = question.strip()
    if len(text) > _LONGEST or text.count("\n") > 1:
        return ""
    text = " ".join(text.split()).strip(_AROUND)
    while (polite := POLITE.match(text)) and polite.end() < len(text):
        text = text[polite.end() :].strip(_AROUND)
    while manner := MANNER.search(text):
        text = text[: manner.start()].strip(_AROUND)
    return text


def _bare(name: str) -> str:
    return name.strip(_AROUND + _QUOTES)


def _words(text: str) -> str:
    """What documents are to mention: without what stands around it, one phrase in quotes as a phrase. Empty where it is
    no words to look for: a pointer at what was said before, or a whole sentence."""
    text = _AFTER_WORDS.sub("", text.strip(_AROUND))
    text = _BEFORE_WORDS.sub("", text, count=1).strip(_AROUND)
    bare = text.strip(_QUOTES)
    if not bare or _POINTS_BACK.fullmatch(bare) or len(bare.split()) > _MOST_WORDS:
        return ""
    is_phrase = text[0] in _QUOTES and text[-1] in _QUOTES and len(text) > 2
    return f'"{bare}"' if is_phrase and " " in bare else bare
