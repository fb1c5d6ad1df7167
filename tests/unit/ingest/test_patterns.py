"""Patterns of a watched folder: what each form names, and what can't be used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidInputError
from app.ingest.patterns import LONGEST, MOST, Patterns, parse_patterns


@pytest.mark.parametrize(
    ("pattern", "named", "not_named"),
    [
        ("*.log", ["a.log", "deep/down/b.log"], ["a.log.md", "a.md"]),
        ("drafts", ["drafts", "x/drafts"], ["drafts.md", "mydrafts"]),
        ("/archive", ["archive"], ["x/archive"]),
        ("guides/*.md", ["guides/a.md"], ["x/guides/a.md", "guides/x/a.md"]),
        ("guides/**/*.md", ["guides/a.md", "guides/x/y/a.md"], ["a.md"]),
        ("guides/**", ["guides/a.md", "guides/x/a.md"], ["guide/a.md"]),
        ("note?.md", ["note1.md"], ["note12.md", "note/.md"]),
        ("a+b (1).md", ["a+b (1).md"], ["aab (1).md"]),
        ("[x].md", ["[x].md"], ["x.md"]),
    ],
)
def test_a_pattern_names_just_what_it_says(pattern: str, named: list[str], not_named: list[str]) -> None:
    """Names at any depth, paths from the root, `*` within a name, `**` across folders; all else is itself."""
    patterns = Patterns(exclude=(pattern,))
    assert [path for path in named if not patterns.leave_out(path, is_dir=False)] == []
    assert [path for path in not_named if patterns.leave_out(path, is_dir=False)] == []
    wanted = Patterns(include=(pattern,))
    assert [path for path in named if wanted.leave_out(path, is_dir=False)] == []


def test_a_pattern_of_a_folder_holds_for_all_below_it() -> None:
    """A final slash means folders only; what is wanted may lie in a folder that is not named."""
    patterns = Patterns(include=("guides/",), exclude=("old/",))
    assert patterns.leave_out("old", is_dir=True)
    assert not patterns.leave_out("guides/old", is_dir=False)
    assert not patterns.leave_out("guides/deep/a.md", is_dir=False)
    assert not patterns.leave_out("other", is_dir=True)
    assert patterns.leave_out("other/a.md", is_dir=False)
    assert patterns.excludes_below("x/old/deep/a.md")
    assert not patterns.excludes_below("x/older/a.md")
    assert not Patterns().excludes_below("a")
    assert Patterns().are_empty


def test_lines_become_patterns_and_nonsense_is_refused() -> None:
    """Empty lines and remarks are none, twice is once; climbing, empty, endless and too many ones are refused."""
    assert parse_patterns(" *.md \n\n# remark\n*.md\ndrafts/\n") == ("*.md", "drafts/")
    for text in ("/", "../x", "a\0b", "x" * (LONGEST + 1), "\n".join(f"p{n}" for n in range(MOST + 1))):
        with pytest.raises(InvalidInputError):
            parse_patterns(text)


@given(st.text(min_size=1, max_size=40), st.text(max_size=60))
def test_any_pattern_can_be_asked_about_any_path(pattern: str, path: str) -> None:
    """Whatever a person types, it is refused or it works; a literal one names itself."""
    try:
        (parsed,) = parse_patterns(pattern)
    except (InvalidInputError, ValueError):
        return
    patterns = Patterns(exclude=(parsed,))
    assert patterns.leave_out(path, is_dir=False) in (True, False)
    if not set("*?/") & set(parsed):
        assert patterns.leave_out(parsed, is_dir=False)
