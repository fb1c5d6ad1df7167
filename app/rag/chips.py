"""Chips: what a question names in its own text (`@file`, `@folder/`, `#collection`, `type:pdf`, `after:2024`). Pure.

Owns the grammar and the two texts that a question becomes: the one that is searched and the one the model is asked. A
mark is only a candidate; it becomes a chip when it names something the asker may read, which `app.store.naming` knows
and `app.api.asked` decides. Everything else stays the text it is. docs/glossary.md has the terms.

    @notes.md   @"two words.pdf"   @projects/plan.md   @Title   @projects/
    #library    #"House papers"
    type:pdf    type:pdf,docx
    after:2024  since:2024-05  before:2024-05-01  until:2024  since:30d (d, w, m, y)  since:yesterday

`after` and `since` begin with the first day of the period, `before` ends with the day before it, `until` with its last.
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from app.render.sentences import code_spans, inside

MarkKind = Literal["document", "folder", "collection", "type", "since", "until"]

MARKS_MAX = 16
"""Marks read of one question: each may cost a look-up."""

NAME_CHARS = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a mark: it is called `name` and ends at `end`."""

    name: str
    end: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A candidate from `start` on; `readings` are to be tried in their order. `day` of a `since` is the first that
    counts, of an `until` the first that does not. `is_meant`: whoever wrote it wanted a document or a collection, as
    far as the text tells; code, colours and numbers of issues look alike."""

    kind: MarkKind
    start: int
    readings: tuple[Reading, ...]
    day: date | None = None
    is_meant: bool = False

    @property
    def name(self) -> str:
        """What it names, read in the most likely way."""
        return self.readings[0].name


@dataclass(frozen=True, slots=True)
class Chip:
    """A mark that names something: `label` is shown, `words` stand for it in what the model is asked (empty: nothing
    does). `[start:end]` is the mark in the question; both 0 for one `carried` over from the question before."""

    kind: MarkKind
    label: str
    words: str
    start: int
    end: int
    carried: bool = False


def marks_in(question: str, today: date) -> tuple[Mark, ...]:
    """The marks outside of code, in order, never overlapping."""
    if not _ANY.search(question):
        return ()
    code = code_spans(question)
    found: list[Mark] = []
    at = 0
    while len(found) < MARKS_MAX and (match := _MARK.search(question, at)):
        mark = None if inside(code, match.start()) else _mark(question, match, today)
        at = match.end() if mark is not None else match.start() + 1
        if mark is not None:
            found.append(mark)
    return tuple(found)


def written(sign: Literal["@", "#"], name: str) -> str | None:
    """How `name` is named in a question, in quotes where it needs them; None for one that can't be."""
    pairs = [("", ""), *_PAIRS]
    ways = (f"{sign}{opened}{name}{closed}" for opened, closed in pairs)
    return next((way for way in ways if _reads_as(way, name)), None)


def _reads_as(mark: str, name: str) -> bool:
    match = _MARK.fullmatch(mark)
    read = _mark(mark, match, date.min) if match is not None else None
    return read is not None and read.readings[0] == Reading(name, len(mark))


def searched_text(question: str, chips: Sequence[Chip]) -> str:
    """The question without its chips; with nothing left of it, its words."""
    left = _replaced(question, chips, with_words=False)
    return left if re.search(r"\w", left) else in_words(question, chips)


def in_words(question: str, chips: Sequence[Chip]) -> str:
    """The question as the model reads it: names in plain words, types and dates left out."""
    plain = _replaced(question, chips, with_words=True)
    return plain if re.search(r"\w", plain) else question


def _replaced(question: str, chips: Sequence[Chip], *, with_words: bool) -> str:
    parts: list[str] = []
    at = 0
    for chip in chips:
        if chip.carried:
            continue
        before, words = question[at : chip.start], chip.words if with_words else ""
        if not words and (not before or before[-1].isspace()) and question[chip.end : chip.end + 1] in _CLOSE_UP:
            before = before[:-1]
        parts += [before, words]
        at = chip.end
    return "".join([*parts, question[at:]]).strip() if parts else question


_CLOSE_UP = ("", " ", "\t", "\n", ".", ",", ";", ":", "!", "?", ")")
"""What follows a chip that leaves no second space behind: `in @a.md?` → `in?`."""

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_BEFORE = rf"(?<![^\W{_CJK}])(?<![@#./\\&=?%+$~-])"
_PAIRS = (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"), ("'", "'"))
_QUOTED = "|".join(rf"{opened}[^{opened}{closed}\n]{{1,{NAME_CHARS}}}{closed}" for opened, closed in _PAIRS)
_MARK = re.compile(
    rf"""{_BEFORE}(?:
    @(?:(?P<file_quoted>{_QUOTED})|(?P<file>[^\s@"“”„«»'`<>|*，。！？；：（）【】「」『』]{{1,{NAME_CHARS}}}))
    |\#(?:(?P<set_quoted>{_QUOTED})|(?P<set>\w[\w-]{{0,{NAME_CHARS}}}))
    |(?P<key>type|after|since|before|until):(?P<value>[\w.+,/-]{{1,80}})
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY = re.compile(r"[@#]|\b(?:type|after|since|before|until):", re.IGNORECASE)
_TRAILING = ".,;:!?)]}…"
_CJK_TAIL = re.compile(rf"(?<=[\x21-\x7e])[{_CJK}]+.*\Z", re.DOTALL)


def _mark(question: str, match: re.Match[str], today: date) -> Mark | None:
    if match["key"]:
        return _keyed(match["key"].lower(), match, today)
    name = match["file_quoted"] or match["set_quoted"]
    group = match.lastgroup or ""
    is_file = group.startswith("file")
    if name:
        readings = (Reading(name[1:-1].strip(), match.end()),)
        is_meant = True
    else:
        readings = _readings(match[group], match.start(group))
        is_meant = _looks_meant(question, match, is_file=is_file)
    readings = tuple(reading for reading in readings if re.search(r"\w", reading.name))
    if not readings or (not is_file and not name and match[group].isdecimal()):
        return None
    kind: MarkKind = "collection"
    if is_file:
        kind = "folder" if readings[0].name.endswith("/") else "document"
    return Mark(kind, match.start(), readings, is_meant=is_meant)


def _readings(raw: str, start: int) -> tuple[Reading, ...]:
    """A name without the punctuation of its sentence; then, where Chinese or Japanese goes on without a space, only
    what stands before that."""
    whole = raw.rstrip(_TRAILING)
    first = _CJK_TAIL.sub("", whole)
    names = dict.fromkeys(name for name in (whole, first.rstrip(_TRAILING)) if name)
    return tuple(Reading(name, start + len(name)) for name in names)


def _keyed(key: str, match: re.Match[str], today: date) -> Mark | None:
    value = match["value"].rstrip(_TRAILING)
    end = match.start("value") + len(value)
    if key == "type":
        return Mark("type", match.start(), (Reading(value.lower(), end),)) if value else None
    period = _period(value.lower(), today)
    if period is None:
        return None
    first, behind = period
    day = behind if key == "until" else first
    return Mark("until" if key in ("before", "until") else "since", match.start(), (Reading(value, end),), day)


_FIRST, _LAST = date(1970, 1, 1), date(2200, 1, 1)
_AGO = re.compile(r"(\d{1,4})([dwmy])")
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


def _period(value: str, today: date) -> tuple[date, date] | None:
    """The first day of what `value` names and the first day behind it; None where it names no time."""
    try:
        if value in ("today", "yesterday"):
            first = today - timedelta(days=value == "yesterday")
            return first, first + timedelta(days=1)
        if ago := _AGO.fullmatch(value):
            first = today - timedelta(days=min(int(ago[1]) * _DAYS[ago[2]], (today - _FIRST).days))
            return first, first + timedelta(days=1)
        if not (day := _DAY.fullmatch(value)):
            return None
        year, month = int(day[1]), int(day[2] or 1)
        first = date(year, month, int(day[3] or 1))
        length = 1 if day[3] else monthrange(year, month)[1] if day[2] else (date(year, 12, 31) - first).days + 1
        return (first, first + timedelta(days=length)) if _FIRST <= first < _LAST else None
    except (ValueError, OverflowError):
        return None


_CODE_WORDS = re.compile(
    r"media|import|charset|font-face|keyframes|supports|layer|container|page|params?|returns?|throws|override|property|"
    r"(?:static|class)method|dataclass|pytest\..*|decorator|include|define|if(?:n?def)?|endif|else|elif|pragma|undef|"
    r"error|(?:end)?region|todo|fixme",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"[0-9a-f]{3,8}", re.IGNORECASE)


def _looks_meant(question: str, match: re.Match[str], *, is_file: bool) -> bool:
    """Whether a sentence about it would help: a handle, a colour, a directive of some language is none of ours."""
    before, after = question[: match.start()], question[match.end() : match.end() + 1]
    name = match[match.lastgroup or ""].rstrip(_TRAILING)
    alone = not before or before[-1].isspace() or before[-1] in "(["
    code_like = (
        _CODE_WORDS.fullmatch(name) is not None or any(char in name for char in "(){}[]=;\\$") or after in ("<", "`")
    )
    colour = not is_file and _COLOUR.fullmatch(name) is not None
    return alone and not code_like and not colour and any(char.isalpha() for char in name)
