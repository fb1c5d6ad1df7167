"""The reader shows every format readably, with exactly the cited characters marked."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from app.render.highlight import quote_html, reader_html
from tests.unit.render.allowed import violations

HOSTILE = json.loads((Path(__file__).parents[2] / "fixtures" / "hostile_markdown.json").read_text("utf-8"))
BITS = st.sampled_from(["a ", "b\n", "\n", "# ", "`c`", "**d**", "- ", "```\n", "    ", "| ", "::\n", "===\n"])
PAGE = """# Backups

Run `restic forget` **first**, then [read on](https://a.example/x).
It spans two lines.

- one item
  goes on
1. numbered

```sh
restic check
```

| a | b |
|---|---|
| 1 | 2 |
"""


def test_headings_lists_code_and_tables_are_set() -> None:
    """Markup characters go, words stay."""
    html = reader_html(PAGE, "text/markdown")
    assert "<h2>Backups</h2>" in html
    assert "Run <code><span>restic</span> <span>forget</span></code> <strong>first</strong>, then read on. It" in html
    assert '<span class="item-mark">–</span><span>one item goes on</span>' in html
    assert '<span class="item-mark">1.</span><span>numbered</span>' in html
    assert "<code>restic check</code></pre>" in html
    assert "<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody>" in html


def test_restructured_text_headings_and_literal_blocks_are_set() -> None:
    """Underlines and `::` say what is what."""
    html = reader_html("Title\n=====\n\nRun this::\n\n    borg create\n\n    borg prune\n\nDone.", "text/x-rst")
    assert "<h2>Title</h2>" in html
    assert "<code>borg create\n\nborg prune</code>" in html
    assert '<p class="flow">Done.</p>' in html


def test_source_code_is_shown_as_it_stands() -> None:
    """One block, every line."""
    html = reader_html("def f():\n    return 1  # a < b\n", "text/x-python", path="f.py")
    assert "<code>def f():\n    return 1  # a &lt; b</code>" in html


def test_words_of_code_are_kept_whole_unless_no_line_can_hold_them() -> None:
    """A flag is never split after its dashes; an address that a phone can't show on one line may break."""
    long = "ntfy://{user}:{password}@{host}:{port}/{topics}"
    html = reader_html(f"`--keep-daily 7` or `{long}`", "text/markdown")
    assert "<code><span>--keep-daily</span> <span>7</span></code>" in html
    assert f"<code>{long}</code>" in html


def test_cells_of_a_table_keep_their_offsets() -> None:
    """Marked words in a cell, markup in it, a missing last bar, an escaped bar."""
    text = "| `a` | b |\n|:--|--:|\n| one two | x \\| y"
    html = reader_html(text, "text/markdown", support=[(text.index("two"), text.index("two") + 3)])
    assert "<th><code><span>a</span></code></th><th>b</th>" in html
    assert "<td>one <mark>two</mark></td><td>x | y</td>" in html


def test_a_grid_of_restructured_text_is_shown_as_it_stands() -> None:
    """Its borders are its layout."""
    assert "<pre" in reader_html("+---+---+\n| a | b |\n+---+---+", "text/x-rst")


def test_strong_words_in_a_link_are_strong() -> None:
    """Markup nests."""
    html = reader_html("See [**ten** releases](https://a.example).", "text/markdown")
    assert html == '<p class="flow">See <strong>ten</strong> releases.</p>'


@pytest.mark.parametrize(
    ("mime", "path"),
    [
        ("text/csv", "a.csv"),
        ("text/tab-separated-values", "a.tsv"),
        ("application/epub+zip", "a.epub"),
        ("message/rfc822", "a.eml"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "a.xlsx"),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "a.pptx"),
    ],
)
def test_formats_whose_text_is_written_anew_are_set_as_pages(mime: str, path: str) -> None:
    """Headings and tables as such; a mail's lines stay lines."""
    html = reader_html("# Title\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nFrom: x\nTo: y", mime, path=path)

    assert "<h2>Title</h2>" in html
    assert "<td>1</td>" in html
    assert ("From: x\nTo: y" in html) == (mime == "message/rfc822")


def test_plain_text_keeps_its_lines() -> None:
    """Its author broke them on purpose."""
    assert reader_html("one\ntwo", "text/plain", path="a.txt") == '<p class="lines">one\ntwo</p>'
    assert '<div class="code">' in reader_html("one\ntwo", "text/plain", path="a.conf")


def test_the_passage_is_set_off_and_the_support_marked() -> None:
    """Blocks outside of it stay outside."""
    text = "Before it.\n\nThe passage says this much.\n\nAfter it."
    start, end = text.index("The"), text.index("\n\nAfter")
    support = (text.index("says"), text.index(" much"))
    html = reader_html(text, "text/markdown", passage=(start, end), support=[support])
    tree = LexborHTMLParser(html)
    assert [node.text() for node in tree.css("#passage")] == ["The passage says this much."]
    assert [node.text() for node in tree.css("mark")] == ["says this"]


def test_a_passage_that_begins_inside_a_paragraph_cuts_it() -> None:
    """The rest of the paragraph is not claimed as evidence."""
    text = "One sentence. Two sentences. Three sentences."
    start, end = text.index("Two"), text.index(" Three")
    tree = LexborHTMLParser(reader_html(text, "text/markdown", passage=(start, end)))
    assert [node.text() for node in tree.css("#passage")] == ["Two sentences."]


def test_a_quote_shows_code_as_code_and_marks_inside_it() -> None:
    """As the document looks, not as it is typed."""
    html = quote_html("Use ``keep n`` for **n** <months>.", ((6, 10), (19, 24)))
    code = "<code><mark><span>keep</span></mark> <span>n</span></code>"
    assert html == f"Use {code} for <strong><mark>n</mark></strong> &lt;months&gt;."


def test_marks_that_make_no_sense_are_left_out() -> None:
    """Stored spans are data from outside: overlapping or out of range, they mark what they can."""
    assert quote_html("abc", ((0, 2), (1, 3), (2, 99), (-1, 1), (2, 2))) == "<mark>ab</mark><mark>c</mark>"


@given(st.lists(BITS, max_size=30), st.data())
def test_a_mark_covers_only_its_own_characters(bits: list[str], data: st.DataObject) -> None:
    """For any text and any span, marked words are a part of the span's text and HTML stays allowed."""
    text = "".join(bits)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    html = reader_html(text, "text/markdown", passage=(start, end), support=[(start, end)])
    shown = "".join(node.text() for node in LexborHTMLParser(html).css("mark"))
    it = iter(text[start:end])
    assert all(character in it for character in shown)
    assert violations(html) == []


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_document_leaves_only_allowed_html(payload: str) -> None:
    """As prose and as code."""
    for mime in ("text/markdown", "text/plain", "application/json"):
        assert violations(reader_html(payload, mime, passage=(0, 5), support=[(0, 3)])) == []


def test_code_and_emphasis_may_go_over_a_line_end() -> None:
    """Wrapped text keeps its code whole, and a mark in it still covers its own characters."""
    text = "Specify ``forget --keep 7\n--prune`` or **not\nat all**, done."
    start = text.index("7\n--prune")
    html = reader_html(text, "text/x-rst", support=[(start, start + len("7\n--prune"))])
    marked = "<mark><span>7</span></mark> <mark><span>--prune</span></mark>"
    assert f"<code><span>forget</span> <span>--keep</span> {marked}</code>" in html
    assert "<strong>not at all</strong>, done." in html


def test_a_wrapped_paragraph_of_a_megabyte_is_set_in_linear_time() -> None:
    """One paragraph of many short lines, each with code in it."""
    text = "some `code` and **words** here\n" * 35_000
    assert len(reader_html(text, "text/markdown")) > len(text)
