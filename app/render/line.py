"""Where an answer's markers stand, carried through Markdown and found again in its tokens. Pure.

Before Markdown is read, each marker becomes a place holder of characters that Unicode reserves for a program's own use;
no text can bring them along. A `Line` is one run of inline tokens with the place holders lifted out: its plain text,
the places of its markers, and the means to write HTML between its characters. Used by `app.render.answer` only.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.render.markdown import write_inline
from app.render.tokens import InlineWriter, Start, Text, Token

# U+FDD0 to U+FDD9 count the markers; the brackets around them are punctuation to Markdown, as the marker's own were.
RESERVED = re.compile("[\ufdd0-\ufdef]")
PLACE_HOLDER = re.compile("\u29d8([\ufdd0-\ufdd9]+)\u29d9")
_PLACED = re.compile(
    rf"(?<![ \t\n])[ \t\n]*({PLACE_HOLDER.pattern}(?:[ \t]*{PLACE_HOLDER.pattern})*)(?P<stop>[.,;:!?…]*)"
)
IN_ADDRESS = re.compile(r"%E2%A7%98(?:%EF%B7%9[0-9])+%E2%A7%99")


@dataclass(frozen=True, slots=True)
class Marker:
    """`answer[start:end]` names the passages `numbers`; without any it is left out."""

    start: int
    end: int
    numbers: tuple[int, ...]


def with_place_holders(content: str, markers: Sequence[Marker]) -> str:
    """`content` with each marker replaced by its place holder."""
    parts: list[str] = []
    at = 0
    for index, marker in enumerate(markers):
        digits = "".join(chr(0xFDD0 + int(digit)) for digit in str(index))
        parts += [RESERVED.sub("\ufffd", content[at : marker.start]), f"\u29d8{digits}\u29d9"]
        at = marker.end
    return "".join([*parts, RESERVED.sub("\ufffd", content[at:])])


def marker_index(digits: str) -> int:
    """Which marker a place holder stands for, from its counting characters."""
    return int("".join(str(ord(digit) - 0xFDD0) for digit in digits))


@dataclass(frozen=True, slots=True)
class Mention:
    """A number in a marker; `nth` counts an answer's mentions of one source, from 1."""

    n: int
    nth: int


@dataclass(frozen=True, slots=True)
class Group:
    """Markers that stand together, at a place in the run's plain text."""

    at: int
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """HTML to write at a place of the run's plain text, outside of every inline tag."""

    at: int
    html: str

    @property
    def closes(self) -> bool:
        """Whether it ends something; at one place, ends come before beginnings."""
        return self.html.startswith("</")


class Line:
    """A run of inline tokens without its place holders: `plain` is its text (code as x, line ends as blanks), `groups`
    say where markers stood."""

    def __init__(
        self,
        run: Sequence[Token],
        as_written: Callable[[Token], Token],
        mentions: Callable[[str], tuple[Mention, ...]],
    ) -> None:
        self.tokens: list[Token] = []
        self.groups: list[Group] = []
        self.plain = ""
        self._mentions = mentions
        code = 0
        for token in run:
            if isinstance(token, Text) and not code:
                self._prose(token.text)
                continue
            token = as_written(token)
            self.tokens.append(token)
            if isinstance(token, Text):
                self.plain += "x" * len(token.text)
            elif token.name == "code":
                code += 1 if isinstance(token, Start) else -1
            elif token.name == "br":
                self.plain += " "

    def _prose(self, text: str) -> None:
        """Takes place holders out, the blanks before them too, and lets a full stop that follows one go before it."""
        kept = ""
        at = 0
        for found in _PLACED.finditer(text):
            kept += text[at : found.start()]
            leads = not (self.plain + kept).strip()
            kept += "" if leads else found.group("stop")
            self.groups.append(Group(len(self.plain) + len(kept), self._mentions(found.group())))
            kept += found.group("stop") if leads else ""
            at = found.end()
        kept += text[at:]
        self.plain += kept.replace("\n", " ")
        self.tokens.append(Text(kept))

    def html(self, events: Sequence[Event]) -> str:
        """The run's HTML with `events` written between its characters."""
        writer = InlineWriter()
        waiting = list(events)
        at = 0
        for token in self.tokens:
            if not isinstance(token, Text):
                write_inline(writer, token)
                at += isinstance(token, Start) and token.name == "br"
                continue
            text = token.text
            while waiting and waiting[0].at <= at + len(text):
                event = waiting[0]
                if event.at == at + len(text) and not event.closes:
                    break
                writer.text(text[: event.at - at])
                text, at = text[event.at - at :], event.at
                writer.between(event.html)
                del waiting[0]
            writer.text(text)
            at += len(text)
        for event in waiting:
            writer.between(event.html)
        return writer.html()
