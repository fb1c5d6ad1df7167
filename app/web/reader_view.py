"""What the reader shows beside the text: the citation it was opened for, its neighbours, the document's facts. Pure.

The text itself is made by `app.render.highlight`. Used by `app.web.reader`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from app.catalog import Catalog
from app.edge.answers import reader_href, title_of
from app.rag.citations import check
from app.rag.markers import strip_markers
from app.rag.pieces import Passage
from app.render.names import plain_name, shown_name
from app.store.chats import MessageRow
from app.store.documents import DocumentRow
from app.web.passage_view import place_words


@dataclass(frozen=True, slots=True)
class SourceLink:
    """One source of the answer in the rail."""

    n: int
    href: str
    title: str
    locator: str
    current: bool


@dataclass(frozen=True, slots=True)
class Citation:
    """What the reader was opened for. `count` is "Citation 2 of 5", or "Source 6" for one that was given and not
    cited; `backs` is the answer's sentence, empty where the source was not cited; `previous` and `next` are addresses,
    empty at the ends."""

    n: int
    back: str
    count: str
    previous: str
    next: str
    backs: str
    sources: tuple[SourceLink, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the document's text to show as the passage; `support` is the sentence in it that backs the claim,
    `page` the page on which it begins."""

    passage: tuple[int, int]
    support: tuple[int, int] | None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of the rail: what and how much."""

    label: str
    value: str


def citation(answer: MessageRow, n: int, catalog: Catalog, nth: int = 1, view: str = "") -> Citation | None:
    """The citation `n` of an answer, at its mention `nth`; None when the answer has no such source. `view` is kept on
    the way to the other ones."""
    source = source_of(answer, n)
    if source is None:
        return None
    cited = [row for row in answer.sources if row.get("cited")]
    places = [row["n"] for row in cited]
    listed = cited if n in places else sorted([*cited, source], key=lambda row: row["n"])
    if n in places:
        count = catalog.t("reader.citation", k=places.index(n) + 1, m=len(places))
    else:
        count = catalog.t("reader.passage_number", n=n)
    order = [row["n"] for row in listed]
    at = order.index(n)
    numeral = f"c-{answer.turn_id}-{n}" + (f"-{nth}" if nth > 1 else "")
    return Citation(
        n=n,
        back=f"/chats/{answer.chat_id}#{numeral if n in places else f'turn-{answer.turn_id}'}",
        count=count,
        previous=reader_href(listed[at - 1], answer.turn_id, view=view) if at > 0 else "",
        next=reader_href(listed[at + 1], answer.turn_id, view=view) if at + 1 < len(listed) else "",
        backs=sentence_backed(answer, n, nth),
        sources=tuple(_source_link(row, answer.turn_id, row["n"] == n, catalog, view) for row in listed),
    )


def source_of(answer: MessageRow, n: int) -> Mapping[str, Any] | None:
    """The row of `messages.sources` with that number."""
    return next((row for row in answer.sources if row.get("n") == n), None)


def sentence_backed(answer: MessageRow, n: int, nth: int = 1) -> str:
    """The sentence of the answer that cites `n` for the `nth` time, without markers and marks of emphasis; empty when
    none does."""
    numbers = [Passage(row["n"], 0, 0, "", "", "", None, "", 0, 0, 0, 0, 0.0) for row in answer.sources]
    cites = [cite for cite in check(answer.content, numbers).cites if cite.n == n]
    if nth > len(cites):
        return ""
    cite = cites[nth - 1]
    said = " ".join(strip_markers(answer.content[cite.said_start : cite.said_end]).split())
    return re.sub(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1", r"\2", said)


def given_place(source: Mapping[str, Any], text: str, nth: int = 1) -> Place | None:
    """The stretch that the model was given, with what backs the source's mention `nth`; None when the words it was
    quoted with no longer stand there."""
    pattern, start, end = _quoted(source), source.get("char_start"), source.get("char_end")
    if (
        pattern is None
        or not isinstance(start, int)
        or not isinstance(end, int)
        or not pattern.search(text, start, end)
    ):
        return None
    return Place((start, end), _support(source, nth), source.get("page"))


def found_place(source: Mapping[str, Any], text: str) -> Place | None:
    """Where a stored source's quote stands in the document's text of today; None when its words are no longer in it.

    A document that was read again has new passages. The quote an answer kept is looked for by its words, so that an
    old answer still opens at the right place as long as the words are there.
    """
    pattern = _quoted(source)
    found = None if pattern is None else pattern.search(text)
    return Place(found.span(), None, source.get("page")) if found else None


def _quoted(source: Mapping[str, Any]) -> re.Pattern[str] | None:
    """Finds a source's quote, whatever the white space between its words."""
    words = str(source.get("quote") or "").replace("…", " ").split()
    return re.compile(r"\s+".join(map(re.escape, words))) if words else None


def _support(source: Mapping[str, Any], nth: int) -> tuple[int, int] | None:
    """The stored span of the sentence that backs a mention, in the document's text."""
    spans = source.get("supports")
    if not isinstance(spans, list):
        span: object = source.get("support")
    else:
        known = cast(list[object], spans)
        span = known[nth - 1] if nth <= len(known) else None
    match span:
        case [int(start), int(end)]:
            return start, end
        case _:
            return None


def begins_with_title(text: str, title: str) -> bool:
    """Whether the text's own first heading is the document's title, so that the page need not say it twice."""
    head = (line.strip("#=*-~ \t") for line in text[:2000].splitlines())
    return next((line for line in head if line), "") == title.strip()


def facts(row: DocumentRow, catalog: Catalog, now: datetime) -> tuple[Fact, ...]:
    """What is known of a document; facts that don't apply are left out."""
    values: Sequence[tuple[str, str]] = (
        ("collection", plain_name(row.collection)),
        ("type", row.mime),
        ("size", catalog.size(row.bytes)),
        ("pages", catalog.number(row.pages) if row.pages else ""),
        ("encoding", row.encoding or ""),
        ("passages", catalog.number(row.chunks) if row.chunks else ""),
        ("added", catalog.when(row.created_at, now)),
    )
    return tuple(Fact(catalog.t(f"reader.fact_{name}"), value) for name, value in values if value)


def _source_link(source: Mapping[str, Any], turn_id: str, current: bool, catalog: Catalog, view: str) -> SourceLink:
    path = str(source.get("path") or "")
    where = place_words(source.get("page"), (source.get("line_start"), source.get("line_end")), catalog)
    name = shown_name(path).rsplit("/", 1)[-1]
    return SourceLink(
        n=source["n"],
        href=reader_href(source, turn_id, view=view),
        title=shown_name(title_of(source)),
        locator=f"{name}, {where}" if where else shown_name(path),
        current=current,
    )
