"""How documents were read: whether recognising text in pictures was asked for, and what it found page by page.

Owns `readings` and `recognised_pages`. Functions that a page calls check the owner; the others are the worker's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.orm import Session

from app.store import intake, jobs
from app.store.collections import readable_ids
from app.store.models.library import Document
from app.store.models.readings import Reading, RecognisedPage

OcrState = Literal["asked", "done", "failed"]

NO_TEXT = "no_text"
"""The reason of a document whose every page is a picture."""


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """What is known of how a document was read: `ocr` as `Reading.ocr`, `recognised` pages whose picture was looked at,
    `words` of them with text."""

    ocr: OcrState | None = None
    recognised: int = 0
    words: int = 0
    cut: bool = False
    language: str | None = None


@dataclass(frozen=True, slots=True)
class ToRecognise:
    """A document whose pictures are to be read: `pages` (from 0) without text, None for all of them; those `known`
    already."""

    item: intake.WorkItem
    pages: tuple[int, ...] | None
    known: frozenset[int]


def to_recognise(session: Session, document_id: int) -> ToRecognise | None:
    """What is left to do for a living PDF that holds pictures; None where there is nothing."""
    item = intake.work_items(session, [document_id]).get(document_id)
    facts = session.execute(select(Document.text_yield, Document.error).where(Document.id == document_id)).first()
    if item is None or facts is None:
        return None
    known = frozenset(pages_of(session, [(item.id, item.sha256)]).get(item.id, {}))
    if facts.error == NO_TEXT:
        return ToRecognise(item, None, known)
    empty = tuple(page for page, chars in enumerate(facts.text_yield or ()) if not chars)
    return ToRecognise(item, empty, known) if set(empty) - known else None


def rows_of(session: Session, document_ids: Sequence[int]) -> dict[int, ReadingRow]:
    """What is known of these documents; those nothing is known of are missing. The caller may read them."""
    counts = _counts(session, document_ids)
    rows = {
        row.document_id: row for row in session.scalars(select(Reading).where(Reading.document_id.in_(document_ids)))
    }
    return {
        number: ReadingRow(
            ocr=rows[number].ocr if number in rows else None,  # pyright: ignore[reportArgumentType] - written by set_ocr
            recognised=counts.get(number, (0, 0))[0],
            words=counts.get(number, (0, 0))[1],
            cut=bool(number in rows and rows[number].cut),
            language=rows[number].language if number in rows else None,
        )
        for number in {*rows, *counts}
    }


def set_ocr(session: Session, document_id: int, state: OcrState) -> None:
    """Says how far recognising is."""
    _write(session, document_id, {"ocr": state})


def note_cut(session: Session, document_id: int, cut: bool) -> None:
    """Keeps whether the end of a long table was left out."""
    _write(session, document_id, {"cut": cut})


def ask(session: Session, document_id: int, now: datetime) -> None:
    """Queues recognising the pictures of a document, unless it is queued already."""
    set_ocr(session, document_id, "asked")
    jobs.enqueue(session, [jobs.NewJob("ocr", f"ocr:{document_id}", document_id)], now)


def pages_of(session: Session, files: Iterable[tuple[int, str]]) -> dict[int, dict[int, Mapping[str, Any]]]:
    """What was recognised in these files, given as (document, sha256): lines by page (from 0), by document."""
    wanted = dict(files)
    query = select(RecognisedPage.document_id, RecognisedPage.sha256, RecognisedPage.page, RecognisedPage.lines)
    found: dict[int, dict[int, Mapping[str, Any]]] = {}
    for row in session.execute(query.where(RecognisedPage.document_id.in_(list(wanted)))):
        if wanted[row.document_id] == row.sha256:
            found.setdefault(row.document_id, {})[row.page] = row.lines
    return found


def add_page(
    session: Session, document_id: int, sha256: str, page: int, lines: Mapping[str, Any], now: datetime
) -> None:
    """Keeps the text of one page's picture; what was kept of another version of the file goes."""
    stale = (RecognisedPage.document_id == document_id, RecognisedPage.sha256 != sha256)
    session.execute(delete(RecognisedPage).where(*stale))
    row = {"document_id": document_id, "page": page, "sha256": sha256, "lines": dict(lines), "recognised_at": now}
    session.execute(insert(RecognisedPage).values(row).on_conflict_do_nothing())


def forget(session: Session, document_ids: Sequence[int]) -> None:
    """Takes out what is kept of documents whose rows stay behind as tombstones."""
    session.execute(delete(RecognisedPage).where(RecognisedPage.document_id.in_(document_ids)))
    session.execute(delete(Reading).where(Reading.document_id.in_(document_ids)))


def forget_wordless(session: Session, document_id: int) -> None:
    """Lets pages in which no word was found be looked at again."""
    is_wordless = func.json_array_length(RecognisedPage.lines, "$.lines") == 0
    session.execute(delete(RecognisedPage).where(RecognisedPage.document_id == document_id, is_wordless))


def untold(session: Session, limit: int, head_chars: int) -> list[tuple[int, str]]:
    """Searchable documents whose language nobody knows, and the first `head_chars` characters of their text."""
    known = select(Reading.document_id).where(Reading.language.is_not(None))
    query = select(Document.id, func.substr(Document.text, 1, head_chars)).where(
        Document.status.in_(("embedding", "ready")),
        Document.deleted_at.is_(None),
        Document.text.is_not(None),
        Document.id.not_in(known),
    )
    return [(row[0], row[1]) for row in session.execute(query.limit(limit))]


def set_languages(session: Session, told: Mapping[int, str]) -> None:
    """Keeps what documents are written in; those that went meanwhile are left out."""
    there = set(session.scalars(select(Document.id).where(Document.id.in_(list(told)))))
    for number, code in told.items():
        if number in there:
            _write(session, number, {"language": code})


def forget_languages(session: Session, document_ids: Sequence[int]) -> None:
    """Their text is another one now."""
    session.execute(update(Reading).where(Reading.document_id.in_(document_ids)).values(language=None))


def languages(session: Session, user_id: int) -> list[tuple[str, int]]:
    """How many of the searchable documents that the user may read are in which language, the most first."""
    number = func.count()
    query = (
        select(Reading.language, number)
        .join(Document, Document.id == Reading.document_id)
        .where(
            Document.collection_id.in_(readable_ids(user_id)),
            Document.deleted_at.is_(None),
            Document.status.in_(("embedding", "ready")),
            Reading.language.is_not(None),
        )
        .group_by(Reading.language)
        .order_by(number.desc(), Reading.language)
    )
    return [(code or "", count) for code, count in session.execute(query)]


def count_unread(session: Session, user_id: int) -> int:
    """How many of the documents that the user may read hold no text: they wait to be read for the first time, or could
    not be. Those that are read again keep their text meanwhile. Few as a rule, and an index gives them."""
    query = select(func.count()).where(
        Document.status.in_(("queued", "parsing", "failed")),
        Document.indexed_at.is_(None),
        Document.deleted_at.is_(None),
        Document.collection_id.in_(readable_ids(user_id)),
    )
    return session.scalar(query) or 0


def waiting(session: Session) -> list[int]:
    """Living documents whose pictures are still to be read, whether or not a job says so."""
    query = select(Reading.document_id).join(Document, Document.id == Reading.document_id)
    return list(session.scalars(query.where(Reading.ocr == "asked", Document.deleted_at.is_(None))))


def _counts(session: Session, document_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Pages looked at, and those of them with words, by document."""
    has_words = func.json_array_length(RecognisedPage.lines, "$.lines") > 0
    query = select(RecognisedPage.document_id, func.count(), func.count().filter(has_words)).join(
        Document, (Document.id == RecognisedPage.document_id) & (Document.sha256 == RecognisedPage.sha256)
    )
    rows = session.execute(query.where(Document.id.in_(document_ids)).group_by(RecognisedPage.document_id))
    return {number: (pages, words) for number, pages, words in rows}


def _write(session: Session, document_id: int, values: Mapping[str, Any]) -> None:
    statement = insert(Reading).values({"document_id": document_id, **values})
    session.execute(statement.on_conflict_do_update(index_elements=["document_id"], set_=dict(values)))
