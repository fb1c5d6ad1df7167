"""What the scaffolding filter asks of text: what a body begins with, where JSON ends, whether code is open.

Pure and incremental: each answer depends on the characters alone, never on how they were cut into chunks. Used by
`app.rag.scaffolding` only.
"""

import re
from copy import copy
from dataclasses import dataclass
from enum import Enum, auto

from app.rag.scaffolding_formats import Entry

LOOKAHEAD = 2048
"""Characters that decide a tag at most; blanks, repeated openers and a name fit in it."""

_NAME = re.compile(r"[^\s<>\[\]{}()\"'`,;]{1,128}")
_PLAIN_NAME = re.compile(r"[\w./-]{1,128}")
_CALL = re.compile(r"[^\W\d][\w.:/-]{0,127}\s?\(")
_CALL_CUT = re.compile(r"(?:[^\W\d][\w.:/-]{0,127}\s?)?")
_FUNCTION = re.compile(r"[^\s<>={]{1,128}(?:>\s*|=?(?=\{))")
_FUNCTION_CUT = re.compile(r"[^\s<>={]{0,128}(?:>\s*|=)?")

JSON_STARTS = ("{", "[]")
_JSON_LIST = re.compile(r"\[\s*\{")
_JSON_LIST_CUT = re.compile(r"\[\s*")
XML_STARTS = ("<invoke", "<function=", "<parameter=")
AFTER_NAME = ("<arg_key>", "</arg_value>", "</tool_call>")
AFTER_NAME_JSON = ("[ARGS]{", "{", "({")


class Shape(Enum):
    """What follows a start token."""

    UNKNOWN = auto()
    JSON = auto()
    CALL = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Found:
    """A tag's decision: the shape, where in the lookahead the payload's own scan begins, whether it has ended there.

    Without a payload (NONE), `at` is the offset behind repeated openers and blanks, which share the tag's fate.
    """

    shape: Shape
    at: int = 0
    ended: bool = False


def tag_shape(entry: Entry, look: str) -> Found:
    """Decides whether `look`, the text after a tag, is its payload. UNKNOWN asks for more text."""
    if entry.start == "<function=":
        return _function_shape(look)
    at = _skip_openers(entry, look)
    rest = look[at:]
    if rest and _is_cut(rest, (entry.start,)):
        return Found(Shape.UNKNOWN, at)
    if entry.name == "text_imitation":
        return _after_name(rest, at, ("({",))
    json = json_shape(rest)
    if json is not Shape.NONE:
        return Found(json, at)
    if entry.name == "llama3_python_tag":
        if _CALL.match(rest):
            return Found(Shape.CALL, at)
        return Found(Shape.UNKNOWN if _CALL_CUT.fullmatch(rest) else Shape.NONE, at)
    if rest.startswith(XML_STARTS):
        return Found(Shape.CALL, at)
    if _is_cut(rest, XML_STARTS):
        return Found(Shape.UNKNOWN, at)
    return _after_name(rest, at, (*AFTER_NAME, *AFTER_NAME_JSON))


def is_word_after_tag(entry: Entry, look: str) -> bool:
    """Whether a stream ended with a tag, a space and a word: prose about the tag, not a call cut in its name."""
    at = _skip_openers(entry, look)
    return at > 0 and look[at - 1] == " " and _NAME.fullmatch(look[at:]) is not None


def json_shape(rest: str) -> Shape:
    """JSON when `rest` begins an object, a list of objects or an empty list; UNKNOWN when it is cut while it begins."""
    if rest.startswith(JSON_STARTS) or _JSON_LIST.match(rest):
        return Shape.JSON
    return Shape.UNKNOWN if not rest or _JSON_LIST_CUT.fullmatch(rest) else Shape.NONE


def _skip_openers(entry: Entry, look: str) -> int:
    """The offset behind blanks and repeated openers, which count as one."""
    at = 0
    while True:
        while at < len(look) and look[at].isspace():
            at += 1
        if not look.startswith(entry.start, at):
            return at
        at += len(entry.start)


def _function_shape(look: str) -> Found:
    match = _FUNCTION.match(look)
    if match is None:
        return Found(Shape.UNKNOWN if _FUNCTION_CUT.fullmatch(look) else Shape.NONE)
    rest = look[match.end() :]
    if rest.startswith("{"):
        return Found(Shape.JSON, match.end())
    if rest.startswith("<parameter="):
        return Found(Shape.CALL, match.end())
    return Found(Shape.UNKNOWN if _is_cut(rest, ("<parameter=",)) else Shape.NONE)


def _after_name(rest: str, at: int, literals: tuple[str, ...]) -> Found:
    name = _NAME.match(rest)
    if name is None:
        return Found(Shape.NONE if rest else Shape.UNKNOWN, at)
    tail = rest[name.end() :]
    spaced = tail.lstrip()
    for literal in literals:
        follows = spaced if literal in AFTER_NAME else tail
        if follows.startswith(literal):
            behind = at + len(rest) - len(follows)
            if literal in AFTER_NAME:
                return Found(Shape.CALL, behind, ended=literal != "<arg_key>")
            return Found(Shape.JSON, behind + len(literal) - 1)
        if _is_cut(follows, (literal,)):
            return Found(Shape.UNKNOWN, at)
    return Found(Shape.NONE, at)


def _is_cut(text: str, literals: tuple[str, ...]) -> bool:
    """Whether `text` ends inside one of `literals`."""
    return any(len(text) < len(literal) and literal.startswith(text) for literal in literals)


def body_shape(entry: Entry, body: str, *, at_end: bool) -> Shape:
    """Whether a span's body is call-shaped (JSON is), is not, or is not long enough to tell.

    At the end of the stream an empty body, and one cut while it begins as the format does, count as calls.
    """
    text = body.lstrip()
    if not text:
        return Shape.CALL if at_end else Shape.UNKNOWN
    for begin in entry.begins:
        own = body if begin[0] == " " else text
        if own.startswith(begin):
            return Shape.CALL
    if text[0] in "{<":
        return Shape.JSON if text[0] == "{" else Shape.CALL
    if text[0] == "[":
        inner = text[1:].lstrip()
        if not inner:
            return Shape.CALL if at_end else Shape.UNKNOWN
        return Shape.JSON if inner[0] in "{]" else Shape.CALL
    if _CALL.match(text):
        return Shape.CALL
    if _begins_as_own(entry, body, text) or _begins_with_name(entry, text):
        return Shape.CALL if at_end or _is_named(entry, text) else Shape.UNKNOWN
    if _CALL_CUT.fullmatch(text):
        return Shape.NONE if at_end else Shape.UNKNOWN
    return Shape.NONE


def _begins_as_own(entry: Entry, body: str, text: str) -> bool:
    return any(_is_cut(body if begin[0] == " " else text, (begin,)) for begin in entry.begins)


def _is_named(entry: Entry, text: str) -> bool:
    name = _PLAIN_NAME.match(text)
    return name is not None and text.startswith(entry.begins_named, name.end()) if entry.begins_named else False


def _begins_with_name(entry: Entry, text: str) -> bool:
    """Whether `text` is a name followed by the format's own mark, or is cut inside that."""
    name = _PLAIN_NAME.match(text)
    if name is None or not entry.begins_named:
        return False
    return _is_named(entry, text) or _is_cut(text[name.end() :], entry.begins_named)


_STRING_STOP = re.compile(r'["\\]')
_OUTSIDE_STOP = re.compile(r'["{}\[\]>)]')


class JsonScan:
    """Finds where a JSON payload ends: at its balanced end, or at a closer outside a string."""

    def __init__(self, closers: tuple[str, ...] = ()) -> None:
        self._closers = closers
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._tail = ""

    def feed(self, text: str, at: int, stop: int) -> int | None:
        """Scans `text[at:stop]`; the offset behind the payload's last character, or None when it goes on."""
        begin = at
        while at < stop:
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_STRING_STOP if self._in_string else _OUTSIDE_STOP).search(text, at, stop)
            if match is None:
                break
            at = match.end()
            if self._step(match[0], text, begin, at):
                return at
        self._tail = (self._tail + text[max(begin, stop - 24) : stop])[-24:]
        return None

    def _step(self, char: str, text: str, begin: int, at: int) -> bool:
        if self._in_string:
            self._escaped = char == "\\"
            self._in_string = char != '"'
            return False
        if char == '"':
            self._in_string = True
        elif char in ">])" and self._closed(text, begin, at):
            return True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            return self._depth <= 0
        return False

    def _closed(self, text: str, begin: int, at: int) -> bool:
        seen = (self._tail + text[max(begin, at - 24) : at])[-24:]
        return any(len(closer) > 1 and seen.endswith(closer) for closer in self._closers)


@dataclass(slots=True)
class CodeState:
    """Whether Markdown code is open at a point of the visible text. A span ends at a blank line at the latest."""

    fence_char: str = ""
    fence_length: int = 0
    span: int = 0
    run_char: str = ""
    run_length: int = 0
    run_opens_line: bool = False
    line_blank: bool = True
    closing: bool = False

    def is_open_after(self, text: str) -> bool:
        """Whether a fence or a code span would be open behind `text`; changes nothing."""
        state = copy(self)
        state.advance(text)
        state._settle()
        return bool(state.fence_char or state.span)

    def advance(self, text: str) -> None:
        """Reads `text`."""
        if "`" not in text and "~" not in text and not (self.span or self.closing or self.run_char):
            line = text[text.rfind("\n") + 1 :]
            self.line_blank = (not line or line.isspace()) and (self.line_blank or len(line) < len(text))
            return
        for match in _CODE.finditer(text):
            self._take(match[0])

    def _take(self, token: str) -> None:
        char = token[0]
        if char == self.run_char:
            self.run_length += len(token)
            return
        self._settle()
        if char in "`~":
            self.run_char, self.run_length, self.run_opens_line = char, len(token), self.line_blank
        elif char == "\n":
            self._end_line()
        else:
            blank = token.isspace()
            self.line_blank = self.line_blank and blank
            self.closing = self.closing and blank

    def _settle(self) -> None:
        """Decides what the run of backticks or tildes that just ended opened or closed."""
        char, length = self.run_char, self.run_length
        if not char:
            return
        self.run_char = ""
        self.line_blank = False
        if self.fence_char:
            self.closing = self.run_opens_line and char == self.fence_char and length >= self.fence_length
        elif self.run_opens_line and length >= 3 and not self.span:
            self.fence_char, self.fence_length = char, length
        elif char == "`":
            self.span = length if not self.span else 0 if length == self.span else self.span

    def _end_line(self) -> None:
        if self.closing:
            self.fence_char, self.closing = "", False
        elif self.line_blank:
            self.span = 0
        self.line_blank = True


_CODE = re.compile(r"\n|`+|~+|[^`~\n]+")
