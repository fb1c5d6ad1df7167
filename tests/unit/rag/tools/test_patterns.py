"""Patterns for lines and names: what they mean, and that none can explode."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rag.tools.patterns import LinePattern, NamePattern


def fits(pattern: str, text: str, ignore_case: bool | None = None) -> bool:
    data = text.encode()
    return LinePattern(pattern, ignore_case).find(data, 0, len(data)) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("keep-(daily|weekly)", "x\n--keep-weekly 4", True),
        ("^b", "a\nb", True),
        ("a$", "a\nb", True),
        ("a[^x]b", "a\nb", False),
        ("a\\sb", "a\nb", False),
        ("É", "caf\u00c9", True),
        ("\u00e9", "caf\u00c9", True),
        ("restic", "RESTIC", True),
        ("Restic", "restic", False),
        ("\\Bx", "ax", True),
        ("one\ntwo", "has two", True),
    ],
)
def test_a_pattern_finds_within_a_line(pattern: str, text: str, expected: bool) -> None:
    """Case is ignored unless the pattern has capitals of its own."""
    assert fits(pattern, text) is expected


def test_the_case_can_be_asked_for() -> None:
    """Either way."""
    assert fits("Restic", "restic", ignore_case=True)
    assert not fits("restic", "RESTIC", ignore_case=False)


@pytest.mark.parametrize("pattern", ["a(b", "*", "[", "(?=x)", "a)(b", "\\", "x{2000}", "(?P<n>x)(?P=n)"])
def test_what_is_no_pattern_is_looked_for_as_it_stands(pattern: str) -> None:
    """And says so."""
    compiled = LinePattern(pattern, None)
    data = f"before {pattern} after".encode()
    assert compiled.is_literal
    assert compiled.find(data, 0, len(data)) == (7, 7 + len(pattern))


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*.md", "/library/a/b.md", True),
        ("*.md", "/library/a/b.txt", False),
        ("B.MD", "/library/a/b.md", True),
        ("a/*.md", "/library/a/b.md", True),
        ("library/*.md", "/library/a/b.md", False),
        ("/library/**/*.md", "/library/b.md", True),
        ("/library/**", "/library/a/b.md", True),
        ("**/a/**", "/library/x/a/b/c.md", True),
        ("?.md", "/library/b.md", True),
        ("?.md", "/library/bb.md", False),
        ("[!x]*.md", "/library/bc.md", True),
        ("[!b]*.md", "/library/bc.md", False),
        ("[ab].md", "/library/b.md", True),
        ("[", "/library/a[b.md", True),
        ("[z-a]*", "/library/[z-a]*", True),
        ("a+b*", "/library/a+bc", True),
        ("back", "/library/Backups.md", True),
        ("library/back", "/library/Backups.md", True),
        ("zzz", "/library/Backups.md", False),
    ],
)
def test_a_name_pattern_fits(pattern: str, name: str, expected: bool) -> None:
    """A part of the name, or a glob for its end."""
    assert NamePattern(pattern).fits(name) is expected


@given(st.text(alphabet="ab*?.", max_size=12), st.text(alphabet="ab.", max_size=12))
def test_a_glob_without_slashes_agrees_with_fnmatch(pattern: str, name: str) -> None:
    """Python's own reading is the measure, for one step of a path."""
    if any(sign in pattern for sign in "*?"):
        assert NamePattern(pattern).fits(f"/x/{name}") is fnmatch.fnmatchcase(name, pattern)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_pattern_can_be_asked_for(pattern: str, name: str) -> None:
    """Nothing is raised, whatever it holds."""
    NamePattern(pattern).fits(name)
    NamePattern(f"*{pattern}").fits(name)
    fits(pattern, name)


def test_patterns_that_explode_elsewhere_end() -> None:
    """The test's own time limit is the measure: a backtracking engine needs ages."""
    line = "a" * 100_000 + "b"
    for pattern in ("(a+)+$", "(a|aa)+$", "(a*)*c", "(.*a){20}c", "a{0,500}a{0,500}c"):
        assert not fits(pattern, line)
    assert not NamePattern("*a" * 200 + "c").fits("/x/" + "a" * 1000)
