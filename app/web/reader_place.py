"""What an address of the reader opens: the document, the passage in it, and the answer it was reached from.

Owns the reading of both, with the owner check; called by `app.web.reader` and `app.web.reader_pages`. What is shown
beside the text is `app.web.reader_view`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import Query

from app.edge.inputs import RowId
from app.errors import NotFoundError
from app.store import chats, chunks, documents
from app.store.chats import MessageRow
from app.store.documents import DocumentDetail
from app.store.engine import Session
from app.web import reader_view
from app.web.marks import right_in_reader
from app.web.reader_view import Place

View = Literal["text", "page"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for besides the document: a passage, which source of which turn it is and which mention of
    it, text or page, and the page's number where it is not the passage's."""

    chunk: int | None = None
    turn: str | None = None
    n: int | None = None
    m: int = 1
    view: View | None = None
    page: int | None = None

    def query(self, **changes: object) -> str:
        """The query part of an address that asks for this, with `changes`."""
        asked = replace(self, **changes)  # type: ignore[arg-type]
        fields = {name: getattr(asked, name) for name in ("chunk", "turn", "n", "m", "view", "page")}
        given = [f"{name}={value}" for name, value in fields.items() if value is not None and (name, value) != ("m", 1)]
        return "?" + "&".join(given) if given else ""


@dataclass(frozen=True, slots=True)
class Opened:
    """What one address opens: the document (None once removed), the place in it, the answer that cites it, the row of
    its source, and whether that is saved as the right one."""

    document: DocumentDetail | None
    place: Place | None
    answer: MessageRow | None
    source: Mapping[str, Any] | None
    right: Mapping[str, Any] | None


def asked(
    chunk: RowId | None = None,
    turn: Annotated[str | None, Query(max_length=64, pattern=r"^[\w-]+$")] = None,
    n: RowId | None = None,
    m: Annotated[int, Query(ge=1, le=1000)] = 1,
    view: View | None = None,
    page: Annotated[int | None, Query(ge=1, le=100_000)] = None,
) -> Asked:
    """The query part of the reader's address."""
    return Asked(chunk, turn, n, m, view, page)


def opened(session: Session, user_id: int, document_id: int, asked: Asked) -> Opened:
    """Reads what the address names; what is not there (or not the user's) is None."""
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
    """Where the passage is: where the answer was given it (neighbours as one), as long as its words stand there; else
    by its id; else by the words of the quote, where the document was read again since."""
    text = detail.text or ""
    own = source if source is not None and source.get("document_id") == detail.row.id else None
    if own is not None and (place := reader_view.given_place(own, text, asked.m)) is not None:
        return place
    if asked.chunk is not None:
        try:
            chunk = chunks.get_chunk(session, user_id, detail.row.id, asked.chunk)
        except NotFoundError:
            pass
        else:
            return Place((chunk.char_start, chunk.char_end), None, chunk.page)
    return None if own is None else reader_view.found_place(own, text)
