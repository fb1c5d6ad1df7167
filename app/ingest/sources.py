"""What people do to documents: add uploads, delete, retry.

Owns these operations as whole transactions, with the owner check, and wakes the worker. Watched folders are
`app.ingest.watched`'s, reading a file is `app.ingest.pipeline`'s. Called by `app.api`, `app.web` and the command line,
always from a worker thread.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from app.clock import Clock
from app.errors import NotFoundError
from app.ingest.errors import IngestError
from app.ingest.folders import open_file
from app.ingest.removal import remove_content, remove_documents
from app.ingest.stored_files import StoredFiles, TempFile
from app.ingest.uploads import Arrival
from app.search.vectors import VectorIndex
from app.store import collections, documents, intake, jobs, readings
from app.store.engine import Database, Session

ADD_AT_ONCE = 50
"""Files that get their rows in one transaction: other writers get their turn in between."""

Outcome = Literal["added", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a file: a new row, another content under a known name, or nothing, because it is there already."""

    document_id: int
    outcome: Outcome


class Sources:
    """The operations on documents.

    Args:
        wake: Tells the worker that there is something to do; may do nothing.
    """

    def __init__(
        self, database: Database, files: StoredFiles, clock: Clock, index: VectorIndex, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._files = files
        self._clock = clock
        self._index = index
        self._wake = wake

    def add_uploads(self, user_id: int, arrivals: Sequence[Arrival]) -> list[Added | None]:
        """Gives every file that came whole its place and its row; None where one did not come."""
        added: list[Added | None] = []
        for some in _batches(arrivals):
            replaced: list[str] = []

            def work(
                session: Session, some: list[Arrival] = some, replaced: list[str] = replaced
            ) -> list[Added | None]:
                return self._add(session, user_id, some, replaced)

            added += self._database.write(work)
            self._drop_files(replaced)
            self._wake()
        return added

    def delete_document(self, user_id: int, document_id: int) -> None:
        """Takes a document out with all that hangs on it. A folder's document leaves a tombstone: its file stays on
        disk, and a scan brings it back only once its content has changed.

        Raises:
            NotFoundError: when it is not there or not the user's to change.
        """

        def work(session: Session) -> tuple[list[str], str | None]:
            documents.check_writable(session, user_id, document_id)
            item = intake.work_items(session, [document_id])[document_id]
            if item.source != "folder":
                return remove_documents(session, [document_id]), item.sha256
            jobs.drop_of_documents(session, [document_id])
            gone = remove_content(session, document_id)
            readings.forget(session, [document_id])
            intake.bury(session, document_id, self._clock.now())
            return gone, None

        gone, sha256 = self._database.write(work)
        self._index.discard(gone)
        if sha256:
            self._drop_files([sha256])

    def retry(self, user_id: int, document_id: int) -> None:
        """Reads a failed document again (a page is fetched again for it), or lets a document whose vectors wait try
        now; else does nothing.

        Raises:
            NotFoundError: when it is not there or not the user's to change.
        """

        def work(session: Session) -> None:
            documents.check_writable(session, user_id, document_id)
            row = documents.get_document(session, user_id, document_id).row
            if row.status != "failed":
                jobs.make_due(session, document_id)
            elif row.source == "url":
                now = self._clock.now()
                intake.requeue(session, document_id, now)
                jobs.drop_failed(session, document_id)
                jobs.enqueue(session, [jobs.fetch_job(document_id)], now)
            else:
                self._requeue(session, document_id, row.sha256)

        self._database.write(work)
        self._wake()

    def recognise(self, user_id: int, document_id: int) -> None:
        """Asks for the text in the pictures of a document's pages; what an earlier try found no words in is looked at
        again. Nothing where every page has text.

        Raises:
            NotFoundError: when it is not there or not the user's to change.
        """

        def work(session: Session) -> None:
            documents.check_writable(session, user_id, document_id)
            readings.forget_wordless(session, document_id)
            if readings.to_recognise(session, document_id) is not None:
                readings.ask(session, document_id, self._clock.now())

        self._database.write(work)
        self._wake()

    @contextmanager
    def opened(self, user_id: int, document_id: int) -> Generator[tuple[str, BinaryIO]]:
        """A document's name and bytes as they came: the stored upload, or the file in its folder.

        Raises:
            NotFoundError: when it is not there or not the user's; `document_file_gone` when the file itself is not.
        """

        def work(session: Session) -> intake.WorkItem:
            documents.get_document(session, user_id, document_id)
            return intake.work_items(session, [document_id])[document_id]

        item = self._database.read(work)
        try:
            with ExitStack() as stack:
                if not item.sha256:
                    raise FileNotFoundError
                if item.source == "folder" and item.root is not None:
                    file = stack.enter_context(open_file(Path(item.root), item.path))
                else:
                    file = stack.enter_context(self._files.path_of(item.sha256).open("rb"))
                yield item.path.rsplit("/", 1)[-1], file
        except (IngestError, FileNotFoundError) as error:
            raise NotFoundError("document_file_gone") from error

    def _add(
        self, session: Session, user_id: int, arrivals: Sequence[Arrival], replaced: list[str]
    ) -> list[Added | None]:
        """Adds files whose names differ; hashes of contents that gave way go into `replaced`."""
        now = self._clock.now()
        collection_id = collections.library_id(session, user_id, now)
        known = intake.find_files(session, collection_id, "upload", [arrival.name for arrival in arrivals])
        new = [
            intake.NewDocument(collection_id, "upload", arrival.name, arrival.temp.sha256, arrival.temp.bytes)
            for arrival in arrivals
            if arrival.temp is not None and arrival.name not in known
        ]
        ids = dict(zip((document.path for document in new), intake.add_documents(session, new, now), strict=True))
        jobs.enqueue(session, [jobs.ingest_job(ids[document.path], document.sha256) for document in new], now)
        added: list[Added | None] = []
        for arrival in arrivals:
            if arrival.temp is None:
                added.append(None)
                continue
            self._files.place(arrival.temp)
            row = known.get(arrival.name)
            if row is None:
                added.append(Added(ids[arrival.name], "added"))
            else:
                added.append(self._add_known(session, row, arrival.temp, replaced))
        return added

    def _add_known(self, session: Session, known: intake.KnownFile, temp: TempFile, replaced: list[str]) -> Added:
        if known.sha256 != temp.sha256:
            replaced.append(known.sha256)
            self._requeue(session, known.id, temp.sha256, temp.bytes)
            return Added(known.id, "replaced")
        if known.status == "failed":
            self._requeue(session, known.id, temp.sha256)
        return Added(known.id, "unchanged")

    def _requeue(self, session: Session, document_id: int, sha256: str, size: int | None = None) -> None:
        now = self._clock.now()
        changes = {"sha256": sha256} if size is None else {"sha256": sha256, "bytes": size}
        intake.requeue(session, document_id, now, **changes)
        jobs.drop_failed(session, document_id)
        jobs.enqueue(session, [jobs.ingest_job(document_id, sha256)], now)

    def _drop_files(self, shas: Sequence[str]) -> None:
        """Unlinks stored files no document needs. Inside a write, so that no upload of the same comes between."""

        def work(session: Session) -> None:
            for sha256 in shas:
                if not intake.is_sha_used(session, sha256):
                    self._files.remove(sha256)

        if shas:
            self._database.write(work)


def _batches(arrivals: Sequence[Arrival]) -> Iterator[list[Arrival]]:
    """At most `ADD_AT_ONCE` files each, no name twice in one: the later one has to find the earlier one's row."""
    batch: dict[str, Arrival] = {}
    for arrival in arrivals:
        if arrival.name in batch or len(batch) == ADD_AT_ONCE:
            yield list(batch.values())
            batch = {}
        batch[arrival.name] = arrival
    if batch:
        yield list(batch.values())
