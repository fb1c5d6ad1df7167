"""The reader, `/documents/{id}`: a document's text, opened at the passage an answer cites.

Owns the route. What it opens is `app.web.reader_place`'s, what stands beside the text `app.web.reader_view`'s, pages as
pictures are `app.web.reader_pages`'. A document is only ever shown as sanitised text made by `app.render.highlight` or
as a picture drawn in a child, never as the file itself.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import RowId
from app.errors import NotFoundError
from app.render.highlight import reader_html
from app.render.names import shown_name
from app.store import documents
from app.store.documents import DocumentDetail
from app.web import library_view, reader_pages, reader_place, reader_view
from app.web.library_rows import file_row
from app.web.reader_place import Asked
from app.web.reader_view import Citation, Place
from app.web.templating import render_fragment, render_page

router = APIRouter()


@router.get("/documents/{document_id}", response_class=HTMLResponse)
def reader_page(
    request: Request,
    document_id: RowId,
    services: ServicesDep,
    user_id: UserDep,
    asked: Annotated[Asked, Depends(reader_place.asked)],
) -> HTMLResponse:
    """The document's text; with `chunk` at that passage, with `turn` and `n` as a citation of that answer, of which `m`
    is the mention. With `view=page` the page of a PDF instead, `page` or the passage's.

    Raises:
        NotFoundError: when the document is not there (or not the user's) and no answer quotes it.
    """
    opened = services.database.read(lambda session: reader_place.opened(session, user_id, document_id, asked))
    citation = None
    if opened.answer is not None and asked.n is not None:
        citation = reader_view.citation(opened.answer, asked.n, services.catalog, asked.m, asked.view or "")
    if opened.document is None:
        if opened.source is None or citation is None or opened.source.get("document_id") != document_id:
            raise NotFoundError("document_not_found")
        gone = {"title": shown_name(str(opened.source.get("title") or opened.source.get("path")))}
        gone |= {"citation": citation, "source": opened.source}
        return render_page(services, request, user_id, "reader/gone.html", status=404, place="library", **gone)
    row, text = opened.document.row, opened.document.text
    views = reader_pages.views(opened, asked)
    figure = None
    if views is not None and views.current == "page":
        figure = reader_pages.figure(services, user_id, opened, asked)
    file = _file_row(opened.document, services)
    lost = opened.source.get("quote", "") if opened.source is not None and opened.place is None else ""
    return render_page(
        services,
        request,
        user_id,
        "reader/page.html",
        place="library",
        row=file,
        body=None if figure is not None and figure.src else _body(opened.document, opened.place, citation),
        views=views,
        figure=figure,
        citation=citation,
        right=opened.right,
        lost_quote=lost,
        facts=reader_view.facts(row, services.catalog, services.clock.now()),
        settled=not file.working,
        titled=reader_view.begins_with_title(text or "", row.title),
    )


@router.get("/ui/documents/{document_id}/state", response_class=HTMLResponse)
def reader_state(document_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """The state of a document that is being read: htmx asks until it can be shown, then loads the page anew.

    Raises:
        NotFoundError: when it was removed meanwhile.
    """
    detail = services.database.read(lambda session: documents.get_document(session, user_id, document_id))
    file = _file_row(detail, services)
    response = render_fragment(services, "reader/_state.html", row=file)
    if detail.text or not file.working:
        response.headers["HX-Refresh"] = "true"
    return response


def _body(document: DocumentDetail, place: Place | None, citation: Citation | None) -> Markup | None:
    """The text as HTML; None where there is none."""
    if not document.text:
        return None
    return reader_html(
        document.text,
        document.row.mime,
        path=document.row.path,
        passage=place and place.passage,
        support=[place.support] if place is not None and place.support is not None else [],
        numeral=citation.n if citation is not None else None,
    )


def _file_row(detail: DocumentDetail, services: Services) -> library_view.FileRow:
    """In work only while there is no text to show yet: what is looked at again meanwhile changes nothing that is
    shown."""
    file = file_row(services, detail.row)
    return replace(file, working=file.status in library_view.WORKING)
