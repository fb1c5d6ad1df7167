"""An answer as HTML: Markdown whose citation markers became numerals, each with a note beside its sentence.

    <span class="claim"><span class="said">sentence</span><a class="cite">2</a><span class="note">…</span></span>

The caller says where markers stand and what they name (`app.edge.answers`, from `app.rag`). Before Markdown is read,
each marker is replaced by characters that Unicode reserves for a program's own use, which no text can bring along; in
the sanitised tokens they are found again. So nothing a model writes can forge a numeral, and a note is built from
escaped values only.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import unquote

from markupsafe import Markup

from app.render.highlight import quote_html
from app.render.markdown import block_html, markdown_tokens, runs, write_inline
from app.render.sentences import sentences
from app.render.tokens import End, InlineWriter, Start, Text, Token

# U+FDD0 to U+FDD9 count the markers; the brackets around them are punctuation to Markdown, as the marker's own were.
_RESERVED = re.compile("[\ufdd0-\ufdef]")
_ONE = re.compile("\u29d8([\ufdd0-\ufdd9]+)\u29d9")
_PLACED = re.compile(rf"(?<![ \t\n])[ \t\n]*({_ONE.pattern}(?:[ \t]*{_ONE.pattern})*)(?P<stop>[.,;:!?…]*)")
_IN_ADDRESS = re.compile(r"%E2%A7%98(?:%EF%B7%9[0-9])+%E2%A7%99")
_SHORT_SENTENCE = 4
"""Words; a shorter one ("It depends.") claims nothing that would need a passage."""


@dataclass(frozen=True, slots=True)
class Marker:
    """`answer[start:end]` names the passages `numbers`; without any it is left out."""

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """What a note shows. `marks` are spans of `quote`; `label` is what a screen reader says for the numeral."""

    n: int
    href: str
    title: str
    locator: str
    label: str
    quote: str = ""
    marks: tuple[tuple[int, int], ...] = ()


def answer_html(
    content: str, markers: Sequence[Marker], sources: Mapping[int, Source], *, key: str, unbacked: str | None
) -> Markup:
    """The answer's HTML.

    Args:
        content: Markdown as the model wrote it.
        markers: In order, not overlapping; numbers without a source are left out.
        sources: By number. The first mention of a source brings its note, later ones only the numeral.
        key: Makes the ids of this answer's numerals (`c-<key>-<n>`) its own.
        unbacked: The title of sentences that no passage backs, in an answer that cites; None leaves them unmarked.
    """
    known = [replace(marker, numbers=tuple(n for n in marker.numbers if n in sources)) for marker in markers]
    cites = any(marker.numbers for marker in known)
    page = _Page(content, known, sources, key, unbacked if cites else None)
    tokens = markdown_tokens(_placed(content, known))
    return Markup(_RESERVED.sub("", "".join(page.parts(tokens))))  # noqa: S704 - tokens are sanitised, values escaped


def note_html(source: Source) -> str:
    """The note of a source: title, place, quote with the supporting words marked."""
    quote = f'<span class="quote">{quote_html(source.quote, source.marks)}</span>' if source.quote else ""
    return (
        f'<span class="note" role="note"><span class="noted">{source.n}</span>'
        f'<a class="note-title" href="{escape(source.href)}">{escape(source.title)}</a>'
        f'<span class="locator"><bdi>{escape(source.locator)}</bdi></span>{quote}</span>'
    )


def _placed(content: str, markers: Sequence[Marker]) -> str:
    """`content` with each marker replaced by its place holder."""
    parts: list[str] = []
    at = 0
    for index, marker in enumerate(markers):
        digits = "".join(chr(0xFDD0 + int(digit)) for digit in str(index))
        parts += [_RESERVED.sub("\ufffd", content[at : marker.start]), f"\u29d8{digits}\u29d9"]
        at = marker.end
    return "".join([*parts, _RESERVED.sub("\ufffd", content[at:])])


def _index(digits: str) -> int:
    return int("".join(str(ord(digit) - 0xFDD0) for digit in digits))


@dataclass(frozen=True, slots=True)
class _Group:
    """Markers that stand together, at a place in the run's plain text."""

    at: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """HTML to write at a place of the run's plain text, outside of every inline tag."""

    at: int
    html: str


class _Page:
    """One answer on its way to HTML; remembers which sources had their note."""

    def __init__(
        self, content: str, markers: Sequence[Marker], sources: Mapping[int, Source], key: str, unbacked: str | None
    ) -> None:
        self._content = content
        self._markers = markers
        self._sources = sources
        self._key = key
        self._unbacked = unbacked
        self._noted: set[int] = set()
        self._table_notes: list[str] | None = None

    def parts(self, tokens: Sequence[Token]) -> Iterator[str]:
        """The pieces of HTML; a table is held back until its notes, which must stand outside of it, are known."""
        held: list[str] = []
        quiet = 0
        for run in runs(tokens):
            first = run[0]
            if isinstance(first, Start) and first.name == "table":
                self._table_notes, held = [], []
            if isinstance(first, Start) and first.name in _NO_CLAIM_NEEDED:
                quiet += 1
            if isinstance(first, End) and first.name in _NO_CLAIM_NEEDED:
                quiet -= 1
            html = self._run(run, quiet=quiet > 0)
            if self._table_notes is None:
                yield html
                continue
            held.append(html)
            if isinstance(first, End) and first.name == "table":
                yield from [*self._table_notes, *held]
                self._table_notes = None

    def _run(self, run: Sequence[Token], *, quiet: bool) -> str:
        if isinstance(run[0], Start) and run[0].name == "pre":
            return block_html([self._as_written(token) for token in run])
        if not any(isinstance(token, Text) and token.text.strip() for token in run):
            return block_html(run)
        line = _Line(run, self._as_written, self._numbers)
        return line.html(self._events(line, quiet))

    def _as_written(self, token: Token) -> Token:
        """In code and in addresses a marker is just text."""
        if isinstance(token, Text):
            return Text(_ONE.sub(self._original, token.text))
        if isinstance(token, End):
            return token
        return Start(token.name, tuple((name, self._attribute(value)) for name, value in token.attrs))

    def _attribute(self, value: str) -> str:
        value = _IN_ADDRESS.sub(lambda found: unquote(found.group()), value)
        return _ONE.sub(self._original, value)

    def _original(self, found: re.Match[str]) -> str:
        marker = self._markers[_index(found.group(1))]
        return self._content[marker.start : marker.end]

    def _numbers(self, place_holders: str) -> tuple[int, ...]:
        found = (self._markers[_index(digits)].numbers for digits in _ONE.findall(place_holders))
        return tuple(dict.fromkeys(n for numbers in found for n in numbers))

    def _events(self, line: "_Line", quiet: bool) -> list[_Event]:
        events: list[_Event] = []
        units = [(unit.start, unit.end) for unit in sentences(line.plain)]
        starts = [start for start, _ in units]
        backed: set[int] = set()
        done = 0
        for group in line.groups:
            if not group.numbers:
                continue
            sentence = _sentence_start(starts, group.at)
            backed.add(sentence)
            start = max(done, sentence)
            said = line.plain[start : group.at]
            start += len(said) - len(said.lstrip())
            cites = "".join(self._cite(n) for n in group.numbers)
            if said.strip():
                events.append(_Event(start, '<span class="claim"><span class="said">'))
                events.append(_Event(group.at, f"</span>{cites}</span>"))
            else:
                events.append(_Event(group.at, f'<span class="claim">{cites}</span>'))
            done = group.at
        if self._unbacked and not quiet:
            events += self._unbacked_events(line.plain, [unit for unit in units if unit[0] not in backed])
        return sorted(events, key=lambda event: (event.at, not _closes(event)))

    def _unbacked_events(self, plain: str, units: Sequence[tuple[int, int]]) -> Iterator[_Event]:
        for start, end in units:
            sentence = plain[start:end]
            if sentence.endswith((".", "!")) and len(sentence.split()) >= _SHORT_SENTENCE:
                yield _Event(start, f'<span class="unbacked" title="{escape(self._unbacked or "")}">')
                yield _Event(end, "</span>")

    def _cite(self, n: int) -> str:
        source = self._sources[n]
        first = n not in self._noted
        self._noted.add(n)
        ident = f' id="c-{escape(self._key)}-{n}"' if first else ""
        label = f'data-n="{n}" aria-label="{escape(source.label)}"'
        cite = f'<a class="cite"{ident} href="{escape(source.href)}" {label}>{n}</a>'
        if not first:
            return cite
        note = note_html(source)
        if self._table_notes is None:
            return cite + note
        self._table_notes.append(note)
        return cite


_NO_CLAIM_NEEDED = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "table", "blockquote"})


def _sentence_start(starts: Sequence[int], at: int) -> int:
    """Where the sentence begins that holds the character before `at`, or the last one before it."""
    index = bisect_left(starts, at) - 1
    return starts[index] if index >= 0 else at


class _Line:
    """A run of inline tokens without its place holders: `plain` is its text (code as x, line ends as blanks), `groups`
    say where markers stood."""

    def __init__(
        self,
        run: Sequence[Token],
        as_written: Callable[[Token], Token],
        numbers: Callable[[str], tuple[int, ...]],
    ) -> None:
        self.tokens: list[Token] = []
        self.groups: list[_Group] = []
        self.plain = ""
        self._numbers = numbers
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
            self.groups.append(_Group(len(self.plain) + len(kept), self._numbers(found.group())))
            kept += found.group("stop") if leads else ""
            at = found.end()
        kept += text[at:]
        self.plain += kept.replace("\n", " ")
        self.tokens.append(Text(kept))

    def html(self, events: Sequence[_Event]) -> str:
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
                if event.at == at + len(text) and not _closes(event):
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


def _closes(event: _Event) -> bool:
    return event.html.startswith("</")
