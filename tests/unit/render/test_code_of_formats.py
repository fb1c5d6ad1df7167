"""Code of every format that tells it from prose: the reader sets exactly that as code, and nothing else."""

import html
import re
from pathlib import Path

import pytest

from app.render.highlight import reader_html
from tests.unit.ingest.files import put, read
from tests.unit.ingest.office import book
from tests.unit.ingest.test_extract_docx import WORD, word_file

PRE = re.compile(r"<pre[^>]*><code>(.*?)</code></pre>", re.DOTALL)

MARKDOWN = """# Pump

Start it:

```sh
pump start
```

- an item

    that goes on

  ~~~
  pump item
  ~~~

!!! note "Mind"

    Prose of an aside.

    === "A tab"

        Prose of a tab.

Text again.

    pump indented
"""
RST = """Pump
~~~~

Start it::

  pump start

    pump deeper

    Prose of a quotation, set in by four.

.. note::

    Prose of an aside.

    .. code-block:: sh
       :linenos:

       pump nested

    Prose again.

1. An item::

       pump item

   that goes on.

Heading
~~~~~~~

>>> pump.session()
1

As it is:

.. parsed-literal::

  pump last
"""
PAGE = "<h1>Pump</h1><p>Start it:</p><pre>pump start\n\n    pump deeper</pre><ul><li>item<pre>pump item</pre></li></ul>"
CHAPTER = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{PAGE}<p>Prose.</p></body></html>'


def code_of(path: Path) -> list[str]:
    """What the reader sets as code."""
    extraction = read(path)
    shown = str(reader_html(extraction.text, extraction.mime, path=path.name))
    return [html.unescape(re.sub(r"<[^>]+>", "", body)) for body in PRE.findall(shown)]


def test_markdown(tmp_path: Path) -> None:
    """Fences, also in lists, and lines set in by four; not the inside of asides, tabs and items."""
    path = put(tmp_path, "a.md", MARKDOWN.encode())
    assert code_of(path) == ["pump start", "pump item", "pump indented"]


def test_restructured_text(tmp_path: Path) -> None:
    """Literal blocks, directives and sessions, however deep; not the prose that is set in as deep. A heading underlined
    with tildes opens nothing."""
    found = code_of(put(tmp_path, "a.rst", RST.encode()))
    assert found == [
        "pump start\n\n  pump deeper\n\n  Prose of a quotation, set in by four.",
        *("pump nested", "pump item", ">>> pump.session()\n1", "pump last"),
    ]


@pytest.mark.parametrize("kind", ["html", "epub"])
def test_pages_and_books(tmp_path: Path, kind: str) -> None:
    """`<pre>`, blank lines and indentation kept."""
    path = tmp_path / f"a.{kind}"
    if kind == "epub":
        book(path, {"one.xhtml": CHAPTER})
    else:
        put(tmp_path, path.name, CHAPTER.encode())
    assert code_of(path) == ["pump start\n\n    pump deeper", "pump item"]


@pytest.mark.parametrize("style", ["Code", "HTML Preformatted", "Preformatted Text", "Source Code"])
def test_word_files(tmp_path: Path, style: str) -> None:
    """Paragraphs of the styles that programs have for code, one line each, are one block."""
    styles = (
        f'<w:styles {WORD}><w:style w:type="paragraph" w:styleId="c"><w:name w:val="{style}"/></w:style></w:styles>'
    )
    line = '<w:p><w:pPr><w:pStyle w:val="c"/></w:pPr><w:r><w:t xml:space="preserve">{}</w:t></w:r></w:p>'
    prose = "<w:p><w:r><w:t>Start it so.</w:t></w:r></w:p>"
    body = prose + line.format("pump start") + line.format("  pump deeper") + prose
    document = f"<w:document {WORD}><w:body>{body}</w:body></w:document>"
    assert code_of(word_file(tmp_path, document, **{"word/styles.xml": styles})) == ["pump start\n  pump deeper"]


def test_code_that_a_passage_begins_in_stays_code(tmp_path: Path) -> None:
    """Also where the passage begins behind the line's indentation, as quotes that are looked for do."""
    extraction = read(put(tmp_path, "a.rst", b"Start it::\n\n   pump start\n   pump stop\n\nEnd.\n"))
    start = extraction.text.index("pump stop")
    shown = str(reader_html(extraction.text, extraction.mime, passage=(start, start + len("pump stop"))))
    assert [body.strip() for body in PRE.findall(shown)] == ["pump start", "pump stop"]
