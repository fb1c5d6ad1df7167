"""What a page shows of searches and tool calls, from what a turn stored."""

from typing import Any

import pytest

from app.catalog import load_catalog
from app.edge.looked_up import first_look
from app.rag.whole_plan import SECTIONS
from app.web.tool_view import ToolLine, asked_for, first_line, tool_lines

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("read", {"path": "/library/plan.md"}, "/library/plan.md"),
        ("read", {"path": "/library/plan.md", "offset": 20, "limit": 40}, "/library/plan.md:20–59"),
        ("read", {"path": "/library/plan.md", "offset": 20}, "/library/plan.md:20–"),
        ("read", {"path": "/library/plan.md", "limit": "40"}, "/library/plan.md:1–40"),
        ("read", {"path": "/library/plan.md", "offset": 2.0, "limit": "many"}, "/library/plan.md:2–"),
        ("grep", {"pattern": "derp"}, "“derp”"),
        ("grep", {"pattern": "derp", "path": "/library/headscale"}, "“derp” in /library/headscale"),
        ("grep", {"pattern": "derp", "path": "/library", "glob": "*.md"}, "“derp” in /library *.md"),
        ("find", {"pattern": "*.md", "path": "/"}, "“*.md” in /"),
        ("search", {"query": "open ports", "k": 5}, "“open ports”"),
        ("ls", {}, "/"),
        ("ls", {"path": "/library"}, "/library"),
        ("read", {}, ""),
        ("launch", {"missiles": True}, ""),
        ("read", {"path": None, "offset": None, "limit": None}, ""),
    ],
)
def test_a_calls_arguments_are_words(name: str, args: dict[str, Any], words: str) -> None:
    """Where, what in quotes, which lines; nothing of arguments that no tool has."""
    assert asked_for(CATALOG, name, args) == words


def test_tool_calls_are_lines_in_their_order() -> None:
    """Verb, words, summary, time; what failed is marked."""
    numbers = {
        "tools": [
            {"id": "a", "name": "ls", "args": {}, "status": "ok", "summary": "3 documents", "ms": 4},
            {
                "id": "b",
                "name": "read",
                "args": {"path": "/x"},
                "status": "error",
                "summary": "no such file",
                "ms": 1200,
            },
        ]
    }
    assert tool_lines(CATALOG, numbers) == [
        ToolLine("ls", "/", "3 documents", "4 ms"),
        ToolLine("read", "/x", "no such file", "1.2 s", is_wrong=True),
    ]
    assert tool_lines(CATALOG, {}) == []


def test_the_first_line_counts_what_was_given_and_not_what_tools_added() -> None:
    """Eight sources, six of them from the search; before that was recorded, all of them."""
    searched = {"searched": "ports", "retrieval_ms": 38}
    line = ToolLine("search", "“ports”", "6 passages", "38 ms")
    assert first_line(CATALOG, {**searched, "given": 6}, 8) == [line]
    assert first_line(CATALOG, searched, 6) == [line]
    assert first_line(CATALOG, searched, None)[0].summary == "nothing close enough"
    assert first_line(CATALOG, {"retrieval_ms": 3}, 0) == []


WHOLE = {"document_id": 7, "title": "Plan"}


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        ({"whole": {**WHOLE, "passages": 12}}, ToolLine("read", "Plan", "all of it · 12 passages", "9 ms")),
        (
            {"whole": {**WHOLE, "sections": 14, "read": 12, "failed": [3, 9]}},
            ToolLine("read", "Plan", "12 of 14 sections read", ""),
        ),
        (
            {"catalogue": {"words": "keep within", "total": 12, "of": 429}},
            ToolLine("search", "“keep within”", "12 of 429 documents", "9 ms"),
        ),
        (
            {"catalogue": {"words": '"keep within"', "total": 1, "of": 429}},
            ToolLine("search", '"keep within"', "1 of 429 documents", "9 ms"),
        ),
        ({"outline": "Plan"}, ToolLine("read", "Plan", "outline", "9 ms")),
        ({"unreadable": "Plan"}, ToolLine("read", "Plan", "nothing to read", "9 ms", is_wrong=True)),
    ],
)
def test_what_stands_for_a_search_has_a_line_as_well(numbers: dict[str, Any], line: ToolLine) -> None:
    """A document that was read whole, counted in or found unreadable: the page says so where it would say `search`."""
    assert first_line(CATALOG, {"retrieval_ms": 9, **numbers}, 12) == [line]
    assert first_line(CATALOG, {"catalogue": {"words": "", "total": 9, "of": 9}}, 0) == []


def test_a_reading_runs_until_its_last_section_has_ended() -> None:
    """Read or failed; of a very long document only so many sections are read at all."""

    def status(**facts: Any) -> str:
        look = first_look(CATALOG, {"whole": {**WHOLE, **facts}}, 12)
        assert look is not None
        assert not look.scored
        return look.status

    assert status(sections=3, read=1, failed=[]) == "start"
    assert status(sections=3, read=2, failed=[1]) == "ok"
    assert status(sections=SECTIONS + 9, read=SECTIONS, failed=[]) == "ok"
