"""Rows of documents, passages and answers for page tests, made by the repositories that ingest and turns use."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import update

from app.rag import citations
from app.rag.pieces import Passage
from app.rag.turn import TurnStats
from app.store import chats, chunks, collections, documents, intake, jobs, turns
from app.store.engine import Database, Session
from app.store.models.library import Job
from app.store.models.setup import LOCAL_USER_ID, User
from app.turns.settle import Draft, Ending, query_row, settle

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)


def add_document(
    database: Database,
    path: str,
    text: str | None = None,
    *,
    user_id: int = LOCAL_USER_ID,
    failed: str | None = None,
    **values: Any,
) -> int:
    """A document that was read (or failed); its paragraphs are its passages. Without text it is queued, and its turn is
    a day away: a worker would find that it has no file."""

    def work(session: Session) -> int:
        collection = collections.library_id(session, user_id, NOW)
        sha = hashlib.sha256((text or path).encode()).hexdigest()
        new = intake.NewDocument(collection, "upload", path, sha, len((text or "").encode()))
        (document_id,) = intake.add_documents(session, [new], NOW)
        if text is None and failed is None:
            jobs.enqueue(session, [jobs.ingest_job(document_id, sha)], NOW)
            tomorrow = datetime.now(UTC) + timedelta(days=1)
            session.execute(update(Job).where(Job.document_id == document_id).values(not_before=tomorrow))
        if failed is not None:
            intake.mark_failed(session, document_id, failed, NOW)
        if text is not None:
            known = {"title": "", "mime": "text/markdown", "encoding": "utf-8", "pages": None, "text_yield": None}
            intake.mark_read(session, document_id, {**known, "text": text, **values}, NOW)
            chunks.add_chunks(session, {document_id: _drafts(text)})
        return document_id

    return database.write(work)


def read_again(database: Database, document_id: int, text: str) -> None:
    """Another text for a document, with new passages, as when a file changed."""

    def work(session: Session) -> None:
        chunks.drop_chunks(session, document_id)
        known = {"title": "", "mime": "text/markdown", "encoding": "utf-8", "pages": None, "text_yield": None}
        intake.mark_read(session, document_id, {**known, "text": text}, NOW)
        chunks.add_chunks(session, {document_id: _drafts(text)})

    database.write(work)


def set_status(database: Database, document_id: int, status: str) -> None:
    """Moves a document to a state without the worker."""
    marks = {"parsing": intake.mark_parsing, "queued": intake.mark_queued, "embedding": intake.mark_embedding}
    database.write(lambda session: marks[status](session, [document_id]))


def passages_of(database: Database, document_id: int) -> list[chunks.ChunkRow]:
    """The document's passages in order."""
    return database.read(lambda session: chunks.list_chunks(session, LOCAL_USER_ID, document_id))


def add_user(database: Database, name: str = "other") -> int:
    """Another person."""

    def work(session: Session) -> int:
        user = User(username=name, display_name=name, role="user", created_at=NOW)
        session.add(user)
        session.flush()
        return user.id

    return database.write(work)


def add_answer(
    database: Database,
    turn_id: str,
    question: str,
    answer: str,
    passages: list[tuple[int, chunks.ChunkRow]],
    *,
    mode: str = "grounded",
    **numbers: Any,
) -> turns.BegunTurn:
    """A settled turn whose answer was given these passages, numbered from 1, and whose citations were checked."""

    def work(session: Session) -> turns.BegunTurn:
        begun = turns.begin_turn(session, turns.NewTurn(turn_id, LOCAL_USER_ID, None, None, question, NOW))
        given = [
            Passage(
                n=n,
                document_id=document_id,
                chunk_id=row.id,
                path=(detail := documents.get_document(session, LOCAL_USER_ID, document_id).row).path,
                title=detail.title,
                heading=row.heading,
                page=row.page,
                text=row.text,
                char_start=row.char_start,
                char_end=row.char_end,
                line_start=row.line_start,
                line_end=row.line_end,
                score=0.8,
            )
            for n, (document_id, row) in enumerate(passages, 1)
        ]
        rows = citations.source_rows(given, citations.check(answer, given))
        known = {"mode": mode, "model": "m", "top_score": 0.8, "rounds": 1, "total_ms": 900, "first_ms": 400}
        stats = TurnStats(turn=turn_id, chat=begun.chat_id, user=LOCAL_USER_ID, **{**known, **numbers})
        draft = Draft(begun.message_id, answer, sources=rows, prompt=[{"role": "user", "content": question}])
        query = query_row(stats, draft, question, [], now=NOW, mode=mode)
        settle(session, Ending("answer", query=query), stats, draft, now=NOW)
        return begun

    return database.write(work)


def delete_chat(database: Database, chat_id: int) -> None:
    """Takes a chat out."""
    database.write(lambda session: chats.delete_chat(session, LOCAL_USER_ID, chat_id))


def _drafts(text: str) -> list[dict[str, Any]]:
    drafts: list[dict[str, Any]] = []
    at = 0
    for ordinal, part in enumerate(text.split("\n\n")):
        start = text.index(part, at)
        at = start + len(part)
        drafts.append(
            {
                "ordinal": ordinal,
                "heading": "",
                "text": part,
                "char_start": start,
                "char_end": at,
                "page": None,
                "line_start": text.count("\n", 0, start) + 1,
                "line_end": text.count("\n", 0, at) + 1,
                "sha256": hashlib.sha256(part.encode()).hexdigest(),
            }
        )
    return drafts
