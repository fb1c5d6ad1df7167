"""Pages of a PDF in the reader: the picture of a page, and the figure that shows it.

Owns the route of the picture and what is asked of `app.ingest.extract.page_pictures`. A picture is drawn before the
page that shows it is sent: so its size is known, and where there is none the reader says so and shows the text.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response
from markupsafe import Markup

from app.edge.deps import Services, ServicesDep, UserDep
from app.edge.inputs import RowId
from app.errors import NotFoundError
from app.ingest.extract.drawn import Asked as Wanted
from app.ingest.extract.drawn import Drawn
from app.ingest.extract.page_pictures import PageNotDrawnError, tag
from app.render.highlight import quote_html
from app.render.names import shown_name
from app.store.documents import DocumentRow
from app.web import library_view, reader_place
from app.web.reader_place import Asked, Opened
from app.web.reader_view import Place

router = APIRouter()

PDF = "application/pdf"
_LONGEST_PASSAGE = 20_000


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A page as the reader shows it. Without `src` it could not be drawn; `width` and `height` are pixels of the
    picture. `said` is the passage as text, with the supporting sentence marked, empty where the page has none of it."""

    number: int
    pages: int | None
    src: str
    width: int
    height: int
    alt: str
    previous: str
    next: str
    said: Markup


@dataclass(frozen=True, slots=True)
class Views:
    """The two ways to see a document that has pages, as addresses."""

    text: str
    page: str
    current: reader_place.View


@router.get("/documents/{document_id}/pages/{number}.png", response_class=Response)
def page_picture(
    request: Request,
    document_id: RowId,
    number: Annotated[int, Path(ge=1, le=100_000)],
    services: ServicesDep,
    user_id: UserDep,
    asked: Annotated[Asked, Depends(reader_place.asked)],
) -> Response:
    """The page as PNG, the passage boxed and its supporting sentence tinted where the address names them.

    Kept by the reader's browser only, and asked for again each time: a document may be removed or change hands.

    Raises:
        NotFoundError: when the document is not there, or not the user's, or has no pages.
        PageNotDrawnError: when the page can't be drawn.
    """
    opened = services.database.read(lambda session: reader_place.opened(session, user_id, document_id, asked))
    if opened.document is None or not has_pages(opened.document.row):
        raise NotFoundError("document_not_found")
    wanted = _wanted(opened, number)
    headers = {"ETag": f'"{tag(opened.document.row.sha256, wanted)}"', "Cache-Control": "private, no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    drawn = _draw(services, user_id, opened.document.row, wanted)
    return Response(drawn.png, media_type="image/png", headers=headers)


def has_pages(row: DocumentRow) -> bool:
    """Whether a document can be seen page by page; one that could not be read is judged by its name."""
    return row.mime == PDF or (row.status == "failed" and row.path.lower().endswith(".pdf"))


def views(opened: Opened, asked: Asked) -> Views | None:
    """How a document with pages can be seen; None for others. Scans without text are seen as pages."""
    if opened.document is None or not has_pages(opened.document.row):
        return None
    row, has_text = opened.document.row, bool(opened.document.text)
    if row.status in library_view.WORKING and not has_text:
        return None
    address = f"/documents/{row.id}"
    current = (asked.view or "text") if has_text else "page"
    text = f"{address}{asked.query(view=None, page=None)}#passage" if has_text else ""
    return Views(text, f"{address}{asked.query(view='page', page=None)}", current)


def figure(services: Services, user_id: int, opened: Opened, asked: Asked) -> PageFigure:
    """The page asked for; if none, the one with the supporting sentence, or the one on which the passage begins."""
    assert opened.document is not None
    row, place = opened.document.row, opened.place
    wanted = _wanted(opened, asked.page or (0 if place and place.page else 1))
    address = f"/documents/{row.id}"
    query = asked.query(view=None, page=None)
    try:
        drawn = _draw(services, user_id, row, wanted)
    except (PageNotDrawnError, NotFoundError):
        drawn = None
    number = drawn.page if drawn else wanted.page or wanted.first
    pages = drawn.pages if drawn else row.pages
    catalog = services.catalog
    name = shown_name(row.path).rsplit("/", 1)[-1]
    boxed = drawn is not None and drawn.boxed
    alt = catalog.t("reader.page_alt_boxed" if boxed else "reader.page_alt", page=number, pages=pages or "?", name=name)
    return PageFigure(
        number=number,
        pages=pages,
        src=f"{address}/pages/{number}.png{query}" if drawn else "",
        width=drawn.width if drawn else 0,
        height=drawn.height if drawn else 0,
        alt=alt,
        previous=f"{address}{asked.query(view='page', page=number - 1)}" if number > 1 else "",
        next=f"{address}{asked.query(view='page', page=number + 1)}" if pages and number < pages else "",
        said=_said(opened.document.text or "", place) if boxed and place else Markup(""),
    )


def _wanted(opened: Opened, page: int) -> Wanted:
    place, text = opened.place, (opened.document and opened.document.text) or ""
    if place is None or place.page is None or not text:
        return Wanted(page)
    start, end = place.passage
    end = min(end, start + _LONGEST_PASSAGE)
    support = None
    if place.support is not None and start <= place.support[0] < place.support[1] <= end:
        support = (place.support[0] - start, place.support[1] - start)
    return Wanted(page, text[start:end], place.page, support)


def _draw(services: Services, user_id: int, row: DocumentRow, wanted: Wanted) -> Drawn:
    @contextmanager
    def opening() -> Generator[BinaryIO]:
        with services.sources.opened(user_id, row.id) as (_, file):
            yield file

    return services.page_pictures.draw(row.sha256, wanted, opening)


def _said(text: str, place: Place) -> Markup:
    start, end = place.passage
    end = min(end, start + _LONGEST_PASSAGE)
    support = place.support
    marks = [(support[0] - start, support[1] - start)] if support and start <= support[0] < support[1] <= end else []
    return quote_html(text[start:end], marks)
