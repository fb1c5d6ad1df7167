"""What `docent doctor` and `docent rebuild-index` do. Argument parsing and printing belong to `app.cli`.

Both work beside a server on the same data folder. What can be made again from documents (passages' full text, vectors,
jobs) is repaired; what can't (a stored file that is gone) is told.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields

from app.catalog import Catalog
from app.clock import Clock
from app.ingest.extract.extractor import Extractor
from app.ingest.stored_files import ProcessLock, StoredFiles
from app.ingest.worker import Tools, Worker
from app.search import fulltext
from app.search.embeddings import Embedder
from app.search.generations import Embedders
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import intake, integrity, jobs, repair
from app.store.engine import Database, Session, StoreError

LOOK_S = 0.3


@dataclass(frozen=True, slots=True)
class Findings:
    """What `doctor` found: rows that belong to nothing, whether full text says what passages say, stored files that are
    missing or belong to nobody."""

    orphans: integrity.Orphans
    is_fulltext_true: bool
    missing: tuple[str, ...]
    stray: int

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to do or to tell."""
        return self.orphans.is_sound and self.is_fulltext_true and not self.missing and not self.stray


def examine(database: Database, files: StoredFiles) -> Findings:
    """Looks, and changes nothing. Seconds at 100,000 passages."""
    orphans = database.read(integrity.orphans)
    is_true = False
    with suppress(StoreError):
        database.write(fulltext.check)
        is_true = True
    needed = database.read(intake.upload_shas)
    there = files.shas()
    return Findings(orphans, is_true, tuple(sorted(needed - there)), len(there - needed))


def mend(database: Database, files: StoredFiles, clock: Clock) -> Findings:
    """Repairs what can be made again, and returns what is left. Stray files go only while no other process works on
    the data folder: one of them may just be arriving."""

    def work(session: Session) -> None:
        repair.drop_orphans(session)
        fulltext.rebuild(session)
        repair.requeue_stuck(session, clock.now())

    database.write(work)
    with ProcessLock(files.data_dir) as lock:
        if lock.is_first:
            database.write(lambda session: files.sweep(intake.upload_shas(session)))
    return examine(database, files)


def as_lines(found: Findings, catalog: Catalog) -> list[str]:
    """Findings in words, one line each; a single one where all is well."""
    lines = [
        catalog.t(f"ingest.doctor_{field.name}", n=count)
        for field in fields(found.orphans)
        if (count := getattr(found.orphans, field.name))
    ]
    if not found.is_fulltext_true:
        lines.append(catalog.t("ingest.doctor_fulltext"))
    if found.missing:
        lines.append(catalog.t("ingest.doctor_missing", n=len(found.missing)))
    if found.stray:
        lines.append(catalog.t("ingest.doctor_stray", n=found.stray))
    return lines or [catalog.t("ingest.doctor_sound")]


def rebuild_fulltext(database: Database) -> None:
    """Builds full text anew from the passages, in one transaction: searches go on with the old one."""
    database.write(fulltext.rebuild)


def rebuild_vectors(
    database: Database, settings: Settings, embedder: Embedder | Embedders, clock: Clock, tell: Callable[[int], None]
) -> bool:
    """Has every vector made anew, and makes them itself unless another process works on the data folder. `tell` is
    given how many jobs are left, whenever that changed.

    Returns:
        False when vectors are left to be made: by that process, or because the embedder does not answer.
    """
    database.write(lambda session: repair.forget_vectors(session, clock.now()))
    with ProcessLock(settings.data_dir) as lock:
        is_alone = lock.is_first
    if not is_alone:
        return False
    tools = Tools(StoredFiles(settings.data_dir), Extractor(), embedder, VectorIndex())
    worker, resting, last = Worker(database, settings, clock, tools), threading.Event(), -1
    worker.start()
    try:
        while left := database.read(jobs.pending):
            if left != last:
                tell(left)
                last = left
            if database.read(repair.is_stalled):
                return False
            resting.wait(LOOK_S)
    finally:
        worker.stop()
    return True
