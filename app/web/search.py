"""`/search`: passages that fit a question, and every document that mentions some words, narrowed by facets.

Owns what is read for the page; what it says is `app.web.search_view`'s, finding and counting `app.search`'s. The whole
state of the page stands in its address.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.errors import error_message
from app.errors import InvalidInputError
from app.rag.context import passages_of
from app.rag.merging import merged
from app.render.names import plain_name
from app.search.asking import Asked, filters_of
from app.search.hits import SearchFilters
from app.search.mentions import Facets, Mentions, facets, mentions
from app.store import collections
from app.store.document_types import TYPE_WORDS
from app.store.engine import Session
from app.web import search_view
from app.web.search_view import Shown
from app.web.templating import render_page

router = APIRouter()

HITS = 30
"""Passages asked for; neighbours become one."""
DOCUMENTS = 50
"""Documents on a page."""
QUERY_CHARS = 400
MOST_PAGES = 1000


def read_query(
    q: Annotated[str, Query(max_length=QUERY_CHARS)] = "",
    view: str = "",
    collection: Annotated[list[str] | None, Query(max_length=50)] = None,
    type: Annotated[list[str] | None, Query(max_length=50)] = None,
    year: str = "",
    page: str = "",
) -> search_view.Query:
    """The address as a query; a value that is no choice counts as none, as an old link may hold one."""
    numbers = [int(one) for one in collection or () if one.isdecimal() and len(one) < 18]
    return search_view.Query(
        q=" ".join(q.split()),
        view="documents" if view == "documents" else "passages",
        collections=tuple(dict.fromkeys(numbers)),
        types=tuple(one for one in dict.fromkeys(type or ()) if one in TYPE_WORDS),
        year=year if year.isdecimal() and len(year) == 4 else "",
        page=min(max(int(page), 1), MOST_PAGES) if page.isdecimal() and len(page) < 5 else 1,
    )


def read_range(
    query: Annotated[search_view.Query, Depends(read_query)],
    since: Annotated[str, Query(max_length=40)] = "",
    until: Annotated[str, Query(max_length=40)] = "",
    path: Annotated[str, Query(max_length=1000)] = "",
) -> search_view.Query:
    """With days and folder, which are told when they are wrong."""
    return replace(query, since=since.strip(), until=until.strip(), path=path.strip())


@router.get("/search", response_class=HTMLResponse)
def search_page(
    request: Request,
    services: ServicesDep,
    user_id: UserDep,
    query: Annotated[search_view.Query, Depends(read_range)],
) -> HTMLResponse:
    """The page; a filter that can't be read is named and nothing is searched."""
    listed = services.database.read(lambda session: collections.list_collections(session, user_id))
    names = {one.id: plain_name(one.name) for one in listed}
    shown = Shown(
        query,
        chips=search_view.chips(query, names, services.catalog),
        views=search_view.views(query, services.catalog),
    )
    try:
        filters = _filters(query)
    except InvalidInputError as error:
        shown = replace(shown, problem=error_message(services.catalog, error))
    else:
        shown = _found(services, user_id, shown, filters, names)
    status = 422 if shown.problem else 200
    return render_page(services, request, user_id, "search/page.html", status=status, place="library", shown=shown)


def _filters(query: search_view.Query) -> SearchFilters:
    """A year is all of its days; days of their own narrow it further."""
    year = (f"{query.year}-01-01", f"{query.year}-12-31") if query.year else ("", "")
    asked = Asked(
        collections=query.collections or None,
        path=query.path,
        types=query.types or None,
        since=query.since or year[0],
        until=query.until or year[1],
    )
    return filters_of(asked)


def _found(services: Services, user_id: int, shown: Shown, filters: SearchFilters, names: dict[int, str]) -> Shown:
    query, catalog = shown.query, services.catalog
    skip = (query.page - 1) * DOCUMENTS if query.view == "documents" else 0

    def read(session: Session) -> tuple[Facets, Mentions]:
        counted = mentions(session, user_id, query.q, filters, DOCUMENTS, skip)
        return facets(session, user_id, query.q, filters), counted

    faceted, mentioned = services.database.read(read)
    shown = replace(shown, groups=search_view.groups(query, faceted, names, catalog))
    facts = {"total": mentioned.total, "of": mentioned.of, "words": query.q}
    if not query.q:
        return replace(shown, summary=catalog.t("search.count", n=mentioned.of), empty=not mentioned.of)
    if query.view == "documents":
        return replace(
            shown,
            summary=catalog.t("search.mention", n=mentioned.total, **facts),
            documents=search_view.documents(mentioned, query, catalog),
            pages=search_view.pages(query, mentioned.total, DOCUMENTS, catalog),
        )
    hits = services.searcher.search(query.q, user_id=user_id, k=HITS, filters=filters)
    listed = search_view.hits(merged(passages_of(hits)), query, catalog)
    is_near = any(hit.holds_words or hit.fit >= services.settings.retrieval_min_score for hit in listed)
    summary = catalog.t("search.fit" if is_near else "search.far", n=len(listed), **facts) if listed else ""
    return replace(shown, summary=summary, hits=listed)
