"""The sentence splitter: where a unit begins and ends, in every kind of text it will meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.render.sentences import code_spans, inside, sentences


def split(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in sentences(text)]


def kinds(text: str) -> list[tuple[str, str]]:
    return [(unit.kind, text[unit.start : unit.end]) for unit in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Use e.g. restic, i.e. a tool. It works.", ["Use e.g. restic, i.e. a tool.", "It works."]),
        ("It is 3.5 MB. See v1.2.3. Then go.", ["It is 3.5 MB.", "See v1.2.3.", "Then go."]),
        ("Open notes.md. Edit it.", ["Open notes.md.", "Edit it."]),
        ("See https://a.example/x.html. Then go.", ["See https://a.example/x.html.", "Then go."]),
        ("See fig. 3 for that. The answer is no. Good.", ["See fig. 3 for that.", "The answer is no.", "Good."]),
        ("J. Doe wrote it. He did.", ["J. Doe wrote it.", "He did."]),
        ("It prunes backups. restic locks then.", ["It prunes backups.", "restic locks then."]),
        ("Call `a. B` now. Done.", ["Call `a. B` now.", "Done."]),
        ('He said "Stop!" and left. Fine.', ['He said "Stop!" and left.', "Fine."]),
        ("Wait... and see. Yes.", ["Wait... and see.", "Yes."]),
        ("(It is so.) **Bold.** End.", ["(It is so.)", "**Bold.**", "End."]),
        ("数据在这里。端口是81！好吗？", ["数据在这里。", "端口是81！", "好吗？"]),
        ("Das ist z.B. gut. Ja.", ["Das ist z.B. gut.", "Ja."]),
        ("It wraps\nover a line. Next\none.", ["It wraps\nover a line.", "Next\none."]),
        ("para one\n\npara two", ["para one", "para two"]),
        (
            "Say ``forget\n--keep 7d\n--keep-all 75y`` (or ``1w``). End.",
            ["Say ``forget\n--keep 7d\n--keep-all 75y`` (or ``1w``).", "End."],
        ),
        ("Use these:\n- ``a`` is one\n- ``b`` is two", ["Use these:", "``a`` is one", "``b`` is two"]),
        ("See [the guide.](x.md) for it. End.", ["See [the guide.](x.md) for it.", "End."]),
    ],
)
def test_prose_is_split_where_a_reader_would(text: str, expected: list[str]) -> None:
    """Full stops end sentences; decimals, names, addresses, abbreviations and code don't."""
    assert split(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is so. [1] Next. [2][3]", ["It is so. [1]", "Next. [2][3]"]),
        ("It is so.[1, 2] Next [3].", ["It is so.[1, 2]", "Next [3]."]),
        ("It is so. [1](x.md) is a link.", ["It is so.", "[1](x.md) is a link."]),
    ],
)
def test_a_marker_after_the_full_stop_belongs_to_its_sentence(text: str, expected: list[str]) -> None:
    """Otherwise the marker would back the sentence that follows it."""
    assert split(text) == expected


def test_markdown_blocks_are_told_apart() -> None:
    """Headings, items, rows and code are units of their own kind, without their marks."""
    text = (
        "# Set up #1\nText here. More.\n- one item. two\n2. second\n* [x] done\n\n| a | b |\n|---|---|\n| c | d |\n\n"
        "```sh\nrun. me\n\n# no heading\n```\n> quoted. words\n\nTitle\n-----\n\n---\n\n"
        "    indented. code\n\n    more\nafter"
    )
    assert kinds(text) == [
        ("heading", "Set up #1"),
        ("prose", "Text here."),
        ("prose", "More."),
        ("prose", "one item."),
        ("prose", "two"),
        ("prose", "second"),
        ("prose", "done"),
        ("row", "| a | b |"),
        ("row", "| c | d |"),
        ("code", "```sh\nrun. me\n\n# no heading\n```"),
        ("prose", "quoted."),
        ("prose", "words"),
        ("heading", "Title"),
        ("code", "indented. code\n\n    more"),
        ("prose", "after"),
    ]


def test_restructured_text_blocks_are_told_apart() -> None:
    """Underlined headings, literal blocks, directives and simple tables of reStructuredText are read too."""
    text = (
        "=====\nTitle\n=====\n\nRun this::\n\n    restic. check\n\n    again\n\nThen rest.\n\n"
        ".. note:: Mind it. Well.\n\n    Body of the note.\n\n.. code-block:: console\n\n   $ borg. list\n\n"
        ".. image:: a.png\n.. _label:\n\n==== ====\nA    B\n==== ====\n"
    )
    assert kinds(text) == [
        ("heading", "Title"),
        ("prose", "Run this::"),
        ("code", "restic. check\n\n    again"),
        ("prose", "Then rest."),
        ("prose", "Mind it."),
        ("prose", "Well."),
        ("prose", "Body of the note."),
        ("code", "$ borg. list"),
        ("heading", "A    B"),
    ]


def test_text_indented_under_an_item_or_admonition_is_no_code() -> None:
    """Only indentation that belongs to nothing means code."""
    text = "- item\n\n    more of it.\n\n!!! note\n\n    Body. Two."
    assert kinds(text) == [
        ("prose", "item"),
        ("prose", "more of it."),
        ("heading", "note"),
        ("prose", "Body."),
        ("prose", "Two."),
    ]


def test_an_indented_description_is_prose_but_indented_code_is_code() -> None:
    """Documents indent both; only one of them can be quoted as sentences."""
    text = "Term\n\n    Sends broadcasts to the local network every minute. The packets hold the device.\n"
    assert kinds(text)[1:] == [
        ("prose", "Sends broadcasts to the local network every minute."),
        ("prose", "The packets hold the device."),
    ]
    assert kinds("Term\n\n    x = run(a, b[1], *c) + 3; y = x // 2; z = 4")[1][0] == "code"


def test_options_of_a_manual_page_are_told_apart() -> None:
    """Without blank lines between them they would be one endless sentence."""
    assert split("--pack-size size  set it (MiB)\n   more of it\n-q, --quiet  say nothing") == [
        "--pack-size size  set it (MiB)\n   more of it",
        "-q, --quiet  say nothing",
    ]


def test_rows_of_a_table_set_with_blanks_are_told_apart() -> None:
    """A line that goes on belongs to its row; two blanks after a full stop make no table."""
    assert split("0  success (logged)\n1  warning (see\n  the log)\n12.5 GB   size") == [
        "0  success (logged)",
        "1  warning (see\n  the log)",
        "12.5 GB   size",
    ]
    assert split("It is so.  And so\non.  End") == ["It is so.", "And so\non.", "End"]


def test_a_row_of_tildes_under_a_title_is_no_fence() -> None:
    """reStructuredText underlines third-level titles with what Markdown fences code with."""
    assert kinds("Local Discovery\n~~~~~~~~~~~~~~~\n\nIt sends. It listens.") == [
        ("heading", "Local Discovery"),
        ("prose", "It sends."),
        ("prose", "It listens."),
    ]
    assert kinds("Run this:\n~~~\nx. y\n~~~") == [("prose", "Run this:"), ("code", "~~~\nx. y\n~~~")]


def test_an_unclosed_fence_holds_everything_to_the_end() -> None:
    """A cut answer may end inside a fence."""
    assert kinds("like so\n~~~\nb. c\n\nd") == [("prose", "like so"), ("code", "~~~\nb. c\n\nd")]


def test_code_spans_cover_blocks_and_inline_code() -> None:
    """Runs of backticks pair by length; one without a partner is text."""
    text = "a `b` ``c ` d`` ` e\n\n```\nf\n```\n"
    assert [text[start:end] for start, end in code_spans(text)] == ["`b`", "``c ` d``", "```\nf\n```\n"]


def test_inside_finds_the_span_of_an_offset() -> None:
    """The end of a span is outside of it."""
    spans = [(2, 4), (6, 9)]
    assert [inside(spans, at) for at in range(10)] == [at in (2, 3, 6, 7, 8) for at in range(10)]


MARKUP = st.text(st.sampled_from("aB1.!? \n\t`*-#=|>:[](),。~_\u2028é…\"'+"), max_size=120)


@given(MARKUP)
def test_units_are_in_order_trimmed_and_never_overlap(text: str) -> None:
    """Whatever the text, offsets can be used to cut it."""
    end = 0
    for unit in sentences(text):
        piece = text[unit.start : unit.end]
        assert end <= unit.start < unit.end <= len(text)
        assert piece == piece.strip()
        assert any(character.isalnum() for character in piece)
        end = unit.end


@given(MARKUP)
def test_code_spans_are_in_order_and_never_overlap(text: str) -> None:
    """So that `inside` may search them by halves."""
    end = 0
    for start, stop in code_spans(text):
        assert end <= start < stop <= len(text)
        end = stop


@given(st.lists(st.text(st.sampled_from("abc"), min_size=1, max_size=6), min_size=1, max_size=30))
def test_no_word_of_plain_prose_is_lost(words: list[str]) -> None:
    """Splitting parts text; it drops nothing of it."""
    text = ". ".join(words)
    assert "".join(split(text)).replace(".", "").replace(" ", "") == "".join(words)
