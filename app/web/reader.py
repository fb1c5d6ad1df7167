"""The reader, `/documents/{id}`: a document's text, opened at the passage an answer cites.

Owns the route and what it reads. What stands beside the text is `app.web.reader_view`'s; documents are only ever shown
as sanitised text made by `app.render.highlight`, never as the file itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import RowId
from app.errors import NotFoundError
from app.render.highlight import reader_html
from app.store import chats, chunks, documents
from app.store.chats import MessageRow
from app.store.documents import DocumentDetail
from app.store.engine import Session
from app.web import library_view, reader_view
from app.web.library_rows import file_row
from app.web.marks import right_in_reader
from app.web.reader_view import Place
from app.web.templating import render_fragment, render_page

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Opened:
    """What one address opens: the document (None once removed), the place in it, the answer that cites it, the row of
    its source, and whether that is saved as the right one."""

    document: DocumentDetail | None
    place: Place | None
    answer: MessageRow | None
    source: Mapping[str, Any] | None
    right: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for besides the document: a passage, and which source of which turn it is."""

    chunk: int | None
    turn: str | None
    n: int | None


def asked(
    chunk: RowId | None = None, turn: Annotated[str | None, Query(max_length=64)] = None, n: RowId | None = None
) -> Asked:
    """The query part of the reader's address."""
    return Asked(chunk, turn, n)


@router.get("/documents/{document_id}", response_class=HTMLResponse)
def reader_page(
    request: Request,
    document_id: RowId,
    services: ServicesDep,
    user_id: UserDep,
    asked: Annotated[Asked, Depends(asked)],
) -> HTMLResponse:
    """The document's text; with `chunk` at that passage, with `turn` and `n` as a citation of that answer.

    Raises:
        NotFoundError: when the document is not there (or not the user's) and no answer quotes it.
    """
    opened = services.database.read(lambda session: _open(session, user_id, document_id, asked))
    citation = None
    if opened.answer is not None and asked.n is not None:
        citation = reader_view.citation(opened.answer, asked.n, services.catalog)
    if opened.document is None:
        if opened.source is None or citation is None or opened.source.get("document_id") != document_id:
            raise NotFoundError("document_not_found")
        gone = {"title": library_view.shown_name(str(opened.source.get("title") or opened.source.get("path")))}
        gone |= {"citation": citation, "source": opened.source}
        return render_page(services, request, user_id, "reader/gone.html", status=404, place="library", **gone)
    row, text, place = opened.document.row, opened.document.text, opened.place
    body = None
    if text:
        marks = [place.support] if place is not None and place.support is not None else []
        spot = place and place.passage
        numeral = citation.n if citation is not None else None
        body = reader_html(text, row.mime, path=row.path, passage=spot, support=marks, numeral=numeral)
    return render_page(
        services,
        request,
        user_id,
        "reader/page.html",
        place="library",
        row=_file_row(opened.document, services),
        body=body,
        citation=citation,
        right=opened.right,
        lost_quote=opened.source.get("quote", "") if opened.source is not None and place is None else "",
        facts=reader_view.facts(row, services.catalog, services.clock.now()),
        settled=row.status not in library_view.WORKING,
        titled=reader_view.begins_with_title(text or "", row.title),
    )


@router.get("/ui/documents/{document_id}/state", response_class=HTMLResponse)
def reader_state(document_id: RowId, services: ServicesDep, user_id: UserDep) -> Response:
    """The state of a document that is being read: htmx asks until it can be shown, then loads the page anew.

    Raises:
        NotFoundError: when it was removed meanwhile.
    """
    detail = services.database.read(lambda session: documents.get_document(session, user_id, document_id))
    response = render_fragment(services, "reader/_state.html", row=_file_row(detail, services))
    if detail.text or detail.row.status not in library_view.WORKING:
        response.headers["HX-Refresh"] = "true"
    return response


def _open(session: Session, user_id: int, document_id: int, asked: Asked) -> Opened:
    answer, source = None, None
    if asked.turn is not None and asked.n is not None:
        answer = chats.answer_of(session, user_id, asked.turn)
        source = None if answer is None else reader_view.source_of(answer, asked.n)
    try:
        detail = documents.get_document(session, user_id, document_id)
    except NotFoundError:
        return Opened(None, None, answer, source, None)
    place = _place(session, user_id, detail, asked, source)
    right = None
    if answer is not None and source is not None:
        right = right_in_reader(session, user_id, answer, int(source["n"]))
    return Opened(detail, place, answer, source, right)


def _place(
    session: Session, user_id: int, detail: DocumentDetail, asked: Asked, source: Mapping[str, Any] | None
) -> Place | None:
    """Where the passage is: by its id, or by the words of the quote where the document was read again since."""
    if asked.chunk is not None:
        try:
            chunk = chunks.get_chunk(session, user_id, detail.row.id, asked.chunk)
        except NotFoundError:
            pass
        else:
            same = source is not None and source.get("chunk_id") == asked.chunk
            support = reader_view.support_of(source) if source is not None and same else None
            return Place((chunk.char_start, chunk.char_end), support)
    if source is not None and source.get("document_id") == detail.row.id and detail.text:
        return reader_view.place_of(source, detail.text)
    return None


def _file_row(detail: DocumentDetail, services: Services) -> library_view.FileRow:
    """In work only while the document itself is: what is looked at again meanwhile changes nothing that is shown."""
    return replace(file_row(services, detail.row), working=detail.row.status in library_view.WORKING)
