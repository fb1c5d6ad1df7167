"""The tool grep over a real library: what fits, how it is shown and counted, and that it always ends."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest
from anyio import to_thread

from app.rag.pieces import ToolCallPiece
from app.search.hits import Hit, SearchFilters
from app.store.engine import Database
from tests.integration.library_rows import add_document
from tests.integration.toolbox_kit import Caller, make_toolbox, passage_texts


def test_matching_lines_become_passages(database: Database) -> None:
    """With their neighbours, the counts, and how many documents were looked at."""
    add_document(database, "a.md", "one\nkeep-daily 7\nthree\n\nfar\n\nkeep-weekly 4", title="A")
    add_document(database, "x/b.md", "nothing here")
    add_document(database, "x/c.txt", "KEEP-daily too")
    add_document(database, "queued.md")
    call = Caller(database, make_toolbox(database))

    result = call("grep", pattern="keep-(daily|weekly)", context="1")
    assert result.text.startswith("3 lines fit, in 2 of 3 documents.")
    assert passage_texts(result) == ["one\nkeep-daily 7\nthree", "keep-weekly 4", "KEEP-daily too"]
    assert "/library/a.md, line 2\n=== passage 1 ===" in result.text
    assert [passage.line_start for passage in result.passages] == [1, 7, 1]
    assert result.summary == "3 matches in 2 files"

    again = call("grep", pattern="daily 7", path="a.md", context=1)
    assert "/library/a.md, line 2: this is passage 1, given above." in again.text
    assert again.passages == ()
    narrow = call("grep", pattern="keep", glob="*.txt", ignoreCase=False)
    assert narrow.summary == "nothing found"


def test_many_matches_are_counted_and_spread(database: Database) -> None:
    """No document crowds out the others, and all that fit are named."""
    for n in range(20):
        add_document(database, f"d{n:02}.md", "\n\n\n\n".join(f"needle {n} {m}" for m in range(10)))
    call = Caller(database, make_toolbox(database))
    result = call("grep", pattern="needle", context=0)
    assert len(result.passages) == 12
    assert len({passage.document_id for passage in result.passages}) == 12
    assert result.text.startswith("200 lines fit, in 20 of 20 documents.")
    assert "/library/d19.md  10" in result.text
    one = call("grep", pattern="needle", path="d00.md", limit=3, context=0)
    assert one.text.startswith("10 lines fit, in 1 of 1 document.")
    assert "7 of the lines are not shown." in one.text


def test_a_broken_pattern_is_looked_for_as_it_stands(database: Database) -> None:
    """And the result says so."""
    add_document(database, "a.md", "call f(x")
    result = Caller(database, make_toolbox(database))("grep", pattern="f(x")
    assert result.text.startswith("'f(x' is no valid regex; it was looked for as it stands. 1 line fits")
    assert passage_texts(result) == ["call f(x"]


def test_an_exploding_pattern_ends(database: Database) -> None:
    """The time of RE2 grows with the text alone; the test's own limit is the measure."""
    add_document(database, "a.txt", "a" * 100_000 + "b")
    result = Caller(database, make_toolbox(database))("grep", pattern="(a+)+$")
    assert result.summary == "nothing found"


class Hurried:
    """A clock that moves on with every look."""

    def __init__(self, step: float) -> None:
        self.seconds = 0.0
        self.step = step

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        self.seconds += self.step
        return self.seconds


@pytest.mark.parametrize(("step", "looked"), [(0.1, 18), (2.002 / 34, 32)], ids=["in a batch", "between batches"])
def test_the_time_limit_gives_what_was_found_so_far(database: Database, step: float, looked: int) -> None:
    """With how far it came."""
    for n in range(40):
        add_document(database, f"d{n:02}.md", "needle")
    call = Caller(database, make_toolbox(database, clock=Hurried(step)))
    result = call("grep", pattern="needle")
    assert f"Only {looked} of 40 documents were looked at, then the time was up" in result.text
    assert result.summary == f"{looked} matches in {looked} files, {looked} of 40 files searched"
    assert len(result.passages) == 12


def test_a_call_that_is_cancelled_stops_looking(database: Database) -> None:
    """Its thread ends with it, and no numbers are left behind."""
    add_document(database, "a.md", "needle")
    began, ended = threading.Event(), threading.Event()

    class Endless:
        def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
            began.set()
            ended.wait(10)
            return []

    async def cancelled() -> None:
        toolbox = make_toolbox(database, searcher=Endless())
        running = asyncio.create_task(toolbox.run(ToolCallPiece(0, "1", "search", '{"query": "x"}')))
        await to_thread.run_sync(began.wait, 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ended.set()
        assert toolbox.passages == ()

    asyncio.run(cancelled())
