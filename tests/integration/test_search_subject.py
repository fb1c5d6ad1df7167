"""What a question is about, and that the library lacks it: the score says so."""

import numpy as np

from app.search import fulltext
from app.search.embeddings import FloatMatrix, FloatVector
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store.engine import Database
from tests.fake_embedder import WordEmbedder
from tests.integration.search_library import add_document, embed_all


class _SameForAll(WordEmbedder):
    """Finds everything equally near."""

    def embed_query(self, text: str) -> FloatVector:
        return self.embed_passages([text])[0]

    def embed_passages(self, texts: list[str]) -> FloatMatrix:
        return np.full((len(texts), self.dim), self.dim**-0.5, dtype=np.float32)


def test_a_question_about_something_that_nothing_names_scores_less(database: Database) -> None:
    """A passage that lies near is about something else then; where that is not sure, nothing changes."""

    def add(name: str, *passages: str) -> None:
        database.write(lambda session: add_document(session, name, *passages))

    for number in range(5):
        add(f"{number}.md", f"How restic can restore files, in the mode of part {number}.")
    embed_all(database, steady := _SameForAll())
    searcher = Searcher(database, steady, VectorIndex())
    asked = {
        "restore files with kopia": True,
        "restore kopia": True,
        "restore files mode 12": True,
        "restore files with resticc": False,
        "wiederherstellen dateien": False,
        "nas-q7: restore files": False,
        "restore files 备份怎么恢复": False,
    }

    def is_lowered(query: str) -> bool:
        return max(hit.score for hit in searcher.search(query, user_id=1)) < 0.8

    assert not any(is_lowered(query) for query in asked), "a small library lacks common words, too"
    add("filler.md", *(f"Filling x{number}x." for number in range(fulltext.ABSENT_FROM)))
    assert {query: is_lowered(query) for query in asked} == asked
