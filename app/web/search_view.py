"""What the search page shows, computed from what was found: addresses, chips, facets, hits with marked words. Pure.

Everything the page shows is in its address, so that each link is the query with one thing changed. Used by
`app.web.search`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from app.catalog import Catalog
from app.rag.pieces import Passage
from app.search.mentions import Facets, Mentions
from app.web.library_view import Part, shown_name

SNIPPET_CHARS = 320
BAR = 40
"""Width of a score's bar in pixels, as in the chat."""


@dataclass(frozen=True, slots=True)
class Query:
    """An address of the page. `view` is `passages` or `documents`; `page` counts from 1, of documents only."""

    q: str = ""
    view: str = "passages"
    collections: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    year: str = ""
    since: str = ""
    until: str = ""
    path: str = ""
    page: int = 1

    @property
    def address(self) -> str:
        """The page's address, without what says nothing."""
        values: list[tuple[str, object]] = [("q", self.q)]
        if self.view != "passages":
            values.append(("view", self.view))
        values += [("collection", number) for number in self.collections]
        values += [("type", word) for word in self.types]
        for name in ("year", "since", "until", "path"):
            if getattr(self, name):
                values.append((name, getattr(self, name)))
        if self.page > 1:
            values.append(("page", self.page))
        return f"/search?{urlencode(values)}"

    @property
    def is_filtered(self) -> bool:
        """Whether anything but words is asked for."""
        return bool(self.collections or self.types or self.year or self.since or self.until or self.path)


@dataclass(frozen=True, slots=True)
class Choice:
    """A facet's value: `href` takes it in, or out where it is `chosen`."""

    words: str
    count: str
    href: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A facet."""

    title: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in effect and the address without it."""

    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found. `bar` is the score's share of `BAR`."""

    href: str
    title: str
    heading: str
    locator: str
    score: str
    bar: float
    snippet: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Mentioning:
    """A document that mentions the words: `href` opens the reader at the first mention, `inside` searches in it."""

    href: str
    title: str
    path: str
    passages: str


@dataclass(frozen=True, slots=True)
class Pages:
    """Where a long list goes on; empty at its ends."""

    words: str = ""
    previous: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """The page: what is asked, in words, and what was found."""

    query: Query
    summary: str = ""
    hits: tuple[Found, ...] = ()
    documents: tuple[Mentioning, ...] = ()
    groups: tuple[Group, ...] = ()
    chips: tuple[Chip, ...] = ()
    pages: Pages = field(default_factory=Pages)
    problem: str = ""
    views: tuple[Choice, ...] = ()


def views(query: Query, catalog: Catalog) -> tuple[Choice, ...]:
    """The two ways to list what is found."""
    return tuple(
        Choice(catalog.t(f"search.view_{name}"), "", replace(query, view=name, page=1).address, query.view == name)
        for name in ("passages", "documents")
    )


def chips(query: Query, names: Mapping[int, str], catalog: Catalog) -> tuple[Chip, ...]:
    """Every filter in effect."""
    first = replace(query, page=1)
    found = [
        Chip(names.get(one, str(one)), replace(first, collections=_without(query.collections, one)).address)
        for one in query.collections
    ]
    found += [
        Chip(type_words(one, catalog), replace(first, types=_without(query.types, one)).address) for one in query.types
    ]
    if query.year:
        found.append(Chip(query.year, replace(first, year="").address))
    for name in ("since", "until", "path"):
        value = getattr(query, name)
        if value:
            words = catalog.t(f"search.chip_{name}", value=shown_name(value))
            found.append(Chip(words, replace(first, **{name: ""}).address))
    return tuple(found)


def groups(query: Query, facets: Facets, names: Mapping[int, str], catalog: Catalog) -> tuple[Group, ...]:
    """The facets with more than one value, or one that is chosen."""
    first = replace(query, page=1)

    def choices(rows: Sequence[tuple[object, int]], chosen: Sequence[object], name: str) -> tuple[Choice, ...]:
        made: list[Choice] = []
        for value, count in rows:
            is_chosen = value in chosen
            values = tuple(one for one in chosen if one != value) if is_chosen else (*chosen, value)
            changed: object = ("" if is_chosen else value) if name == "year" else values
            href = replace(first, **{name: changed}).address  # pyright: ignore[reportArgumentType] - by the facet's name
            made.append(Choice(_words(name, value, names, catalog), catalog.number(count), href, is_chosen))
        return tuple(made)

    all_groups = (
        Group(catalog.t("search.facet_collection"), choices(facets.collections, query.collections, "collections")),
        Group(catalog.t("search.facet_type"), choices(facets.types, query.types, "types")),
        Group(
            catalog.t("search.facet_year"),
            choices(facets.years[::-1], (query.year,) if query.year else (), "year"),
        ),
    )
    return tuple(
        group for group in all_groups if len(group.choices) > 1 or any(choice.chosen for choice in group.choices)
    )


def hits(passages: Sequence[Passage], query: Query, catalog: Catalog) -> tuple[Found, ...]:
    """Passages as they are listed, neighbours already one."""
    return tuple(_hit(passage, query.q, catalog) for passage in passages)


def documents(found: Mentions, query: Query, catalog: Catalog) -> tuple[Mentioning, ...]:
    """Documents as they are listed."""
    return tuple(
        Mentioning(
            href=f"/documents/{row.document_id}?{urlencode({'chunk': row.chunk_id})}#passage",
            title=shown_name(row.title or row.path.rsplit("/", 1)[-1]),
            path=shown_name(row.path),
            passages=catalog.t("search.passages", n=row.passages),
        )
        for row in found.rows
    )


def pages(query: Query, total: int, size: int, catalog: Catalog) -> Pages:
    """Where the list goes on."""
    if total <= size:
        return Pages()
    first, last = (query.page - 1) * size + 1, min(query.page * size, total)
    return Pages(
        words=catalog.t("search.range", first=first, last=last, total=total),
        previous=replace(query, page=query.page - 1).address if query.page > 1 else "",
        next=replace(query, page=query.page + 1).address if last < total else "",
    )


def marked(text: str, words: str) -> tuple[Part, ...]:
    """The stretch of `text` that holds the most of the words, in parts; a word is marked with what it ends in, writing
    without spaces wherever it stands."""
    flat = " ".join(text.split())
    pattern = _pattern(words)
    start, end = _best(flat, [(match.start(), match.group().casefold()) for match in pattern.finditer(flat)])
    parts: list[Part] = [Part("… ", False)] if start else []
    shown, at = flat[start:end], 0
    for match in pattern.finditer(shown):
        parts += [Part(shown[at : match.start()], False), Part(match.group(), True)]
        at = match.end()
    parts.append(Part(shown[at:] + (" …" if end < len(flat) else ""), False))
    return tuple(part for part in parts if part.text)


def type_words(word: str, catalog: Catalog) -> str:
    """A type as a person names it."""
    return catalog.t(f"search.type_{word}") if catalog.has(f"search.type_{word}") else word or catalog.t("search.type_")


def _hit(passage: Passage, words: str, catalog: Catalog) -> Found:
    if passage.page:
        where = catalog.t("reader.page", page=passage.page)
    elif passage.line_start == passage.line_end:
        where = catalog.t("library.hit_line", start=passage.line_start)
    else:
        where = catalog.t("library.hit_lines", start=passage.line_start, end=passage.line_end)
    title = passage.title or passage.path.rsplit("/", 1)[-1]
    heading = passage.heading.removeprefix(title).removeprefix(" › ")
    return Found(
        href=f"/documents/{passage.document_id}?{urlencode({'chunk': passage.chunk_id})}#passage",
        title=shown_name(title),
        heading=shown_name(heading),
        locator=f"{shown_name(passage.path)} · {where}",
        score=f"{passage.score:.2f}",
        bar=round(BAR * passage.score, 1),
        snippet=marked(passage.text, words),
    )


def _words(name: str, value: object, names: Mapping[int, str], catalog: Catalog) -> str:
    if name == "collections" and isinstance(value, int):
        return names.get(value, str(value))
    return type_words(str(value), catalog) if name == "types" else str(value)


def _without(values: tuple[object, ...], one: object) -> tuple[object, ...]:
    return tuple(value for value in values if value != one)


def _pattern(words: str) -> re.Pattern[str]:
    found = sorted({word for word in re.findall(r"\w+", words) if len(word) > 1}, key=len, reverse=True)
    made = [
        rf"\b{re.escape(word)}\w{{0,3}}" if word.isascii() or _has_case(word) else re.escape(word) for word in found
    ]
    return re.compile("|".join(made) or r"(?!)", re.IGNORECASE)


def _has_case(word: str) -> bool:
    """Whether a word is of a script with capitals, which all part their words by spaces."""
    return word.lower() != word.upper()


def _best(text: str, marks: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Start and end of a stretch that holds as many different words as one of its length can."""
    if len(text) <= SNIPPET_CHARS:
        return 0, len(text)
    starts = [max(0, at - SNIPPET_CHARS // 5) for at, _ in marks] or [0]
    kinds = [len({word for at, word in marks if start <= at < start + SNIPPET_CHARS - 20}) for start in starts]
    start = starts[max(range(len(starts)), key=lambda place: (kinds[place], -place))]
    if start:
        space = text.find(" ", start)
        start = space + 1 if 0 <= space < start + 30 else start
    space = text.rfind(" ", start + SNIPPET_CHARS - 30, start + SNIPPET_CHARS)
    end = min(len(text), space if space > 0 and start + SNIPPET_CHARS < len(text) else start + SNIPPET_CHARS)
    return start, end
