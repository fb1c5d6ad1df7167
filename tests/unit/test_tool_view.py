"""What a page shows of searches and tool calls, from what a turn stored."""

from typing import Any

import pytest

from app.catalog import load_catalog
from app.web.tool_view import ToolLine, asked_for, search_line, tool_lines

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


def test_the_search_line_counts_what_was_given_and_not_what_tools_added() -> None:
    """Eight sources, six of them from the search; before that was recorded, all of them."""
    searched = {"searched": "ports", "retrieval_ms": 38}
    line = ToolLine("search", "“ports”", "6 passages", "38 ms")
    assert search_line(CATALOG, {**searched, "given": 6}, 8) == [line]
    assert search_line(CATALOG, searched, 6) == [line]
    assert search_line(CATALOG, searched, None)[0].summary == "nothing close enough"
    assert search_line(CATALOG, {"retrieval_ms": 3}, 0) == []
