"""An answer as a reader sees it: the Markdown of a message and its stored sources, to HTML with notes.

Joins what `app.rag` knows (where markers stand) with what `app.render` does (HTML). Called by `app.api` for the `done`
frame and by `app.web` for pages, so that a live answer and a stored one are the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.catalog import Catalog
from app.rag.markers import find_markers
from app.render.answer import Marker, Source, Titles, answer_html
from app.render.highlight import quote_html
from app.render.names import plain_name

SourceRow = Mapping[str, Any]
"""A row of `messages.sources`, as `app.rag.citations.source_rows` makes it."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source for the lists and the sheet: where it leads and what it says."""

    n: int
    href: str
    title: str
    path: str
    locator: str
    score: float
    cited: bool
    quote: Markup


def answer_of_message(catalog: Catalog, content: str, rows: Sequence[SourceRow], turn_id: str) -> Markup:
    """The HTML of an answer; `rows` are its numbered sources (none for a deflected one)."""
    markers = [Marker(found.start, found.end, found.numbers) for found in find_markers(content)]
    sources = {int(row["n"]): _source(catalog, row, turn_id) for row in rows}
    # The built-in answerer's own first sentence is about itself, the rest are quotes.
    quotes = content.startswith(catalog.t("answer.no_model"))
    titles = Titles() if quotes else Titles(catalog.t("chat.unbacked"), catalog.t("chat.unlike"))
    return answer_html(content, markers, sources, key=turn_id, titles=titles)


def source_views(rows: Sequence[SourceRow], turn_id: str) -> list[SourceView]:
    """The sources of a turn in their order."""
    return [
        SourceView(
            n=int(row.get("n") or 0),
            href=reader_href(row, turn_id),
            title=title_of(row),
            path=plain_name(str(row["path"])),
            locator=locator_of(row),
            score=float(row.get("score") or 0.0),
            cited=bool(row.get("cited")),
            quote=quote_html(str(row.get("quote") or ""), _marks(row)),
        )
        for row in rows
    ]


def reader_href(row: SourceRow, turn_id: str, nth: int = 1, view: str = "") -> str:
    """Where a source opens: its document, at the passage; numbered ones know the answer they belong to, and which
    mention of theirs it is. `view` is the reader's, where it is not the usual one."""
    address = f"/documents/{int(row['document_id'])}?chunk={int(row['chunk_id'])}"
    if row.get("n"):
        address += f"&turn={turn_id}&n={int(row['n'])}" + (f"&m={nth}" if nth > 1 else "")
    return f"{address}{f'&view={view}' if view else ''}#passage"


def title_of(row: SourceRow) -> str:
    """The innermost heading, else the document's title, else its file name, as it may be shown."""
    heading = str(row.get("heading") or "").rpartition(" › ")[2]
    return plain_name(heading or str(row.get("title") or "") or str(row["path"]).rpartition("/")[2])


def locator_of(row: SourceRow) -> str:
    """`restic/060_forget.rst:15–23`, or `manual.pdf, p. 7`."""
    path, page = plain_name(str(row["path"])), row.get("page")
    if page is not None:
        return f"{path}, p. {page}"
    start, end = row.get("line_start"), row.get("line_end")
    if start is None:
        return path
    return f"{path}:{start}" if end in (None, start) else f"{path}:{start}–{end}"


def _source(catalog: Catalog, row: SourceRow, turn_id: str) -> Source:
    supports: Sequence[object] = row.get("supports") or ()
    return Source(
        n=int(row["n"]),
        href=reader_href(row, turn_id),
        title=title_of(row),
        locator=locator_of(row),
        label=catalog.t("chat.source_label", n=int(row["n"]), title=title_of(row)),
        quote=str(row.get("quote") or ""),
        marks=_marks(row),
        later=tuple(reader_href(row, turn_id, nth) for nth in range(2, len(supports) + 1)),
        unbacked=frozenset(nth for nth, support in enumerate(supports, 1) if support is None),
    )


def _marks(row: SourceRow) -> tuple[tuple[int, int], ...]:
    return tuple((int(mark[0]), int(mark[1])) for mark in row.get("marks") or ())
