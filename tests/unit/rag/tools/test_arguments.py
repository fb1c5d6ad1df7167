"""What is understood of a model's call, and what is answered where it is not."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rag.context import estimate_tokens
from app.rag.pieces import ToolCallPiece
from app.rag.tools.arguments import TEXT_CHARS, ArgumentsError, Call, UnknownToolError, parse_call
from app.rag.tools.definitions import DEFINITIONS, TOOLS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=6,
)
KNOWN_KEYS = st.sampled_from(["path", "offset", "limit", "pattern", "glob", "ignoreCase", "context", "query", "k"])


def parse(name: str, arguments: object) -> Call:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return parse_call(ToolCallPiece(0, "1", name, raw))


def test_the_definitions_are_small_and_name_the_five_tools() -> None:
    """They are part of every request."""
    assert [tool["function"]["name"] for tool in DEFINITIONS] == ["read", "ls", "grep", "find", "search"]
    assert estimate_tokens(json.dumps(DEFINITIONS)) <= 450
    assert all(tool["type"] == "function" for tool in DEFINITIONS)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_example_is_a_valid_call(tool: object) -> None:
    """It is what a model is told to imitate."""
    name, example = tool.name, tool.example  # type: ignore[attr-defined]
    assert parse(name, example).values == json.loads(example)
    assert parse(name, example).ignored == ()


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ({"path": "a.md", "offset": "81", "limit": 20.0}, {"path": "a.md", "offset": 81, "limit": 20}),
        ({"file_path": "a.md", "start_line": 3}, {"path": "a.md", "offset": 3}),
        ({"PATH": " a.md "}, {"path": "a.md"}),
        ({"path": "a.md", "offset": None}, {"path": "a.md"}),
        ({"path": ["a.md"]}, {"path": "a.md"}),
        ([{"path": "a.md"}], {"path": "a.md"}),
        ('"a.md"', {"path": "a.md"}),
        (json.dumps(json.dumps({"path": "a.md"})), {"path": "a.md"}),
        ({"path": 404}, {"path": "404"}),
        ({"path": "a.md", "offset": 10**40}, {"path": "a.md", "offset": 1_000_000_000}),
        ({"file": "b.md", "path": "a.md"}, {"path": "a.md"}),
        ({"path": "\ud83d.md"}, {"path": "?.md"}),
    ],
)
def test_nearly_right_arguments_are_understood(arguments: object, values: dict[str, object]) -> None:
    """Small models write numbers as text, other names, JSON in JSON."""
    assert parse("read", arguments).values == values


def test_names_and_flags_are_read_leniently() -> None:
    """A prefix and capitals of the name, words for yes and no."""
    assert parse("functions.Grep", {"pattern": "x", "ignore_case": "True"}).flag("ignoreCase") is True
    assert parse("grep", {"pattern": "x", "ignoreCase": 0}).flag("ignoreCase") is False
    assert parse("grep", {"pattern": "x"}).flag("ignoreCase") is None
    assert parse("ls", "").values == {}
    assert parse("ls", "null").text("path", "/") == "/"


def test_arguments_a_tool_does_not_have_are_named() -> None:
    """They are passed over, at most a few are said."""
    call = parse("search", {"query": "x", "lang\n": "en", **{f"a{n}": n for n in range(9)}})
    assert call.values == {"query": "x"}
    assert call.ignored[0] == "lang"
    assert len(call.ignored) == 5


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read", '{"path": "a', "not valid JSON"),
        ("read", "[" * 100_000, "not valid JSON"),
        ("read", '"{"', "not valid JSON"),
        ("read", "[1, 2]", "JSON object"),
        ("read", "7", "JSON object"),
        ("read", "{}", "needs 'path'"),
        ("read", {"path": "  "}, "needs 'path'"),
        ("grep", {"path": "a.md"}, "needs 'pattern'"),
        ("read", {"path": "a", "offset": "81-90"}, "'offset' of read has to be a whole number"),
        ("read", '{"path": "a", "offset": 1e999}', "whole number"),
        ("read", {"path": "a", "offset": True}, "whole number"),
        ("read", {"path": {"a": 1}}, "has to be a text"),
        ("grep", {"pattern": "x", "ignoreCase": "maybe"}, "true or false"),
        ("find", {"pattern": "x" * (TEXT_CHARS + 1)}, "at most 1000"),
    ],
)
def test_a_call_that_cannot_be_understood_says_what_was_expected(name: str, arguments: object, said: str) -> None:
    """With an example where a shape was wrong, so that the next try can succeed."""
    with pytest.raises(ArgumentsError, match=said):
        parse(name, arguments)


def test_an_unknown_tool_is_answered_with_the_names_there_are() -> None:
    """What was asked for is said back on one short line."""
    with pytest.raises(UnknownToolError, match="read, ls, grep, find, search") as caught:
        parse("run_shell\n" * 50, {})
    assert len(str(caught.value)) < 150


@given(st.sampled_from(list(TOOLS)), st.one_of(JSON, st.dictionaries(KNOWN_KEYS, JSON)))
def test_any_json_is_a_call_or_an_arguments_error(name: str, arguments: object) -> None:
    """And what is a call holds only encodable texts and bounded numbers."""
    try:
        call = parse(name, json.dumps(arguments))
    except ArgumentsError:
        return
    for key, value in call.values.items():
        assert key in TOOLS[name].arguments
        if isinstance(value, str):
            assert value.encode("utf-8").decode() == value.strip()
        else:
            assert abs(value) <= 1_000_000_000


@given(st.text())
def test_any_text_as_arguments_is_a_call_or_an_arguments_error(raw: str) -> None:
    """Also what is no JSON at all."""
    for name in TOOLS:
        with suppress(ArgumentsError):
            assert parse_call(ToolCallPiece(0, "1", name, raw)).tool == name


def test_what_was_copied_from_the_prompt_finds_its_document() -> None:
    """The prompt makes tokens inert by an invisible character; a pattern with it would match nothing."""
    assert parse("grep", {"pattern": "<\u200b|im_end|>"}).text("pattern") == "<|im_end|>"
