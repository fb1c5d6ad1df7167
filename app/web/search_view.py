"""What the search page shows, computed from what was found: addresses, chips, facets, hits with marked words. Pure.

Everything the page shows is in its address, so that each link is the query with one thing changed. Used by
`app.web.search`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from app.catalog import Catalog
from app.rag.pieces import Passage
from app.render.names import shown_name
from app.search.mentions import Facets, Mentions
from app.web.passage_view import Part, marked, place_words

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
    """A passage that was found. `fit` is its score, `bar` the score's share of `BAR`."""

    href: str
    title: str
    heading: str
    locator: str
    score: str
    bar: float
    fit: float
    snippet: tuple[Part, ...]

    @property
    def holds_words(self) -> bool:
        """Whether a word that was looked for stands in it."""
        return any(part.marked for part in self.snippet)


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
    """The page: what is asked, in words, and what was found. `empty`: there is nothing to search yet."""

    query: Query
    summary: str = ""
    hits: tuple[Found, ...] = ()
    documents: tuple[Mentioning, ...] = ()
    groups: tuple[Group, ...] = ()
    chips: tuple[Chip, ...] = ()
    pages: Pages = field(default_factory=Pages)
    problem: str = ""
    empty: bool = False
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


def type_words(word: str, catalog: Catalog) -> str:
    """A type as a person names it."""
    return catalog.t(f"search.type_{word}") if catalog.has(f"search.type_{word}") else word or catalog.t("search.type_")


def _hit(passage: Passage, words: str, catalog: Catalog) -> Found:
    where = place_words(passage.page, (passage.line_start, passage.line_end), catalog)
    title = passage.title or passage.path.rsplit("/", 1)[-1]
    heading = passage.heading.removeprefix(title).removeprefix(" › ")
    return Found(
        href=f"/documents/{passage.document_id}?{urlencode({'chunk': passage.chunk_id})}#passage",
        title=shown_name(title),
        heading=shown_name(heading),
        locator=f"{shown_name(passage.path)} · {where}",
        score=f"{passage.score:.2f}",
        bar=round(BAR * passage.score, 1),
        fit=passage.score,
        snippet=marked(passage.text, words),
    )


def _words(name: str, value: object, names: Mapping[int, str], catalog: Catalog) -> str:
    if name == "collections" and isinstance(value, int):
        return names.get(value, str(value))
    return type_words(str(value), catalog) if name == "types" else str(value)


def _without(values: tuple[object, ...], one: object) -> tuple[object, ...]:
    return tuple(value for value in values if value != one)
