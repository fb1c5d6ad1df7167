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
from app.render.line import (
    IN_ADDRESS,
    PLACE_HOLDER,
    RESERVED,
    Event,
    Line,
    Marker,
    Mention,
    marker_index,
    with_place_holders,
)
from app.render.markdown import block_html, markdown_tokens, runs
from app.render.sentences import sentences
from app.render.tokens import End, Start, Text, Token

_SHORT_SENTENCE = 4
"""Words; a shorter one ("It depends.") claims nothing that would need a passage."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a note shows. `marks` are spans of `quote`; `label` is what a screen reader says for the numeral. `later`
    are the addresses of its second and further mentions; `unbacked` which mentions, from 1, the passage does not
    back."""

    n: int
    href: str
    title: str
    locator: str
    label: str
    quote: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    later: tuple[str, ...] = ()
    unbacked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Titles:
    """What is said of a sentence without a source in an answer that cites, and of one whose passage does not back it;
    None leaves it unmarked."""

    uncited: str | None = None
    unbacked: str | None = None


def answer_html(
    content: str, markers: Sequence[Marker], sources: Mapping[int, Source], *, key: str, titles: Titles
) -> Markup:
    """The answer's HTML.

    Args:
        content: Markdown as the model wrote it.
        markers: In order, not overlapping; numbers without a source are left out.
        sources: By number. The first mention of a source brings its note, later ones only the numeral.
        key: Makes the ids of this answer's numerals its own: `c-<key>-<n>`, of a later mention `c-<key>-<n>-<nth>`.
        titles: Of the quiet marks.
    """
    known = [replace(marker, numbers=tuple(n for n in marker.numbers if n in sources)) for marker in markers]
    cites = any(marker.numbers for marker in known)
    page = _Page(content, known, sources, key, titles if cites else Titles())
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
        self, content: str, markers: Sequence[Marker], sources: Mapping[int, Source], key: str, titles: Titles
    ) -> None:
        self._content = content
        self._markers = markers
        self._sources = sources
        self._key = key
        self._titles = titles
        self._mentions = _mentions(markers)
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
        line = Line(run, self._as_written, self._mentioned)
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

    def _mentioned(self, place_holders: str) -> tuple[Mention, ...]:
        found = (self._mentions[marker_index(digits)] for digits in PLACE_HOLDER.findall(place_holders))
        first: dict[int, Mention] = {}
        for mention in (mention for mentions in found for mention in mentions):
            first.setdefault(mention.n, mention)
        return tuple(first.values())

    def _events(self, line: Line, quiet: bool) -> list[Event]:
        events: list[Event] = []
        units = [(unit.start, unit.end) for unit in sentences(line.plain)]
        starts = [start for start, _ in units]
        backed: set[int] = set()
        done = 0
        for group in line.groups:
            if not group.mentions:
                continue
            sentence = _sentence_start(starts, group.at)
            backed.add(sentence)
            start = max(done, sentence)
            said = line.plain[start : group.at]
            start += len(said) - len(said.lstrip())
            cites = "".join(self._cite(mention) for mention in group.mentions)
            if said.strip():
                events.append(Event(start, f'<span class="claim"><span {self._said(group.mentions)}>'))
                events.append(Event(group.at, f"</span>{cites}</span>"))
            else:
                events.append(Event(group.at, f'<span class="claim">{cites}</span>'))
            done = group.at
        if self._titles.uncited and not quiet:
            events += self._unbacked_events(line.plain, [unit for unit in units if unit[0] not in backed])
        return sorted(events, key=lambda event: (event.at, not event.closes))

    def _unbacked_events(self, plain: str, units: Sequence[tuple[int, int]]) -> Iterator[Event]:
        for start, end in units:
            sentence = plain[start:end]
            if sentence.endswith((".", "!")) and len(sentence.split()) >= _SHORT_SENTENCE:
                yield Event(start, f'<span class="unbacked" title="{escape(self._titles.uncited or "")}">')
                yield Event(end, "</span>")

    def _said(self, mentions: Sequence[Mention]) -> str:
        """The attributes of a cited sentence; one that none of its passages backs is quietly marked."""
        backed = any(mention.nth not in self._sources[mention.n].unbacked for mention in mentions)
        if backed or self._titles.unbacked is None:
            return 'class="said"'
        return f'class="said unbacked" title="{escape(self._titles.unbacked)}"'

    def _cite(self, mention: Mention) -> str:
        source, n = self._sources[mention.n], mention.n
        first = n not in self._noted
        self._noted.add(n)
        ident = f"c-{escape(self._key)}-{n}" + ("" if first else f"-{mention.nth}")
        later = mention.nth - 2
        href = source.later[later] if 0 <= later < len(source.later) else source.href
        label = f'data-n="{n}" aria-label="{escape(source.label)}"'
        cite = f'<a class="cite" id="{ident}" href="{escape(href)}" {label}>{n}</a>'
        if not first:
            return cite
        note = note_html(source)
        if self._table_notes is None:
            return cite + note
        self._table_notes.append(note)
        return cite


def _mentions(markers: Sequence[Marker]) -> list[tuple[Mention, ...]]:
    """Each marker's numbers, counted by source."""
    counts: dict[int, int] = {}
    found: list[tuple[Mention, ...]] = []
    for marker in markers:
        for n in marker.numbers:
            counts[n] = counts.get(n, 0) + 1
        found.append(tuple(Mention(n, counts[n]) for n in marker.numbers))
    return found


_NO_CLAIM_NEEDED = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "table", "blockquote"})


def _sentence_start(starts: Sequence[int], at: int) -> int:
    """Where the sentence begins that holds the character before `at`, or the last one before it."""
    index = bisect_left(starts, at) - 1
    return starts[index] if index >= 0 else at
