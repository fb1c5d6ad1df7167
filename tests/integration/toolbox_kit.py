"""A library of two people, and a toolbox over it: what the tests of tools act on."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from app.catalog import load_catalog
from app.clock import Clock, SystemClock
from app.rag.gate import Search
from app.rag.pieces import Passage, ToolCallPiece
from app.rag.prompts import parse_passages
from app.rag.tool_calls import ToolResult
from app.rag.toolbox import LibraryToolbox, ToolLimits, ToolSources, tool_texts
from app.search import fulltext
from app.search.hits import SearchFilters
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store import documents
from app.store.engine import Database, Session
from app.store.models import Chunk
from tests.fake_embedder import WordEmbedder

ALICE = 1


def make_toolbox(
    database: Database,
    *,
    user_id: int = ALICE,
    filters: SearchFilters | None = None,
    given: Sequence[Passage] = (),
    budget: int = 8000,
    searcher: Search | None = None,
    clock: Clock | None = None,
) -> LibraryToolbox:
    """A toolbox as a turn has it."""
    return LibraryToolbox(
        ToolSources(
            database,
            searcher or Searcher(database, WordEmbedder(), VectorIndex()),
            clock or SystemClock(),
            tool_texts(load_catalog()),
        ),
        ToolLimits(budget, max_rounds=6, top_k=5),
        user_id=user_id,
        filters=filters or SearchFilters(),
        given=lambda: given,
    )


def passage_texts(result: ToolResult) -> list[str]:
    """The texts of the passages in a result, as a model would quote them."""
    return [given.text for given in parse_passages([{"role": "system", "content": result.text}])]


def index_all(database: Database) -> None:
    """Makes every passage searchable by its words."""

    def work(session: Session) -> None:
        fulltext.index(session, [chunk_id for (chunk_id,) in session.query(Chunk.id)])

    database.write(work)


@dataclass
class Caller:
    """Calls tools by name with arguments as values, and checks what holds for every result."""

    database: Database
    toolbox: LibraryToolbox
    user_id: int = ALICE

    def __call__(self, name: str, /, **arguments: object) -> ToolResult:
        return self.raw(name, json.dumps(arguments))

    def raw(self, name: str, arguments: str) -> ToolResult:
        """One call with its arguments as text."""
        result = asyncio.run(self.toolbox.run(ToolCallPiece(0, "call", name, arguments)))
        self.check(result)
        return result

    def check(self, result: ToolResult) -> None:
        """Every passage is an exact slice of a document that the person may read, numbered, and in the text."""
        for passage in result.passages:
            detail = self.database.read(
                lambda session, passage=passage: documents.get_document(session, self.user_id, passage.document_id)
            )
            text = detail.text or ""
            assert passage.text == text[passage.char_start : passage.char_end]
            assert passage.text.strip()
            assert text.count("\n", 0, passage.char_start) + 1 == passage.line_start
            assert text.count("\n", 0, passage.char_end) + 1 == passage.line_end
            assert f"=== passage {passage.n} ===" in result.text
            assert passage in self.toolbox.passages
        assert result.summary
        assert result.text.strip()
