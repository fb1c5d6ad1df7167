"""Stand-ins and questions that ingest tests share; the texts they read."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import func, select, text

from app.ingest.blocks import Extraction
from app.ingest.chunking import ChunkDraft
from app.ingest.extract.extractor import Extractor
from app.ingest.progress import PageCallback
from app.search.embeddings import FloatMatrix
from app.store.models.library import Chunk, Job
from app.store.models.vectors import Vector
from tests.fake_embedder import WordEmbedder
from tests.ingest_library import USER, IngestLibrary

RAID = "# Disks\n\nTwo disks hold the same data, so that one may fail.\n"


class CountingEmbedder(WordEmbedder):
    """Remembers every text it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        self.texts += texts
        return super().embed_passages(texts)


class GatedExtractor:
    """The real one, but it begins only when it is let, and says when it was asked."""

    def __init__(self) -> None:
        self._real = Extractor()
        self.asked = threading.Event()
        self.go = threading.Event()
        self.crashes = 0

    def extract(
        self,
        path: Path,
        name: str,
        on_page: PageCallback | None = None,
        recognised: Mapping[int, Mapping[str, Any]] | None = None,
        charset: str | None = None,
    ) -> tuple[Extraction, list[ChunkDraft]]:
        self.asked.set()
        assert self.go.wait(30)
        if self.crashes:
            self.crashes -= 1
            raise RuntimeError("a fault of the parser's caller")
        return self._real.extract(path, name, on_page, recognised, charset)

    def close(self) -> None:
        self.go.set()
        self._real.close()


def found(library: IngestLibrary, word: str) -> set[int]:
    """Documents that full text finds by a word."""
    query = text(
        "SELECT DISTINCT chunks.document_id FROM chunks_fts JOIN chunks ON chunks.id = chunks_fts.rowid "
        "WHERE chunks_fts MATCH :word"
    )
    return set(library.database.read(lambda session: list(session.scalars(query, {"word": f'"{word}"'}))))


def count(library: IngestLibrary, kind: type[Chunk] | type[Vector] | type[Job]) -> int:
    return library.database.read(lambda session: session.scalar(select(func.count()).select_from(kind)) or 0)


def sections(*names: str) -> str:
    """A Markdown text of one passage a name."""
    return "\n".join(f"# {name}\n\n" + f"The {name} part says what {name} is about. " * 25 + "\n" for name in names)


def fill(root: Path, **files: str) -> None:
    """Writes `name__sub="…"` to `name/sub.md`."""
    for name, content in files.items():
        path = root / (name.replace("__", "/") + ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def watch(library: IngestLibrary, root: Path) -> int:
    """Watches a folder and waits until all of it is read."""
    collection_id = library.folders.add_folder(USER, str(root))
    library.settle()
    return collection_id
