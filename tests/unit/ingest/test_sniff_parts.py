"""How a page begins, and what only looks like it: pages that leave out `<html>`, comments without end."""

from pathlib import Path

import pytest

from app.ingest.extract.sniff import Family, sniff


@pytest.mark.parametrize(
    ("head", "name", "family"),
    [
        ("<title>Notes</title><p>Text", "notes", "html"),
        ("<!-- made by hand -->\n<H1 class=x>Text</H1>", "notes", "html"),
        ("<meta charset=utf-8><p>Text", "", "html"),
        ("<p>Text</p>", "guide/first steps", "html"),
        ("<p align=center>A logo</p>\n\n# Name", "README.md", "markdown"),
        ("<div>{{ x }}</div>", "part.vue", "plain"),
        ("<p>Text</p>", "snippet.txt", "plain"),
        ("<person> wrote this", "notes", "plain"),
        ("a < b and <p> follows", "notes", "plain"),
    ],
)
def test_a_part_of_a_page_is_read_as_one_where_no_name_says_more(
    tmp_path: Path, head: str, name: str, family: Family
) -> None:
    """Its tags are not text; a name that promises another format is believed."""
    path = tmp_path / "file"
    path.write_text(head, "utf-8")
    assert sniff(head.encode(), path, name) == family


@pytest.mark.parametrize(
    ("tail", "family"), [("# Title", "markdown"), ("<html><p>Text", "html"), ("<!-- open", "markdown")]
)
def test_many_comments_before_the_first_word_are_passed_once(tmp_path: Path, tail: str, family: Family) -> None:
    """Each comment has one end: a licence in a hundred of them must not be tried in every way it could be cut, which
    no run of the tests would see the end of."""
    text = "<!-- a line of a licence -->\n" * 100 + tail
    path = tmp_path / "file"
    path.write_text(text, "utf-8")
    assert sniff(text.encode(), path, "notes.md") == family
