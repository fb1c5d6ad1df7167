"""Text families: encodings, Markdown, reStructuredText, plain text and code."""

import pytest

from app.ingest.blocks import Extraction
from app.ingest.extract.decode import decode, is_binary, normalise
from app.ingest.extract.markdown import extract_markdown
from app.ingest.extract.plain import extract_plain
from app.ingest.extract.rst import extract_rst


def kinds(extraction: Extraction) -> list[str]:
    return [block.kind for block in extraction.blocks]


def headings(extraction: Extraction) -> list[tuple[int, str]]:
    return [(block.level, block.label) for block in extraction.blocks if block.kind == "heading"]


GERMAN = "Die Wärmepumpe läuft über Modbus – „Türsprechanlage“ größer 28 °C.\n" * 4


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (GERMAN.encode(), "utf-8"),
        (GERMAN.encode("utf-8-sig"), "utf-8"),
        (GERMAN.encode("utf-16"), "utf-16-le"),
        (b"\xfe\xff" + GERMAN.encode("utf-16-be"), "utf-16-be"),
        (GERMAN.encode("utf-16-le"), "utf-16-le"),
        (GERMAN.encode("utf-16-be"), "utf-16-be"),
        (GERMAN.encode("utf-32"), "utf-32-le"),
        (GERMAN.encode("utf-32-le"), "utf-32-le"),
        (GERMAN.encode("utf-32-be"), "utf-32-be"),
        (b"\x00\x00\xfe\xff" + GERMAN.encode("utf-32-be"), "utf-32-be"),
        (GERMAN.encode("cp1252"), "cp1252"),
    ],
)
def test_every_encoding_of_a_text_gives_the_same_text(data: bytes, encoding: str) -> None:
    """With a byte order mark or without, the words are read and the encoding is named."""
    assert not is_binary(data)
    assert decode(data) == (GERMAN, encoding)


def test_latin_1_is_the_last_resort() -> None:
    """Bytes that even cp1252 has no character for still become text."""
    assert decode(b"caf\xe9 \x81 end") == ("café  end", "latin-1")


def test_a_few_bad_bytes_do_not_turn_utf_8_into_mojibake() -> None:
    """A log with one broken character is still UTF-8."""
    text, encoding = decode("ä ö ü ß é ".encode() * 5 + b"\xff end")

    assert encoding == "utf-8"
    assert text.startswith("ä ö ü ß é")
    assert text.endswith("\ufffd end")


def test_cyrillic_in_a_code_page_is_recognised() -> None:
    """A text that is mostly not Latin is not read as cp1252."""
    russian = "Резервное копирование выполняется каждую ночь в два часа. Проверьте журнал после сбоя питания. " * 5

    text, encoding = decode(russian.encode("cp1251"))

    assert (text, encoding) == (russian, "cp1251")


def test_line_ends_control_characters_and_colours_are_normalised() -> None:
    """What is left is what a page can show."""
    assert normalise("a\r\nb\rc\x07\x1b[31mred\x1b[0m\ttab\ud800\ufeff\x81") == "a\nb\ncred\ttab"


def test_binary_data_is_told_from_text() -> None:
    """Zero bytes in odd places and control bytes are no text; a stray one is."""
    assert is_binary(bytes(range(256)) * 20)
    assert is_binary(b"\x7fELF\x02\x01\x01" + b"\x00" * 57)
    assert not is_binary(b"log line\x00 " * 3 + b"text " * 100)
    assert not is_binary(b"")


def test_markdown_becomes_blocks_that_keep_its_lines() -> None:
    """Headings of both kinds, fences, tables, lists, code, each where it stood."""
    text = (
        "Title here\n==========\n\nIntro\nruns on.\n\nPart\n----\n\n- one\n  more\n\n- two\n\n"
        "```sh\n# no heading\n```\n\n"
        "| a   | b |\n|-----|---|\n| 1   | 2 |\n\n    indented code\n\n#### Deep `x` {#deep} ####\n\n> quote\n"
    )

    extraction = extract_markdown(text, "utf-8")

    assert kinds(extraction) == [
        *("heading", "paragraph", "heading", "list", "code", "table", "code", "heading", "paragraph"),
    ]
    assert headings(extraction) == [(1, "Title here"), (2, "Part"), (4, "Deep x")]
    assert extraction.title == "Title here"
    assert extraction.text.count("\n") == text.count("\n")
    assert "| a | b |\n|---|---|\n| 1 | 2 |" in extraction.text
    assert extraction.blocks[5].text.startswith("| a | b |")


def test_front_matter_names_the_title_and_loses_its_switches() -> None:
    """What a reader may ask for stays (description, tags); drafts and weights go."""
    text = '---\ntitle: "Backups"\ndescription: How to\ndraft: false\nweight: 10\ntags:\n  - nas\n---\n\n# Other\n'

    extraction = extract_markdown(text, "utf-8")

    assert extraction.title == "Backups"
    assert extraction.blocks[0].text == 'title: "Backups"\ndescription: How to\n\n\ntags:\n  - nas'
    assert extraction.text.split("\n")[9] == "# Other"


def test_toml_front_matter_is_read_and_a_rule_is_not_front_matter() -> None:
    """Hugo's form counts; a thematic break on top that nothing closes is just a line."""
    assert extract_markdown('+++\ntitle = "T"\n+++\nx', "utf-8").title == "T"
    assert extract_markdown("---\ntitle: never closed\n\n# Real\n", "utf-8").title == "Real"


def test_shortcodes_components_and_comments_leave_readable_text() -> None:
    """Machine noise goes, arguments that say something stay, line numbers hold."""
    text = (
        '# X\n\nimport Tabs from "@site/Tabs";\n\n<Tabs>\n<TabItem value="ui">\n\nClick <b>Save</b>.\n\n</TabItem>\n\n'
        'See [it]({{< ref "y.md" >}}) {{< confkey type="string" icon="star" >}}\n{{% /tip %}}\n\n'
        "<!-- hidden\nstill hidden --> shown\n\n```html\n<!-- in code -->\n```\n\nEnd <!-- unclosed\n"
    )

    extraction = extract_markdown(text, "utf-8")

    assert extraction.text.count("\n") == text.count("\n")
    assert "Tab" not in extraction.text
    assert "Click <b>Save</b>." in extraction.text
    assert '[it](y.md) type="string"' in extraction.text
    assert "hidden" not in extraction.text
    assert "End <!-- unclosed" in extraction.text
    assert " shown" in extraction.text
    assert "<!-- in code -->" in extraction.text


def test_an_underlined_text_too_long_for_a_heading_is_prose() -> None:
    """A caption above a stray equals sign neither names the document nor stands above every passage of it."""
    caption = "Figure 1. " + "The curve shows the load of the pool over a day. " * 4

    extraction = extract_markdown(f"{caption}\n12\n =\n\nShort\n===\n\nText.", "utf-8")

    assert kinds(extraction) == ["paragraph", "heading", "paragraph"]
    assert extraction.title == "Short"


def test_the_inside_of_a_tab_is_prose_and_of_a_listing_code() -> None:
    """Four columns mean code only at the margin's level."""
    extraction = extract_markdown('=== "Linux"\n\n    Run the installer.\n\nText.\n\n    code here\n', "utf-8")

    assert kinds(extraction) == ["paragraph", "paragraph", "paragraph", "code"]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    """Nothing after it is taken for a heading."""
    assert kinds(extract_markdown("a\n\n~~~\n# b\n\n# c", "utf-8")) == ["paragraph", "code"]


RST = """\
.. _label:

=======
Library
=======

.. note:: Mind :ref:`the guide <guide>` and :doc:`/users/faq`.

First, see `Docker <https://docker.com>`_ or `other thing`_ and ``literal``.
An escaped \\*id\\* and a :command:`borg
create` over lines.

Section
-------

.. code-block:: bash
   :linenos:

   borg create --stats

Example::

    literal: block

.. versionadded:: 1.2

.. option:: --dry-run

   Do nothing.

.. raw:: html

   <script>evil()</script>

.. a comment
   goes on

Deeper
~~~~~~

+-------+-------------+
| key   | value       |
+=======+=============+
| a     | the one     |
+-------+-------------+

=====  ======
name   meaning
=====  ======
x      ex
=====  ======

- item

>>> print(1)
1

----

.. [1] A footnote.
.. include:: other.rst
"""


def test_restructured_text_becomes_blocks_that_keep_its_lines() -> None:
    """Underlines rank headings by appearance; directives say what they hold; nothing runs."""
    extraction = extract_rst(RST, "utf-8")
    text = extraction.text

    assert headings(extraction) == [(1, "Library"), (2, "Section"), (3, "Deeper")]
    assert extraction.title == "Library"
    assert text.count("\n") == RST.count("\n")
    assert "Note: Mind the guide and /users/faq." in text
    assert "see Docker (https://docker.com) or other thing and ``literal``" in text
    assert "An escaped *id* and a borg\ncreate over lines." in text
    assert "New in version 1.2" in text
    assert "--dry-run" in text
    assert "Do nothing." in text
    assert "| key | value |" in text
    assert "| a | the one |" in text
    assert "name  meaning" in text
    assert "[1] A footnote." in text
    for noise in ("label", "evil", "comment", "include", "linenos", "====  =", "::"):
        assert noise not in text
    code = [block.text.strip() for block in extraction.blocks if block.kind == "code"]
    assert code == ["borg create --stats", "literal: block", ">>> print(1)\n\t1"]
    assert [line.lstrip() for line in text.split("\n") if line.startswith("\t")] == [
        *("borg create --stats", "literal: block", ">>> print(1)", "1")
    ]
    assert kinds(extraction).count("table") == 2
    assert kinds(extraction).count("list") == 1


def test_a_link_across_lines_keeps_its_line_break() -> None:
    """Line numbers below it stay those of the file."""
    extraction = extract_rst("See the `official\nsecurity page\n<https://example.org/x>`_.\n\nEnd.", "utf-8")

    assert extraction.text == "See the official\nsecurity page\n(https://example.org/x).\n\nEnd."


def test_plain_text_has_paragraphs_lists_headings_and_a_title() -> None:
    """A short first line that stands alone is the title."""
    extraction = extract_plain("Garden notes\n\nValves\n------\n\nOne valve\nleaks.\n\n- a\n- b\n", "utf-8", "g.txt")

    assert extraction.title == "Garden notes"
    assert kinds(extraction) == ["paragraph", "heading", "paragraph", "list"]
    assert (extraction.mime, extraction.encoding) == ("text/plain", "utf-8")


@pytest.mark.parametrize("first", ["It was a dark night.", "- item", "x" * 101])
def test_a_first_line_that_is_no_title_is_none(first: str) -> None:
    """Sentences, items and long lines don't name a document."""
    assert extract_plain(f"{first}\n\nMore.", "utf-8", "g.txt").title == ""


def test_code_is_parted_before_lines_at_the_margin() -> None:
    """A function or a section of a configuration file is a block."""
    extraction = extract_plain("[a]\nx = 1\n\ny = 2\n\n  nested\n\n[b]\n", "utf-8", "conf.ini")

    assert [block.text for block in extraction.blocks] == ["[a]\nx = 1", "y = 2\n\n  nested", "[b]"]
    assert kinds(extraction) == ["code"] * 3


def test_a_table_that_is_none_keeps_its_lines() -> None:
    """Shown as it stands, cut between rows."""
    extraction = extract_plain("only\none\n", "cp1252", "a/b/strom.CSV")

    assert kinds(extraction) == ["table"]
    assert extraction.mime == "text/plain"
