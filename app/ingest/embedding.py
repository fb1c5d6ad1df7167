"""Vectors behind the words: passages of documents in `embedding` become vectors until the document is `ready`.

Owns what happens to a claimed `embed` job. Each distinct text is embedded once per generation, in small batches with a
short transaction each, giving way while a turn streams. An embedder that cannot be reached costs a document nothing: it
stays findable by words, says why it waits, and is tried again later. The vectors are those of the generation that
serves (`app.ingest.serving`), whatever is being built beside it (`app.ingest.building`).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.clock import Clock
from app.ingest.chunking import embedded_text
from app.ingest.progress import ProgressBoard
from app.ingest.serving import Serving
from app.ingest.yielding import Yielding
from app.logs import kv
from app.search.errors import EmbedError
from app.store import chunks, intake, jobs, vectors
from app.store.engine import Database, Session

CLAIM_AT_ONCE = 8
EMBED_AT_ONCE = 8
EMBED_BESIDE_TURNS = 1
"""Texts between two looks at whether a turn streams or the process ends: 0.3 s of the built-in embedder, and an eighth
of it where someone is asking questions. One that comes meanwhile shares the cores with them."""

EMBED_MAX_S = 0.25
"""How long a text waits for a turn that streams: about three a second are embedded meanwhile."""

LEASE_S = 60.0
RETRY_BASE_S = 5.0
RETRY_MAX_S = 300.0
QUEUE_AT_ONCE = 500

_log = logging.getLogger("app.ingest")


def at_once(yielding: Yielding) -> int:
    """How many texts make a batch just now."""
    return EMBED_BESIDE_TURNS if yielding.has_waited else EMBED_AT_ONCE


@dataclass(slots=True)
class _Open:
    """A claimed document and the texts it still waits for."""

    job: jobs.ClaimedJob
    document_id: int
    missing: set[str] = field(default_factory=set[str])


class Embedding:
    """The embedding lane's work."""

    def __init__(
        self, database: Database, serving: Serving, board: ProgressBoard, clock: Clock, yielding: Yielding
    ) -> None:
        self._database = database
        self._serving = serving
        self._board = board
        self._clock = clock
        self._yielding = yielding
        self._caught_up = False
        self._again_at = clock.monotonic()
        self._failures = 0

    def catch_up(self) -> None:
        """Once in a life: compares the embedder with what is stored, and queues every document that lacks its vectors.

        An endpoint that does not answer is asked again later; until then words alone serve. Cheap once it is done."""
        if self._caught_up or self._clock.monotonic() < self._again_at:
            return
        try:
            if self._database.read(chunks.has_any):
                self._serving.agree()
                self._queue_all()
            self._caught_up = True
        except EmbedError as error:
            delay = self._next_delay()
            self._again_at = self._clock.monotonic() + delay
            _log.warning(kv("embedding_waits", reason=error.code, documents=0, retry_s=round(delay)))

    def claim(self) -> list[jobs.ClaimedJob]:
        """Takes the next documents that lack vectors."""

        def work(session: Session) -> list[jobs.ClaimedJob]:
            now = self._clock.now()
            for job in jobs.expired(session, "embed", now):
                jobs.fail(session, job, "embed_failed", now)
                if job.document_id is not None:
                    intake.mark_embedding(session, [job.document_id], "embed_failed")
            return jobs.claim(session, "embed", CLAIM_AT_ONCE, LEASE_S, now)

        return self._database.write(work)

    def run(self, claimed: Sequence[jobs.ClaimedJob]) -> None:
        """Embeds what these documents miss; whatever is left over goes back into the queue."""
        opened: list[_Open] = []
        try:
            generation, embedder = self._serving.current()
            opened = self._open(claimed, generation.id)
            self._close(opened, generation.id, [], None)
            texts = self._texts(opened)
            for first in texts:
                if not self._yielding.give_way():
                    break
                batch = [first, *islice(texts, at_once(self._yielding) - 1)]
                matrix = embedder.embed_passages([embedded_text(text.title, text.heading, text.text) for text in batch])
                if embedder.dim not in (0, generation.dim):
                    # The server behind the same name has another model now: the next run finds its generation.
                    self._serving.agreed = False
                    break
                self._close(opened, generation.id, [text.sha256 for text in batch], matrix)
                self._board.note_embedded(len(batch))
            self._failures = 0
            self._give_back(opened)
        except EmbedError as error:
            self._put_off(opened, claimed, error)

    def next_due(self) -> float | None:
        """Seconds until there is a document to embed, None when there is none."""
        return self._database.read(lambda session: jobs.next_due(session, "embed", self._clock.now()))

    def _queue_all(self) -> None:
        """Every document that lacks a vector of what serves: a kill meanwhile, or a generation that serves at once."""
        active = self._database.read(vectors.active_generation)
        ids = self._database.read(lambda session: vectors.unembedded_documents(session, active.id)) if active else []
        for start in range(0, len(ids), QUEUE_AT_ONCE):
            some = ids[start : start + QUEUE_AT_ONCE]

            def work(session: Session, some: list[int] = some) -> None:
                there = intake.mark_embedding(session, some)  # others went or changed since they were listed
                jobs.enqueue(session, [jobs.embed_job(document_id) for document_id in there], self._clock.now())

            self._database.write(work)

    def _next_delay(self) -> float:
        delay = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(self._failures, 10))
        self._failures += 1
        return delay

    def _open(self, claimed: Sequence[jobs.ClaimedJob], generation_id: int) -> list[_Open]:
        def work(session: Session) -> list[_Open]:
            return [
                _Open(job, job.document_id, set(vectors.missing_shas(session, generation_id, job.document_id)))
                for job in claimed
                if job.document_id is not None
            ]

        return self._database.read(work)

    def _texts(self, opened: Sequence[_Open]) -> Iterator[chunks.TextToEmbed]:
        """The missing texts, each once, read as they are needed."""
        seen: set[str] = set()
        for document in opened:
            wanted = sorted(document.missing - seen)
            seen |= document.missing
            for start in range(0, len(wanted), EMBED_AT_ONCE):
                some = wanted[start : start + EMBED_AT_ONCE]
                yield from self._database.read(
                    lambda session, some=some, document=document: chunks.texts_to_embed(
                        session, document.document_id, some
                    )
                )

    def _close(
        self, opened: list[_Open], generation_id: int, shas: Sequence[str], matrix: vectors.FloatMatrix | None
    ) -> None:
        """Stores a batch and lets go, in the same transaction, of every document that is complete by it."""
        complete = [document for document in opened if not document.missing - set(shas)]

        def work(session: Session) -> set[int]:
            if matrix is not None:
                used = chunks.still_used(session, shas)
                keep = [place for place, sha in enumerate(shas) if sha in used]
                vectors.add_vectors(session, generation_id, [shas[place] for place in keep], matrix[keep])
            held = jobs.held(session, [document.job for document in complete])
            mine = [document for document in complete if document.job.id in held]
            waiting = intake.mark_ready(session, [document.document_id for document in mine], generation_id)
            jobs.finish(session, [document.job for document in mine if document.document_id not in waiting])
            again = [document.job for document in mine if document.document_id in waiting]
            jobs.release(session, again, now=self._clock.now())
            return {document.document_id for document in complete}

        if matrix is None and not complete:
            return
        closed = self._database.write(work)
        for document in opened:
            document.missing -= set(shas)
        opened[:] = [document for document in opened if document.document_id not in closed]

    def _give_back(self, opened: Sequence[_Open]) -> None:
        rest = [document.job for document in opened]
        if rest:
            self._database.write(lambda session: jobs.release(session, rest, now=self._clock.now()))

    def _put_off(self, opened: Sequence[_Open], claimed: Sequence[jobs.ClaimedJob], error: EmbedError) -> None:
        rest = [document.job for document in opened] if opened else list(claimed)
        delay = self._next_delay()

        def work(session: Session) -> None:
            jobs.release(session, rest, delay_s=delay, now=self._clock.now())
            waiting = intake.waiting_for_vectors(session)
            intake.mark_embedding(session, waiting, error.code)

        self._database.write(work)
        _log.warning(kv("embedding_waits", reason=error.code, documents=len(rest), retry_s=round(delay)))
