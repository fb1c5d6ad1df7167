"""Questions saved for the evaluation: what was asked, and which passages would be right.

Owns the table and where the right passages stand today: documents are named by collection and path, passages by their
words, so that both outlive new passages, a new index and new row ids. Every function takes the user's id and checks the
owner in SQL. What saves a question is `app.turns.marking`'s, files are `app.rag.question_lines`'. Called by both, by
`app.rag.eval_runs`, and by whoever compares embedders on a user's own questions.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from app.errors import ConflictError, InvalidInputError, NotFoundError
from app.store.collections import readable_ids
from app.store.models.evaluation import EvalQuestion as Row
from app.store.models.library import Collection, Document

MOST_QUESTIONS = 2_000
UNDO = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RightPassage:
    """A passage that answers. `collection` is a slug, None where a file named no collection.

    `quote` is a slice of the document's canonical text, `[char_start:char_end]` when it was saved; without offsets it
    is words of a file that were not found as they stand, and empty where only the document is known.
    """

    collection: str | None
    path: str
    char_start: int | None = None
    char_end: int | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a right passage is today: the document's id, None once it is gone; whether its words still stand in it."""

    document_id: int | None
    in_text: bool


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """An earlier turn that a question leans on."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to keep. Without `passages` the documents don't say."""

    question: str
    kind: str
    history: tuple[PastQuestion, ...] = ()
    passages: tuple[RightPassage, ...] = ()
    needs_all: bool = False
    by_mark: bool = False
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A saved question; `places` are those of `passages`, in their order. `turn_id` is None once its chat is gone."""

    id: int
    question: str
    kind: str
    history: tuple[PastQuestion, ...]
    passages: tuple[RightPassage, ...]
    places: tuple[Place, ...]
    needs_all: bool
    by_mark: bool
    turn_id: str | None
    created_at: datetime

    @property
    def is_answerable(self) -> bool:
        """Whether the documents are expected to say."""
        return bool(self.passages)

    @property
    def is_gone(self) -> bool:
        """Whether it can't be judged any more: no right document is left, or one of those that are all needed is
        not."""
        there = [place.document_id is not None for place in self.places]
        return self.is_answerable and not (all(there) if self.needs_all else any(there))


def questions_of(session: Session, user_id: int) -> list[EvalQuestion]:
    """All of the user's saved questions, oldest first."""
    return _read(session, user_id, Row.removed_at.is_(None))


def get_question(session: Session, user_id: int, question_id: int) -> EvalQuestion:
    """One saved question.

    Raises:
        NotFoundError: `eval_question_not_found`.
    """
    found = _read(session, user_id, Row.removed_at.is_(None) & (Row.id == question_id))
    if not found:
        raise NotFoundError("eval_question_not_found")
    return found[0]


def of_turns(session: Session, user_id: int, turn_ids: Sequence[str]) -> dict[str, EvalQuestion]:
    """What was saved from these turns, by turn."""
    found = _read(session, user_id, Row.removed_at.is_(None) & Row.turn_id.in_(turn_ids))
    return {question.turn_id: question for question in found if question.turn_id is not None}


def find_same(session: Session, user_id: int, text: str, history: Sequence[PastQuestion]) -> EvalQuestion | None:
    """The saved question with these words after these questions."""
    found = _read(session, user_id, Row.removed_at.is_(None) & (Row.key == _key(text, history)))
    return next(iter(found), None)


def put_question(session: Session, user_id: int, new: NewQuestion, now: datetime) -> int:
    """Keeps a question, in place of the same one where it is kept already; gives its id.

    Raises:
        InvalidInputError: `eval_question_empty`, `eval_too_many`.
    """
    text = new.question.strip()
    if not text:
        raise InvalidInputError("eval_question_empty")
    values: dict[str, Any] = {
        "question": text,
        "kind": new.kind[:40],
        "history": [asdict(past) for past in new.history],
        "passages": [asdict(passage) for passage in new.passages],
        "needs_all": new.needs_all,
        "by_mark": new.by_mark,
        "turn_id": new.turn_id,
        "removed_at": None,
    }
    key = _key(text, new.history)
    known = session.scalar(select(Row).where(Row.user_id == user_id, Row.key == key))
    if known is None:
        if count(session, user_id) >= MOST_QUESTIONS:
            raise InvalidInputError("eval_too_many", params={"limit": MOST_QUESTIONS})
        known = Row(user_id=user_id, key=key, created_at=now)
        session.add(known)
    for name, value in values.items():
        setattr(known, name, value)
    session.flush()
    return known.id


def count(session: Session, user_id: int) -> int:
    """How many questions the user has saved."""
    query = select(func.count()).select_from(Row).where(Row.user_id == user_id, Row.removed_at.is_(None))
    return session.scalar(query) or 0


def edit_question(session: Session, user_id: int, question_id: int, text: str) -> EvalQuestion:
    """Gives a saved question other words.

    Raises:
        NotFoundError: `eval_question_not_found`.
        InvalidInputError: `eval_question_empty`.
        ConflictError: `eval_question_known`: these words are saved already.
    """
    known = get_question(session, user_id, question_id)
    words = text.strip()
    if not words:
        raise InvalidInputError("eval_question_empty")
    key = _key(words, known.history)
    same = session.execute(select(Row.id, Row.removed_at).where(Row.user_id == user_id, Row.key == key)).first()
    if same is not None and same.id != question_id:
        if same.removed_at is None:
            raise ConflictError("eval_question_known")
        session.execute(delete(Row).where(Row.id == same.id))
    session.execute(update(Row).where(Row.id == question_id).values(question=words, key=key, by_mark=False))
    session.expire_all()
    return get_question(session, user_id, question_id)


def remove_question(session: Session, user_id: int, question_id: int, now: datetime) -> EvalQuestion:
    """Takes a saved question out; `restore_question` brings it back for a day.

    Raises:
        NotFoundError: `eval_question_not_found`.
    """
    known = get_question(session, user_id, question_id)
    session.execute(delete(Row).where(Row.user_id == user_id, Row.removed_at < now - UNDO))
    session.execute(update(Row).where(Row.id == question_id).values(removed_at=now))
    return known


def restore_question(session: Session, user_id: int, question_id: int) -> EvalQuestion:
    """Brings a question back that was taken out.

    Raises:
        NotFoundError: `eval_question_not_found`, also once a day has gone by.
    """
    session.execute(update(Row).where(Row.id == question_id, Row.user_id == user_id).values(removed_at=None))
    session.expire_all()
    return get_question(session, user_id, question_id)


def _key(text: str, history: Sequence[PastQuestion]) -> str:
    """The same question, whatever its case and blanks, after the same questions."""
    words = [" ".join(one.casefold().split()) for one in (text, *(past.question for past in history))]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def _read(session: Session, user_id: int, condition: ColumnElement[bool]) -> list[EvalQuestion]:
    rows = list(session.scalars(select(Row).where(Row.user_id == user_id, condition).order_by(Row.id)))
    expected = {row.id: tuple(RightPassage(**passage) for passage in row.passages) for row in rows}
    places = _places(session, user_id, {passage for some in expected.values() for passage in some})
    return [
        EvalQuestion(
            id=row.id,
            question=row.question,
            kind=row.kind,
            history=tuple(PastQuestion(**past) for past in row.history),
            passages=expected[row.id],
            places=tuple(places[passage] for passage in expected[row.id]),
            needs_all=row.needs_all,
            by_mark=row.by_mark,
            turn_id=row.turn_id,
            created_at=row.created_at,
        )
        for row in rows
    ]


def _places(session: Session, user_id: int, passages: set[RightPassage]) -> dict[RightPassage, Place]:
    """Where each passage is today; each document is read once, one after the other."""
    paths = sorted({passage.path for passage in passages})
    living = (Document.deleted_at.is_(None), Document.status != "failed", Document.path.in_(paths))
    found = session.execute(
        select(Document.id, Document.path, Collection.slug)
        .join(Collection, Collection.id == Document.collection_id)
        .where(*living, Document.collection_id.in_(readable_ids(user_id)))
        .order_by(Document.id)
    ).all()
    ids: dict[tuple[str | None, str], int] = {}
    for row in found:
        ids.setdefault((row.slug, row.path), row.id)
        ids.setdefault((None, row.path), row.id)
    places: dict[RightPassage, Place] = {}
    by_words: dict[int, list[RightPassage]] = {}
    for passage in passages:
        document_id = ids.get((passage.collection, passage.path))
        if document_id is None or passage.char_start is None or not passage.quote:
            places[passage] = Place(document_id, document_id is not None)
        else:
            by_words.setdefault(document_id, []).append(passage)
    for document_id, some in by_words.items():
        text = session.scalar(select(Document.text).where(Document.id == document_id)) or ""
        places |= {passage: Place(document_id, passage.quote in text) for passage in some}
    return places
