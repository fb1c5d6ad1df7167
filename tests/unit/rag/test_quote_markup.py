"""Quotes keep their words and lose the markup that would not survive in an answer."""

import pytest

from app.rag.markers import find_markers
from app.rag.quote_markup import quoted, quoted_code, quoted_row


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("It wraps\n   over lines.", "It wraps over lines."),
        ("See [the guide](../guide.md#x) and [it](a(b).md).", "See the guide and it."),
        ("See [the guide][ref] and a note[^1].", "See the guide and a note."),
        ("![shot](a.png) Press <kbd>Enter</kbd><br/> now.", "Press Enter now."),
        ("{{< note >}}Mind it.{{% /note %}}", "Mind it."),
        ("Use `[a](b) <x>` and ``c [1]``.", "Use `[a](b) <x>` and ``c [1]``."),
        ("Replace <YOUR_KEY> here.", "Replace \\<YOUR_KEY> here."),
        ("See <https://a.example/x>.", "See <https://a.example/x>."),
        ("As in [1] and [2, 3].", "As in \\[1] and \\[2, 3]."),
        ("**Bold** and *soft* stay.", "**Bold** and *soft* stay."),
        ("Run this::", "Run this:"),
        ("# no title", "\\# no title"),
        ("> no quote", "\\> no quote"),
        ("- no item", "\\- no item"),
        ("12. no list", "12\\. no list"),
        ("--pack-size sets it", "--pack-size sets it"),
        ("5 > 3 and a < b", "5 > 3 and a < b"),
        ("<br>", ""),
    ],
)
def test_a_sentence_becomes_one_line_of_markdown(sentence: str, line: str) -> None:
    """Words, numbers and code stay; links to other files, tags and shortcodes go; nothing becomes structure."""
    assert quoted(sentence) == line


def test_brackets_of_the_source_never_read_as_citations() -> None:
    """A document that cites its own literature would otherwise cite ours."""
    assert find_markers(quoted("As in [1] and [2][3].")) == []


def test_a_table_row_keeps_its_cells() -> None:
    """The bars are markup."""
    assert quoted_row("| 12  | Wrong password | `x` |  |") == "12 · Wrong password · `x`"


def test_code_keeps_its_language_and_loses_its_indentation() -> None:
    """Fenced or indented, it comes out fenced, at the left edge."""
    text = "x\n    ```sh\n    restic check\n      --x\n    ```\n"
    start = text.index("```")
    assert quoted_code(text[start:].rstrip(), text, start) == "```sh\nrestic check\n  --x\n```"
    text = "Run::\n\n    a\n      b\n\n    c"
    assert quoted_code("a\n      b\n\n    c", text, text.index("a")) == "```\na\n  b\n\nc\n```"


def test_code_that_holds_fences_gets_a_longer_one() -> None:
    """And a fence that was never closed is closed."""
    assert quoted_code("~~~\n```\nx\n```", "~~~\n```\nx\n```", 0) == "````\n```\nx\n```\n````"
