"""Documents from the queue to findable by words: claimed, read by `app.ingest.reading`, stored here.

Owns the transactions between a queued `ingest` job and a document that is `embedding` (searchable) or `failed`, many
documents in one, and the line each document gets. Vectors follow in `app.ingest.embedding`; threads and leases are
`app.ingest.worker`'s.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from app.clock import Clock
from app.ingest.chunking import ChunkDraft
from app.ingest.progress import ProgressBoard
from app.ingest.reading import RETRIED, Read, Task
from app.ingest.removal import remove_content
from app.logs import kv
from app.metrics import Metrics
from app.search import fulltext
from app.search.vectors import VectorIndex
from app.store import chunks, intake, jobs, readings, rereading, vectors, web_pages
from app.store.engine import Database, Session

CLAIM_AT_ONCE = 16
LEASE_S = 60.0
RETRY_BASE_S = 2.0

_log = logging.getLogger("app.ingest")


@dataclass(slots=True)
class _Stored:
    """What a transaction did with one document, for its line: the new status, None where there is nothing to say."""

    read: Read
    status: str | None


class Pipeline:
    """Claims and stores documents. `claim` and `store` may run on different threads.

    Args:
        reads_pictures: Whether text in pictures of pages is recognised without being asked for.
    """

    def __init__(
        self,
        database: Database,
        index: VectorIndex,
        board: ProgressBoard,
        *,
        clock: Clock,
        metrics: Metrics,
        reads_pictures: bool = False,
    ) -> None:
        self._reads_pictures = reads_pictures
        self._database = database
        self._index = index
        self._board = board
        self._clock = clock
        self._metrics = metrics

    def claim(self, limit: int = CLAIM_AT_ONCE) -> list[Task]:
        """Takes the next documents; a document whose every attempt took the process down is failed here."""

        def work(session: Session) -> list[Task]:
            now = self._clock.now()
            for job in jobs.expired(session, "ingest", now):
                self._give_up(session, job)
            claimed = jobs.claim(session, "ingest", limit, LEASE_S, now)
            items = intake.work_items(session, [job.document_id for job in claimed if job.document_id is not None])
            jobs.finish(session, [job for job in claimed if job.document_id not in items])
            intake.mark_parsing(session, list(items))
            known = readings.pages_of(session, [(item.id, item.sha256) for item in items.values()])
            held = [(job, items[job.document_id]) for job in claimed if job.document_id in items]
            return [Task(job, item, known.get(item.id, {})) for job, item in held]

        return self._database.write(work)

    def store(self, reads: Sequence[Read]) -> None:
        """Makes documents findable, or failed, in one transaction, and writes their lines.

        When it cannot be done together it is done one by one, so that one document's fault is its own.
        """
        began = self._clock.monotonic()
        try:
            self._store(reads, began)
        except Exception:  # noqa: BLE001 - worker edge: what one document's text does to the database stays its own
            if len(reads) > 1:
                for read in reads:
                    self.store([read])
                return
            _log.exception(kv("document_not_stored", id=reads[0].task.item.id))
            self._fail(reads[0])

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Puts documents back into the queue as if never taken: a clean stop."""

        def work(session: Session) -> None:
            jobs.release(session, [task.job for task in tasks], now=self._clock.now())
            intake.mark_queued(session, [task.item.id for task in tasks])

        if tasks:
            self._database.write(work)
        for task in tasks:
            self._board.clear(task.item.id)

    def next_due(self) -> float | None:
        """Seconds until there is a document to read, None when there is none."""
        return self._database.read(lambda session: jobs.next_due(session, "ingest", self._clock.now()))

    def _give_up(self, session: Session, job: jobs.ClaimedJob) -> None:
        """Every attempt took the process down."""
        now = self._clock.now()
        jobs.fail(session, job, "internal", now)
        if job.document_id is None:
            return
        if rereading.is_reread(job) and chunks.having_chunks(session, [job.document_id]):
            self._keep(session, job.document_id)
            return
        vectors.delete_unused(session, _drop_text(session, job.document_id))
        intake.mark_failed(session, job.document_id, "internal", now)

    def _keep(self, session: Session, document_id: int) -> None:
        """The text that is here stays."""
        intake.keep_text(session, document_id)
        jobs.enqueue(session, [jobs.embed_job(document_id)], self._clock.now())

    def _store(self, reads: Sequence[Read], began: float) -> None:
        gone: list[str] = []
        for stored in self._database.write(lambda session: self._store_in(session, reads, gone)):
            self._board.clear(stored.read.task.item.id)
            if stored.status is not None:
                self._say(stored, self._ms(began))
        self._index.discard(gone)

    def _store_in(self, session: Session, reads: Sequence[Read], gone: list[str]) -> list[_Stored]:
        held = jobs.held(session, [read.task.job for read in reads])
        current = intake.work_items(session, [read.task.item.id for read in reads])
        stored: list[_Stored] = []
        fresh: list[Read] = []
        for read in reads:
            is_mine = read.task.job.id in held
            if not is_mine or self._is_overtaken(session, read, current.get(read.task.item.id)):
                stored.append(_Stored(read, None))
            elif read.extraction is None:
                stored.append(_Stored(read, self._fail_in(session, read, gone)))
            else:
                fresh.append(read)
                stored.append(_Stored(read, "embedding"))
        self._store_text(session, fresh, gone)
        if self._reads_pictures:
            self._ask_for_pictures(session, [one.read for one in stored if one.status is not None])
        return stored

    def _ask_for_pictures(self, session: Session, reads: Sequence[Read]) -> None:
        """Queues documents with pages that hold no text and whose pictures nobody looked at."""
        for read in reads:
            if _holds_pictures(read):
                readings.ask(session, read.task.item.id, self._clock.now())

    def _is_overtaken(self, session: Session, read: Read, item: intake.WorkItem | None) -> bool:
        """Whether a scan or an upload changed the row meanwhile. Other content has its own job; a new name is read
        again."""
        was = read.task.item
        if item is None or item.sha256 != was.sha256:
            jobs.finish(session, [read.task.job])
            return True
        if item.path != was.path:
            jobs.release(session, [read.task.job], now=self._clock.now())
            intake.mark_queued(session, [was.id])
            return True
        return False

    def _store_text(self, session: Session, reads: Sequence[Read], gone: list[str]) -> None:
        now = self._clock.now()
        ids = [read.task.item.id for read in reads]
        old = [sha for document_id in chunks.having_chunks(session, ids) for sha in _drop_text(session, document_id)]
        noted = readings.rows_of(session, ids)
        readings.forget_languages(session, ids)
        intake.mark_all_read(session, {read.task.item.id: _text_values(read) for read in reads}, now)
        for read in reads:
            if read.extraction is not None and (read.extraction.cut or read.task.item.id in noted):
                readings.note_cut(session, read.task.item.id, read.extraction.cut)
        new = {read.task.item.id: [_chunk_values(draft) for draft in read.drafts] for read in reads}
        fulltext.index(session, chunks.add_chunks(session, new))
        gone += vectors.delete_unused(session, old)
        jobs.finish(session, [read.task.job for read in reads])
        jobs.enqueue(session, [jobs.embed_job(document_id) for document_id in ids], now)

    def _fail_in(self, session: Session, read: Read, gone: list[str]) -> str | None:
        now, document_id, reason = self._clock.now(), read.task.item.id, read.reason or "internal"
        if read.is_retryable:
            delay = RETRY_BASE_S * 4 ** (read.task.job.attempts - 1)
            jobs.postpone(session, read.task.job, delay, reason, now)
            intake.mark_queued(session, [document_id])
            return None
        is_page, is_reread = read.task.item.source == "url", rereading.is_reread(read.task.job)
        if (is_page or is_reread) and chunks.having_chunks(session, [document_id]):
            # What a server sends is not what the user gave, and nobody asked for another reading: the text that is here
            # stays until there is another one.
            jobs.finish(session, [read.task.job])
            self._keep(session, document_id)
            if is_page and not is_reread:
                web_pages.note_unread(session, document_id, reason)
            return "kept"
        if is_reread and reason in RETRIED | {"vanished"}:
            reason = rereading.REFUSED  # the file could not be had just now, which says nothing of its format
        gone += remove_content(session, document_id)
        intake.mark_failed(session, document_id, reason, now)
        jobs.fail(session, read.task.job, reason, now)
        return "failed"

    def _fail(self, read: Read) -> None:
        failed = Read(read.task, read.started, read.extract_ms, read.sha256, read.bytes, reason="internal")
        self._store([failed], self._clock.monotonic())

    def _say(self, stored: _Stored, store_ms: int) -> None:
        read, item = stored.read, stored.read.task.item
        text = read.extraction
        total_ms = self._ms(read.started)
        line = kv(
            "document",
            id=item.id,
            collection=item.collection_id,
            source=item.source,
            status=stored.status,
            reason=read.reason,
            bytes=read.bytes,
            chars=len(text.text) if text else 0,
            chunks=len(read.drafts),
            pages=(text and text.pages) or 0,
            extract_ms=read.extract_ms,
            store_ms=store_ms,
            total_ms=total_ms,
        )
        _log.info(line)
        self._metrics.document_read("indexed" if stored.status == "embedding" else "failed", total_ms)

    def _ms(self, since: float) -> int:
        return round((self._clock.monotonic() - since) * 1000)


def _holds_pictures(read: Read) -> bool:
    """Whether a page has no text and nobody looked at its picture."""
    if read.extraction is None:
        return read.reason == readings.NO_TEXT and not read.task.recognised
    pages = enumerate(read.extraction.text_yield or ())
    return any(not chars and page not in read.task.recognised for page, chars in pages)


def _drop_text(session: Session, document_id: int) -> list[str]:
    """Takes full-text rows and passages away, but no vectors: the new text may need the same ones."""
    fulltext.unindex(session, document_id)
    return chunks.drop_chunks(session, document_id)


_CHUNK_FIELDS = tuple(field.name for field in fields(ChunkDraft))


def _chunk_values(draft: ChunkDraft) -> dict[str, Any]:
    """Not `asdict`, which copies every value: at five thousand passages a second of difference."""
    return {name: getattr(draft, name) for name in _CHUNK_FIELDS}


def _text_values(read: Read) -> dict[str, Any]:
    text = read.extraction
    if text is None:
        raise ValueError("nothing was read")
    return {
        "title": text.title,
        "mime": text.mime,
        "encoding": text.encoding,
        "pages": text.pages,
        "text": text.text,
        "text_yield": None if text.text_yield is None else list(text.text_yield),
        "sha256": read.sha256,
        "bytes": read.bytes,
    }
