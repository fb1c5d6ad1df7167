"""What pages show of a turn's tool calls: lines over the answer, and the receipt's rows and bars."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from selectolax.lexbor import LexborHTMLParser

from app.main import create_app
from app.rag.turn import TurnStats
from app.settings import Settings
from app.store import turns
from app.store.engine import Session
from app.store.models.setup import LOCAL_USER_ID
from app.store.turns import NewTurn
from app.turns.settle import Draft, Ending, settle

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
MARKUP = "<img src=x onerror=alert(1)>"


def source(n: int, score: float, *, cited: bool = False) -> dict[str, Any]:
    place = {"path": f"{n}.md", "title": f"Notes {n}", "heading": "", "page": None, "line_start": n}
    return {"n": n, "document_id": n, "chunk_id": n, "score": score, "cited": cited, **place}


def call(name: str, args: dict[str, Any], summary: str, ms: int, *, status: str = "ok") -> dict[str, Any]:
    return {"id": name, "name": name, "args": args, "status": status, "summary": summary, "ms": ms, "at_ms": 200}


CALLS = [
    call("ls", {}, "3 entries", 4),
    call("grep", {"pattern": "prune", "path": "/library"}, "4 matches in 1 file", 9),
    call("read", {"path": "/library/notes.md", "offset": 20, "limit": 40}, "lines 20–59 of 90", 12),
    call("find", {"pattern": MARKUP}, "nothing found", 3),
    call("read", {"path": "../../secret"}, "outside the library", 1200, status="error"),
]


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        yield client


def add_turn(client: TestClient, *, tools: list[dict[str, Any]], guard: Any = "none", given: int = 1) -> int:
    """A settled turn whose search gave `given` passages and whose tools found the rest of two; its chat."""

    def work(session: Session) -> int:
        begun = turns.begin_turn(session, NewTurn("t1", LOCAL_USER_ID, None, None, "How do I prune?", NOW))
        stats = TurnStats(turn="t1", chat=begun.chat_id, user=LOCAL_USER_ID, mode="grounded", model="m", guard=guard)
        stats.rounds, stats.tool_calls, stats.chunks = 3, len(tools), 2
        stats.retrieval_ms, stats.first_ms, stats.total_ms = 38, 1500, 2000
        stats.completion_tokens = 400
        function = {"name": "read", "arguments": '{"path": "/library/notes.md"}'}
        draft = Draft(
            begun.message_id,
            "Use forget. [2]",
            sources=[source(1, 0.5), source(2, 1.0, cited=True)],
            prompt=[{"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": function}]}],
            facts={"searched": "prune", "given": given, "min_score": 0.4, "tools": tools},
        )
        settle(session, Ending("answer"), stats, draft, now=NOW)
        return begun.chat_id

    return client.app.state.docent.database.write(work)  # type: ignore[attr-defined]


def lines(page: LexborHTMLParser, selector: str) -> list[str]:
    return [" ".join(line.text(separator=" ").split()) for line in page.css(selector)]


def test_each_call_is_a_line_and_the_fifth_and_later_are_folded(client: TestClient) -> None:
    """The search first; a fold that says how many; a failure wears its mark; an argument's markup is text."""
    chat = add_turn(client, tools=CALLS)
    html = client.get(f"/chats/{chat}").text
    page = LexborHTMLParser(html)
    assert lines(page, ".tools > ol > .tool") == [
        "search “prune” 1 passage · 38 ms",
        "ls / 3 entries · 4 ms",
        "grep “prune” in /library 4 matches in 1 file · 9 ms",
        "read /library/notes.md:20–59 lines 20–59 of 90 · 12 ms",
    ]
    assert lines(page, ".tools details.more summary") == ["and 2 more"]
    assert page.css_first(".tools details.more").attributes.get("open", "closed") == "closed"
    assert lines(page, ".tools details.more .tool") == [
        f"find “{MARKUP}” nothing found · 3 ms",
        "read ../../secret outside the library · 1.2 s",
    ]
    assert [line.css_first(".tool-args").text() for line in page.css(".tool.wrong")] == ["../../secret"]
    assert MARKUP not in html
    assert page.css_first(".guard") is None


def test_without_calls_only_the_search_stands_there_and_nothing_is_folded(client: TestClient) -> None:
    """The turn of a model that used no tool."""
    chat = add_turn(client, tools=[], given=2)
    page = LexborHTMLParser(client.get(f"/chats/{chat}").text)
    assert lines(page, ".tools .tool") == ["search “prune” 2 passages · 38 ms"]
    assert page.css_first(".tools details") is None
    assert "2 passages given, 1 cited" in page.css_first(".given").text()


@pytest.mark.parametrize("guard", ["note", "final", "abort"])
def test_a_turn_that_repeated_itself_says_so_in_a_line(client: TestClient, guard: str) -> None:
    """Last of the lines, never folded away."""
    chat = add_turn(client, tools=CALLS, guard=guard)
    page = LexborHTMLParser(client.get(f"/chats/{chat}").text)
    assert lines(page, ".tools > .guard") == ["Repeated itself; asked to answer"]


def test_the_receipt_has_a_row_and_a_bar_for_each_call(client: TestClient) -> None:
    """What was asked, what came of it, how long; how many requests; no rate of tokens that were calls' too."""
    add_turn(client, tools=CALLS)
    html = client.get("/turns/t1").text
    page = LexborHTMLParser(html)
    assert lines(page, ".calls tbody tr")[1:3] == [
        "grep “prune” in /library 4 matches in 1 file 9 ms",
        "read /library/notes.md:20–59 lines 20–59 of 90 12 ms",
    ]
    assert len(page.css(".calls tr.wrong [role=img]")) == 1
    assert "5 calls in 3 requests to the model." in html
    tools = next(row for row in page.css(".waterfall dt") if row.text() == "Tool calls").next
    while tools is not None and tools.tag != "dd":
        tools = tools.next
    assert tools is not None
    assert len(tools.css("rect")) == len(CALLS)
    assert "tokens/s" not in html
    assert 'read {"path": "/library/notes.md"}' in page.css_first(".prompt-message pre").text()
    assert MARKUP not in html


def test_the_receipt_gives_no_score_to_what_a_tool_found(client: TestClient) -> None:
    """It was read because it was asked for, so no search has ranked it."""
    add_turn(client, tools=CALLS)
    page = LexborHTMLParser(client.get("/turns/t1").text)
    rows = [lines(page, ".candidates:not(.calls) tbody tr")[at] for at in (0, 1)]
    assert rows == ["1 Notes 1 1.md:1 0.50 Given, not cited", "2 Notes 2 2.md:2 by a tool Cited"]


def test_a_receipt_without_calls_has_no_table_of_them(client: TestClient) -> None:
    """Nothing empty is shown."""
    add_turn(client, tools=[])
    page = LexborHTMLParser(client.get("/turns/t1").text)
    assert page.css_first(".calls") is None
    assert "Tool calls" not in page.css_first(".receipt").text()
