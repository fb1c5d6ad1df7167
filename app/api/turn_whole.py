"""Turns that are answered otherwise than from the best passages: a whole document, or a count from the catalogue.

Owns which turn is one of these, and what is said where a document that is meant can't be read. Everything else is as in
any turn: `app.api.run_turn` sends the frames, checks the markers and settles. Which question asks for what is
`app.rag.intents`', reading `app.rag.whole`'s, counting `app.search.mentions`'.
"""

import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from app.api.asked import Asked
from app.api.document_meant import Meant, document_meant
from app.api.turn_start import TurnRequest, TurnStart
from app.api.turn_window import TurnWindow
from app.catalog import Catalog
from app.edge.deps import Services
from app.rag.agent import AgentHolder
from app.rag.bounded import fixed_prompt
from app.rag.catalogue import LISTED, Mentioning, count_answer, mentions_answer
from app.rag.context import Prompt
from app.rag.gate import Gate
from app.rag.intents import Catalogue, WholeDocument, read_intent
from app.rag.outline import outline, outline_texts
from app.rag.pieces import ChatFn, DocRef, Passage, StreamPiece
from app.rag.tokens import estimate_tokens
from app.rag.told import Told, told_pieces
from app.rag.tool_rounds import Guard
from app.rag.turn import Mode, TurnStats
from app.rag.whole import WholeQuestion, WholeReading
from app.rag.whole_plan import Place, WholeText, passages_of_document
from app.rag.whole_texts import whole_texts
from app.search.mentions import MentionRow, mentions, parts_of
from app.store.engine import Session
from app.store.scope import Scope
from app.store.tool_reads import count_searchable
from app.store.whole_reads import ChunkText, WholeDocumentRow, chunk_starts, chunk_texts, read_document
from app.upstream.client import endpoint_from

_OUTLINE_MOST = 100_000
"""Tokens of a passage where no window has to hold it."""


async def special_turn(
    services: Services, request: TurnRequest, start: TurnStart, window: TurnWindow
) -> "ReadTurn | ToldTurn | None":
    """The turn of a question about a whole document or about the catalogue; None for an ordinary one."""
    if request.without_documents:
        return None
    began = time.perf_counter()
    asked = start.asked
    intent = _countable(read_intent(asked.question_plain))
    scope = Scope(request.user_id, asked.filters)
    if isinstance(intent, Catalogue):
        return await _counted(services, scope, intent.words, began)
    found = await services.database.aread(lambda session: _document(session, request, asked, scope, intent))
    if found is None:
        return None
    catalog, row, ms = services.catalog, found.row, _ms(began)
    if not row.is_readable:
        return _unreadable(catalog, row, ms)
    if endpoint_from(start.settings) is None:
        return await _outlined(catalog, found, ms) if found.meant.whole else None
    space = await window.space()
    question = WholeQuestion(asked.question_plain, asked.history, found.whole, row.address, space)
    reading = await anyio.to_thread.run_sync(WholeReading, question, whole_texts(catalog))
    if not reading.fits and not found.meant.whole:
        return None
    if not reading.fits and intent is not None and intent.task == "translate":
        sentence = catalog.t("whole.too_long_to_translate", title=found.title)
        return ToldTurn(Told(sentence), "deflected", {"unreadable": found.title}, ms)
    return ReadTurn(reading, ms)


def _countable(intent: WholeDocument | Catalogue | None) -> WholeDocument | Catalogue | None:
    """The intent, unless it asks to count what is only signs ("👍", "*"): no index knows where those stand, and "none"
    would be made up. Such a question is searched like any other."""
    is_signs = isinstance(intent, Catalogue) and intent.words and not parts_of(intent.words)
    return None if is_signs else intent


class ReadTurn:
    """A turn that reads a whole document."""

    is_told = False
    toolbox = None

    def __init__(self, reading: WholeReading, ms: int) -> None:
        self.gate = _gate("grounded", ms)
        self.prompt: Prompt = reading.prompt
        self._reading = reading

    @property
    def facts(self) -> Mapping[str, Any]:
        """How much of the document was read."""
        return {"whole": self._reading.facts}

    def pieces(
        self, holder: AgentHolder, *, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        """The reading's."""
        return self._reading.pieces(holder, chat=chat, stats=stats, guard=guard)


class ToldTurn:
    """A turn whose answer stands already; no model is asked."""

    is_told = True
    toolbox = None

    def __init__(self, told: Told, mode: Mode, facts: Mapping[str, Any], ms: int) -> None:
        self.gate = _gate(mode, ms)
        self.prompt: Prompt = fixed_prompt([], told.passages, 0, 0)
        self.facts: Mapping[str, Any] = {**facts, "told": True}
        self._told = told

    def pieces(
        self, holder: AgentHolder, *, chat: ChatFn, stats: TurnStats, guard: Guard | None
    ) -> AsyncGenerator[StreamPiece]:
        """The text, line by line."""
        stats.finish_reason = "stop"
        return told_pieces(self._told)


@dataclass(frozen=True, slots=True)
class _Found:
    """The document that is meant, with where its chunks begin."""

    meant: Meant
    row: WholeDocumentRow
    places: tuple[Place, ...]

    @property
    def title(self) -> str:
        return title_of(self.row)

    @property
    def whole(self) -> WholeText:
        return WholeText(DocRef(self.row.id, self.row.path), self.title, self.row.text or "", self.places)


def title_of(row: WholeDocumentRow) -> str:
    """The document's title, or its file's name."""
    return row.title or row.path.rpartition("/")[2]


def _gate(mode: Mode, ms: int) -> Gate:
    """What stands for retrieval in a turn that did not search."""
    return Gate(mode, (), (), 1.0 if mode == "grounded" else 0.0, ms, "")


def _ms(began: float) -> int:
    return max(1, round((time.perf_counter() - began) * 1000))


def _document(
    session: Session, request: TurnRequest, asked: Asked, scope: Scope, intent: WholeDocument | None
) -> _Found | None:
    fixed = [document.id for document in asked.named_documents]
    ids = request.ids
    chat = None if ids.chat_id is None or ids.user_message_id is None else (ids.chat_id, ids.user_message_id)
    meant = document_meant(session, scope, intent, fixed, chat)
    row = None if meant is None else read_document(session, scope, meant.document_id)
    if meant is None or row is None:
        return None
    starts = chunk_starts(session, scope, row.id) if row.is_readable else []
    return _Found(meant, row, tuple(Place(one.id, one.heading, one.page, one.char_start) for one in starts))


def _unreadable(catalog: Catalog, row: WholeDocumentRow, ms: int) -> ToldTurn:
    """The sentence for a document without a text: it failed, is not read yet, or is blank."""
    title = title_of(row)
    if row.status == "failed":
        why = f"errors.ingest_{row.error}"
        reason = catalog.t(why if catalog.has(why) else "errors.ingest_corrupt")
        sentence = catalog.t("whole.failed", title=title, why=reason)
    else:
        sentence = catalog.t("whole.waiting" if row.text is None else "whole.empty", title=title)
    return ToldTurn(Told(sentence), "deflected", {"unreadable": title}, ms)


async def _outlined(catalog: Catalog, found: _Found, ms: int) -> ToldTurn:
    """What can be said of a document without a model."""

    def work() -> Told:
        passages = passages_of_document(found.whole, estimate_tokens, most=_OUTLINE_MOST)
        return outline(found.title, passages, outline_texts(catalog))

    told = await anyio.to_thread.run_sync(work)
    return ToldTurn(told, "grounded", {"outline": found.title}, ms)


async def _counted(services: Services, scope: Scope, words: str, began: float) -> ToldTurn:
    """The answer from the catalogue."""
    catalog = services.catalog
    if not words:
        of = await services.database.aread(lambda session: count_searchable(session, scope))
        facts = {"words": "", "total": of, "of": of}
        return ToldTurn(count_answer(catalog, of), "grounded", {"catalogue": facts}, _ms(began))

    def work(session: Session) -> Told:
        found = mentions(session, scope.user_id, words, scope.filters, LISTED)
        chunks = chunk_texts(session, scope, [row.chunk_id for row in found.rows])
        rows = [_mentioning(row, chunks[row.chunk_id]) for row in found.rows if row.chunk_id in chunks]
        facts.update(total=found.total, of=found.of)
        return mentions_answer(catalog, words, found.total, found.of, rows)

    facts: dict[str, Any] = {"words": words, "total": 0, "of": 0}
    told = await services.database.aread(work)
    return ToldTurn(told, "grounded", {"catalogue": facts}, _ms(began))


def _mentioning(row: MentionRow, chunk: ChunkText) -> Mentioning:
    title = row.title or row.path.rpartition("/")[2]
    first = Passage(
        n=0,
        document_id=row.document_id,
        chunk_id=chunk.id,
        path=row.path,
        title=title,
        heading=chunk.heading,
        page=chunk.page,
        text=chunk.text,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        line_start=chunk.line_start,
        line_end=chunk.line_end,
        score=1.0,
    )
    return Mentioning(title, row.path, row.passages, first)
