"""What kind of batch a batch is: by declared effect, else by the names of its tools."""

import pytest

from app.guard.effects import STRICT, BatchClass, Effect, batch_class, call_class
from app.guard.turn_guard import Call

LOOKING = BatchClass(observation=True, costly=False)
COSTLY = BatchClass(observation=True, costly=True)


@pytest.mark.parametrize(
    "name",
    [
        "thread_create",
        "listen_port",
        "set_global_config",
        "preview_changes",
        "write_file",
        "edit_file",
        "create_file",
        "delete_file",
        "move_file",
        "run_in_terminal",
        "apply_patch",
        "search_and_replace",
    ],
)
def test_C16_a_tool_that_changes_something_is_no_observation(name: str) -> None:
    """Such a batch keeps its strikes."""
    assert call_class(name) == STRICT


@pytest.mark.parametrize(
    "name",
    [
        "browser_navigate",
        "mcp__playwright__click",
        "BROWSER_NAVIGATE",
        "double_click_element",
        "fetch_webpage",
        "browserNavigate",
        "page.click",
        "fetchWebpage",
    ],
)
def test_C17_navigating_clicking_and_fetching_are_costly(name: str) -> None:
    """Observations, but under the ceiling; however the name is spelled."""
    assert call_class(name) == COSTLY


@pytest.mark.parametrize(
    "name", ["get_clickable_elements", "clickhouse_query", "read_file", "grep_search", "navigate_to_definition"]
)
def test_C18_names_that_only_hold_the_letters_are_not_costly(name: str) -> None:
    """A whole segment has to say so, and an editor's jump loads no page."""
    assert not call_class(name).costly


def test_C18_an_empty_batch_is_neither() -> None:
    """Nothing was observed."""
    assert batch_class([]) == STRICT


@pytest.mark.parametrize(
    "name", ["readFile", "readTextFile", "read-file", "mcp__fs__read_file", "READ_FILE", "listDir"]
)
def test_names_are_known_in_every_spelling(name: str) -> None:
    """Humps, dashes and capitals."""
    assert call_class(name) == LOOKING


@pytest.mark.parametrize(("effect", "kind"), [("read", LOOKING), ("write", STRICT), ("external", COSTLY)])
def test_a_declared_effect_decides_whatever_the_name(effect: Effect, kind: BatchClass) -> None:
    """The registry knows better than a pattern."""
    assert call_class("write_file", effect) == kind
    assert call_class("browser_click", effect) == kind


def test_one_call_that_changes_something_makes_the_batch_strict() -> None:
    """And one costly call makes it costly."""
    assert batch_class([Call("read_file", "{}"), Call("write_file", "{}")]) == STRICT
    assert batch_class([Call("read_file", "{}"), Call("click", "{}")]) == COSTLY


def test_a_callers_own_patterns_take_the_place_of_the_defaults() -> None:
    """An empty list knows no observation."""
    assert batch_class([Call("poll_Build", "{}")], ("POLL",)) == LOOKING
    assert batch_class([Call("read_file", "{}")], ()) == STRICT


def test_a_name_of_a_million_characters_is_judged_by_its_beginning() -> None:
    """It costs no more than a short one."""
    assert call_class("x" * 1_000_000 + "read_file") == STRICT
