"""What a reader says of an answer, and what that saves for the evaluation.

Owns the rules: "Helpful" saves the question with the passages that the answer cites (or that the documents don't say,
where that was the answer); a passage marked right, and "the documents don't say", save it by hand, and what was saved
by hand stays when a mark is taken back. "Not helpful" saves nothing. Every function runs inside the caller's
transaction. Rows are `app.store.marks`' and `app.store.eval_questions`'. Called by `app.api` and `app.web`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.errors import ConflictError, NotFoundError
from app.rag.citations import check
from app.rag.follow_ups import leans
from app.rag.pieces import Passage
from app.store import chats, chunks, collections, documents, eval_questions, marks, turns
from app.store.chats import MessageRow
from app.store.engine import Session
from app.store.eval_questions import EvalQuestion, NewQuestion, PastQuestion, RightPassage
from app.store.marks import MarkRow, Verdict

HISTORY_TURNS = 2
ANSWER_CHARS = 2_000
QUOTE_CHARS = 400
QUOTE_MIN_CHARS = 24
"""A shorter sentence stands in too many passages to tell the right one."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of a turn's answer: the mark, the question as it is saved (None: it is not), and the numbers of the
    turn's sources that are saved as right."""

    mark: MarkRow | None = None
    question: EvalQuestion | None = None
    right: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Answered:
    """A turn with its question and answer."""

    turn: turns.TurnRow
    question: MessageRow
    answer: MessageRow


def said_of(session: Session, user_id: int, answers: Mapping[str, MessageRow]) -> dict[str, Said]:
    """What was said of these answers, by turn; every turn has an entry."""
    known = marks.marks_of(session, user_id, list(answers))
    saved = eval_questions.of_turns(session, user_id, list(answers))
    return {
        turn_id: Said(known.get(turn_id), question, _right(session, user_id, answer.sources, question))
        for turn_id, answer in answers.items()
        for question in (saved.get(turn_id),)
    }


def mark_answer(
    session: Session, user_id: int, turn_id: str, verdict: Verdict, reason: str | None, now: datetime
) -> None:
    """Says whether an answer was helpful; what was saved by hand stays as it is.

    Raises:
        NotFoundError: `turn_not_found`.
        InvalidInputError: `reason_too_long`.
    """
    marks.set_mark(session, user_id, turn_id, verdict, reason, now)
    if verdict == "helpful":
        _save_cited(session, user_id, turn_id, now)
    else:
        _forget(session, user_id, turn_id, now)


def unmark_answer(session: Session, user_id: int, turn_id: str, now: datetime) -> None:
    """Takes a mark back, with what it alone saved.

    Raises:
        NotFoundError: `turn_not_found`.
    """
    marks.clear_mark(session, user_id, turn_id)
    _forget(session, user_id, turn_id, now)


def set_right(session: Session, user_id: int, turn_id: str, n: int, right: bool, now: datetime) -> None:
    """Says that source `n` of a turn answers its question, or that it does not. Without any right passage left the
    question is not saved any more.

    Raises:
        NotFoundError: `turn_not_found`, `document_not_found`.
        ConflictError: `eval_passage_changed`: the document was read again, and these words are not in it.
    """
    found = _answered(session, user_id, turn_id)
    source = next((row for row in found.answer.sources if row.get("n") == n), None)
    if source is None:
        raise NotFoundError
    new, known = _new(session, user_id, found)
    kept = () if known is None else known.passages
    if right:
        passage = _passage(session, user_id, source, found.question.content)
        kept = (*(one for one in kept if one != passage), passage)
    elif known is not None:
        place = _span(session, user_id, source)
        kept = tuple(one for one in kept if not _is_in(one, source, place))
    if kept:
        needs_all = known is not None and known.needs_all
        put = replace(new, passages=kept, needs_all=needs_all, kind=_kind(new.history))
        eval_questions.put_question(session, user_id, put, now)
    elif known is not None and known.is_answerable:
        eval_questions.remove_question(session, user_id, known.id, now)


def set_unanswerable(session: Session, user_id: int, turn_id: str, on: bool, now: datetime) -> None:
    """Saves the question as one that the documents don't answer, or takes that back. A question that is saved with
    passages stays so: they are taken back one by one.

    Raises:
        NotFoundError: `turn_not_found`.
        ConflictError: `eval_has_passages`.
    """
    new, known = _new(session, user_id, _answered(session, user_id, turn_id))
    if known is not None and known.is_answerable and not known.by_mark:
        raise ConflictError("eval_has_passages")
    if on:
        eval_questions.put_question(session, user_id, replace(new, kind="unanswerable"), now)
    elif known is not None and not known.is_answerable:
        eval_questions.remove_question(session, user_id, known.id, now)


def _save_cited(session: Session, user_id: int, turn_id: str, now: datetime) -> None:
    found = _answered(session, user_id, turn_id)
    new, known = _new(session, user_id, found)
    if known is not None and not known.by_mark:
        return
    if found.turn.mode == "deflected":
        if (found.turn.numbers or {}).get("searched"):
            put = replace(new, kind="unanswerable", by_mark=True)
            eval_questions.put_question(session, user_id, put, now)
        return
    passages: list[RightPassage] = []
    for source in found.answer.sources:
        if source.get("cited"):
            try:
                passages.append(_passage(session, user_id, source, found.question.content))
            except (NotFoundError, ConflictError):
                continue  # gone or changed since: what is left is still right
    if passages:
        put = replace(new, passages=tuple(dict.fromkeys(passages)), kind=_kind(new.history), by_mark=True)
        eval_questions.put_question(session, user_id, put, now)


def _forget(session: Session, user_id: int, turn_id: str, now: datetime) -> None:
    known = eval_questions.of_turns(session, user_id, [turn_id]).get(turn_id)
    if known is not None and known.by_mark:
        eval_questions.remove_question(session, user_id, known.id, now)


def _answered(session: Session, user_id: int, turn_id: str) -> _Answered:
    turn = turns.get_turn(session, user_id, turn_id)
    answer = chats.answer_of(session, user_id, turn_id)
    if answer is None or answer.parent_id is None:
        raise NotFoundError("turn_not_found")
    return _Answered(turn, chats.get_message(session, user_id, answer.parent_id), answer)


def _new(session: Session, user_id: int, found: _Answered) -> tuple[NewQuestion, EvalQuestion | None]:
    """The question as it would be saved, without passages, and as it is saved already."""
    text = found.question.content
    history = _history(session, user_id, found.question) if leans(text) else ()
    known = eval_questions.of_turns(session, user_id, [found.turn.id]).get(found.turn.id)
    if known is not None:
        text, history = known.question, known.history  # its words may have been changed
    new = NewQuestion(text, _kind(history), history, turn_id=found.turn.id)
    return new, known or eval_questions.find_same(session, user_id, text, history)


def _history(session: Session, user_id: int, question: MessageRow) -> tuple[PastQuestion, ...]:
    before = chats.earlier_messages(session, user_id, question.chat_id, before_id=question.id, limit=2 * HISTORY_TURNS)
    asked = {message.turn_id: message.content for message in before if message.role == "user"}
    return tuple(
        PastQuestion(asked[message.turn_id], message.content[:ANSWER_CHARS])
        for message in before
        if message.role == "assistant" and message.turn_id in asked
    )


def _kind(history: Sequence[PastQuestion]) -> str:
    return "followup" if history else "question"


def _right(
    session: Session, user_id: int, sources: Sequence[Mapping[str, Any]], question: EvalQuestion | None
) -> frozenset[int]:
    if question is None or not question.passages:
        return frozenset()
    places = {int(row["n"]): (row, _span(session, user_id, row)) for row in sources if row.get("n")}
    return frozenset(
        n for n, (row, place) in places.items() if any(_is_in(one, row, place) for one in question.passages)
    )


def _is_in(passage: RightPassage, source: Mapping[str, Any], place: tuple[int, int] | None) -> bool:
    """Whether a right passage is (part of) a source: the same document, and stretches that touch."""
    if passage.path != source.get("path") or passage.char_start is None or passage.char_end is None or place is None:
        return False
    return passage.char_start < place[1] and place[0] < passage.char_end


def _span(session: Session, user_id: int, source: Mapping[str, Any]) -> tuple[int, int] | None:
    """Where a source stands in its document; those of a deflected turn are known by their chunk only."""
    match source:
        case {"char_start": int(start), "char_end": int(end)}:
            return start, end
        case {"document_id": int(document_id), "chunk_id": int(chunk_id)}:
            try:
                chunk = chunks.get_chunk(session, user_id, document_id, chunk_id)
            except NotFoundError:
                return None
            return chunk.char_start, chunk.char_end
        case _:
            return None


def _passage(session: Session, user_id: int, source: Mapping[str, Any], question: str) -> RightPassage:
    detail = documents.get_document(session, user_id, int(source["document_id"]))
    text, place = detail.text or "", _span(session, user_id, source)
    words = [re.escape(word) for word in str(source.get("quote") or "").replace("…", " ").split()]
    said = re.compile(r"\s+".join(words)) if words else None
    if place is None or (said is not None and said.search(text, *place) is None):
        moved = said.search(text) if said is not None else None
        if moved is None:
            raise ConflictError("eval_passage_changed")
        place, source = moved.span(), {**source, "support": None}
    start, end = _quoted(text, place, source.get("support"), question)
    slug = collections.get_collection(session, user_id, detail.row.collection_id).slug
    return RightPassage(slug, detail.row.path, start, end, text[start:end])


def _quoted(text: str, place: tuple[int, int], support: object, question: str) -> tuple[int, int]:
    """The stretch of a passage to keep: the sentence that backs the answer, else the one that fits the question, else
    its beginning. Short, so that a later cut of the document does not part it."""
    match support:
        case [int(start), int(end)] if end - start >= QUOTE_MIN_CHARS and place[0] <= start < end <= place[1]:
            return start, end
        case _:
            pass
    passage = Passage(1, 0, 0, "", "", "", None, text[slice(*place)], *place, 0, 0, 0.0)
    fitting = next((cite.support for cite in check(f"{question.strip()} [1]", [passage]).cites), None)
    if fitting is not None and fitting.char_end - fitting.char_start >= QUOTE_MIN_CHARS:
        return fitting.char_start, fitting.char_end
    head = text[place[0] : place[0] + QUOTE_CHARS]
    cut = head.rfind(" ") if place[1] - place[0] > QUOTE_CHARS else -1
    return place[0], min(place[1], place[0] + (cut if cut > 0 else len(head)))
