"""What is taken out while the embedding lane counts what lacks vectors does not stop it."""

import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.ingest.embedding import Embedding
from app.ingest.progress import ProgressBoard
from app.ingest.removal import remove_documents
from app.ingest.serving import Serving
from app.ingest.yielding import Yielding
from app.search.generations import embedders_of
from app.settings import Settings
from app.store.engine import Database
from app.store.models import Job, Vector
from tests.ingest_library import IngestLibrary
from tests.ingest_parts import count, sections

T = TypeVar("T")


class Overtaken(Database):
    """Takes a document out right after somebody read a list that names it."""

    removed = 0

    def read(self, work: Callable[[Session], T]) -> T:
        result = super().read(work)
        if isinstance(result, list) and self.removed in result:
            self.write(lambda session: remove_documents(session, [self.removed]))
        return result


def test_a_document_that_goes_while_it_is_to_be_queued_costs_the_others_nothing(settings: Settings) -> None:
    """A start on a library without vectors, and a file that is deleted in that moment: the rest is queued."""
    with IngestLibrary(settings).start() as library:
        ids = [library.add(f"{name}.md", sections(name)) for name in ("apples", "pears", "plums")]
        library.settle()
        library.worker.stop()
        library.database.write(lambda session: session.execute(delete(Vector)))
        database = Overtaken(settings.database)
        database.removed = ids[1]
        yielding = Yielding(library.clock, lambda: False, threading.Event())
        serving = Serving(database, settings, embedders_of(library.embedder), library.clock)
        Embedding(database, serving, ProgressBoard(library.clock), library.clock, yielding).catch_up()
        database.close()
        assert library.paths() == ["apples.md", "plums.md"]
        assert count(library, Job) == 2
