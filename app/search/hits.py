"""What a search is asked (`SearchFilters`, defined beside the SQL it becomes) and what it yields. Values only."""

from dataclasses import dataclass

from app.store.scope import EVERYWHERE, SearchFilters

__all__ = ["EVERYWHERE", "Hit", "SearchFilters"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found: where it stands (`char_start`, `char_end` in the document's canonical text, lines 1-based
    and inclusive, `page` for formats that have pages) and how well it fits.

    `score` is 0..1: the larger of the cosine (clipped at 0) and the idf-weighted share of the question's terms that
    stand in the passage, less the share of the question that nothing in the library names (`fulltext.absence`). It does
    not order: the place in the list does. The ranks (1-based) are those in the two lists that were weighed
    together, None for a list the chunk is not in.
    """

    chunk_id: int
    document_id: int
    collection_id: int
    path: str
    title: str
    heading: str
    page: int | None
    text: str
    char_start: int
    char_end: int
    line_start: int
    line_end: int
    score: float
    fulltext_rank: int | None
    vector_rank: int | None
