"""An answer as HTML: Markdown whose citation markers became numerals, each with a note beside its sentence.

    <span class="claim"><span class="said">sentence</span><a class="cite">2</a><span class="note">…</span></span>

The caller says where markers stand and what they name (`app.edge.answers`, from `app.rag`). Before Markdown is read,
each marker is replaced by characters that Unicode reserves for a program's own use, which no text can bring along; in
the sanitised tokens they are found again. So nothing a model writes can forge a numeral, and a note is built from
escaped values only.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from urllib.parse import unquote

from markupsafe import Markup

from app.render.highlight import quote_html
from app.render.line import IN_ADDRESS, PLACE_HOLDER, RESERVED, Event, Line, Marker, marker_index, with_place_holders
from app.render.markdown import block_html, markdown_tokens, runs
from app.render.sentences import sentences
from app.render.tokens import End, Start, Text, Token

_SHORT_SENTENCE = 4
"""Words; a shorter one ("It depends.") claims nothing that would need a passage."""


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
    tokens = markdown_tokens(with_place_holders(content, known))
    return Markup(RESERVED.sub("", "".join(page.parts(tokens))))  # noqa: S704 - tokens are sanitised, values escaped


def note_html(source: Source) -> str:
    """The note of a source: title, place, quote with the supporting words marked."""
    quote = f'<span class="quote">{quote_html(source.quote, source.marks)}</span>' if source.quote else ""
    return (
        f'<span class="note" role="note"><span class="noted">{source.n}</span>'
        f'<a class="note-title" href="{escape(source.href)}">{escape(source.title)}</a>'
        f'<span class="locator"><bdi>{escape(source.locator)}</bdi></span>{quote}</span>'
    )


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
        line = Line(run, self._as_written, self._numbers)
        return line.html(self._events(line, quiet))

    def _as_written(self, token: Token) -> Token:
        """In code and in addresses a marker is just text."""
        if isinstance(token, Text):
            return Text(PLACE_HOLDER.sub(self._original, token.text))
        if isinstance(token, End):
            return token
        return Start(token.name, tuple((name, self._attribute(value)) for name, value in token.attrs))

    def _attribute(self, value: str) -> str:
        value = IN_ADDRESS.sub(lambda found: unquote(found.group()), value)
        return PLACE_HOLDER.sub(self._original, value)

    def _original(self, found: re.Match[str]) -> str:
        marker = self._markers[marker_index(found.group(1))]
        return self._content[marker.start : marker.end]

    def _numbers(self, place_holders: str) -> tuple[int, ...]:
        found = (self._markers[marker_index(digits)].numbers for digits in PLACE_HOLDER.findall(place_holders))
        return tuple(dict.fromkeys(n for numbers in found for n in numbers))

    def _events(self, line: Line, quiet: bool) -> list[Event]:
        events: list[Event] = []
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
                events.append(Event(start, '<span class="claim"><span class="said">'))
                events.append(Event(group.at, f"</span>{cites}</span>"))
            else:
                events.append(Event(group.at, f'<span class="claim">{cites}</span>'))
            done = group.at
        if self._unbacked and not quiet:
            events += self._unbacked_events(line.plain, [unit for unit in units if unit[0] not in backed])
        return sorted(events, key=lambda event: (event.at, not event.closes))

    def _unbacked_events(self, plain: str, units: Sequence[tuple[int, int]]) -> Iterator[Event]:
        for start, end in units:
            sentence = plain[start:end]
            if sentence.endswith((".", "!")) and len(sentence.split()) >= _SHORT_SENTENCE:
                yield Event(start, f'<span class="unbacked" title="{escape(self._unbacked or "")}">')
                yield Event(end, "</span>")

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
