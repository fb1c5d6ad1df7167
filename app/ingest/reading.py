"""One document's bytes become text and passages; no transaction is open meanwhile.

Owns where the bytes come from (a stored upload, or a private copy of a folder's file, so that a file which grows or is
swapped while it is read harms nobody) and what a fault means for the document. Parsing is `app.ingest.extract`'s,
storing `app.ingest.pipeline`'s. Called by the worker.
"""

import errno
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from app.clock import Clock
from app.ingest.blocks import Extraction
from app.ingest.chunking import ChunkDraft
from app.ingest.errors import IngestError, IngestReason
from app.ingest.folders import open_file
from app.ingest.progress import PageCallback, ProgressBoard, Stage
from app.ingest.stored_files import StoredFiles
from app.logs import kv
from app.store import intake, jobs

RETRIED = frozenset({"internal", "unreadable"})
"""Reasons tried again without being asked; a time-out would only hold up the others."""

_log = logging.getLogger("app.ingest")


class TextExtractor(Protocol):
    """What is needed of `app.ingest.extract.extractor.Extractor`."""

    def extract(
        self,
        path: Path,
        name: str,
        on_page: PageCallback | None = None,
        recognised: Mapping[int, Mapping[str, Any]] | None = None,
        charset: str | None = None,
    ) -> tuple[Extraction, list[ChunkDraft]]:
        """A file's text and passages; `name` only tells text formats apart, `recognised` holds what was found in
        pictures of its pages, `charset` is what a server called its encoding.

        Raises:
            IngestError: with the reason a person is told.
        """
        ...

    def close(self) -> None:
        """Breaks off what is being read and takes no more."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed job and the document it is about; `recognised` are lines found in pictures of its pages, by page from
    0."""

    job: jobs.ClaimedJob
    item: intake.WorkItem
    recognised: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])


@dataclass(frozen=True, slots=True)
class Read:
    """What reading a document gave: text and passages, or a reason. `sha256` and `bytes` are of what was really read;
    `started` is monotonic."""

    task: Task
    started: float
    extract_ms: int
    sha256: str
    bytes: int
    extraction: Extraction | None = None
    drafts: Sequence[ChunkDraft] = ()
    reason: IngestReason | None = None
    is_retryable: bool = False


class DocumentReader:
    """Reads documents, one at a time.

    Args:
        max_mb: The limit of a folder's file, in MiB; uploads were measured when they came.
    """

    def __init__(
        self, files: StoredFiles, extractor: TextExtractor, board: ProgressBoard, clock: Clock, max_mb: int
    ) -> None:
        self._files = files
        self._extractor = extractor
        self._board = board
        self._clock = clock
        self._max_bytes = max_mb * 1024 * 1024

    def read(self, task: Task) -> Read:
        """Reads a document's text. Never raises for what the file is.

        Raises:
            OSError: when the data folder's disk is full; the document is not to blame.
        """
        started = self._clock.monotonic()
        item = task.item
        self._board.set(item.id, Stage("reading"))
        try:
            sha256, size, extraction, drafts = self._extract(task)
        except Exception as error:  # noqa: BLE001 - worker edge: a document's fault is its own
            reason = _reason(error, item)
            is_retryable = reason in RETRIED and task.job.attempts < jobs.MAX_ATTEMPTS
            return Read(
                task,
                started,
                self._ms(started),
                item.sha256,
                item.bytes,
                reason=reason,
                is_retryable=is_retryable,
            )
        self._board.set(item.id, Stage("storing"))
        return Read(task, started, self._ms(started), sha256, size, extraction, drafts)

    @contextmanager
    def opened(self, item: intake.WorkItem) -> Generator[tuple[Path, str, int]]:
        """A document's bytes as a file that nobody changes meanwhile, with their hash and number.

        Raises:
            IngestError: vanished, unreadable or too_large.
        """
        if item.source != "folder" or item.root is None:
            path = self._files.path_of(item.sha256)
            if not path.is_file():
                raise IngestError("vanished")
            yield path, item.sha256, item.bytes
            return
        with open_file(Path(item.root), item.path) as file, self._files.copied(file, self._max_bytes) as copy:
            if copy is None:
                raise IngestError("too_large", params={"bytes": item.bytes})
            yield copy.path, copy.sha256, copy.bytes

    def _extract(self, task: Task) -> tuple[str, int, Extraction, list[ChunkDraft]]:
        item = task.item

        def on_page(page: int, pages: int) -> None:
            self._board.set(item.id, Stage("reading", page, pages))

        with self.opened(item) as (path, sha256, size):
            known = task.recognised if sha256 == item.sha256 else None
            return sha256, size, *self._extractor.extract(path, _name_of(item), on_page, known, item.charset)

    def _ms(self, since: float) -> int:
        return round((self._clock.monotonic() - since) * 1000)


def _name_of(item: intake.WorkItem) -> str:
    """What a text's kind may be told by. Of a page's address that is its path: a host's last part is no file ending,
    and what a server calls .php it answers with what that wrote."""
    if item.source != "url":
        return item.path
    host, _, path = item.path.partition("?")[0].partition("/")
    return path.removesuffix(".php") or host.replace(".", " ")


def _reason(error: Exception, item: intake.WorkItem) -> IngestReason:
    if isinstance(error, IngestError):
        return error.reason
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise error
        return "unreadable"
    _log.error(kv("document_not_read", id=item.id), exc_info=error)
    return "internal"
