"""HTML: content without furniture, structure kept, absurd input refused."""

import pytest

from app.ingest.errors import IngestError
from app.ingest.extract.html import extract_html

PAGE = """<!doctype html><html><head><meta charset="iso-8859-1"><title>Pumpe - Wiki</title>
<style>.x{{}}</style><script>noise()</script></head><body>
<header><a href="/">Wiki</a></header><nav><a>Recent</a></nav>
<div class="page-sidebar"><p>Tools</p></div>
{content}
<aside>Advert</aside><div role="contentinfo">Imprint</div><footer>Privacy</footer>
<p hidden>secret</p><p aria-hidden="true">secret</p><p style="display: none">secret</p></body></html>"""


def text_of(html: str) -> str:
    return extract_html(html.encode()).text


def test_a_page_is_read_without_its_furniture() -> None:
    """Navigation, sidebars, footers and hidden text are no content; the declared charset is believed."""
    extraction = extract_html(PAGE.format(content="<h1>Wärme</h1><p>Die Pumpe.</p>").encode("latin-1"))

    assert extraction.text == "# Wärme\n\nDie Pumpe."
    assert (extraction.title, extraction.encoding, extraction.mime) == ("Wärme", "iso-8859-1", "text/html")


def test_main_is_the_content_when_it_holds_enough() -> None:
    """Whatever stands beside a full `<main>` is left out, whatever it is called."""
    body = f"<body><div>Beside</div><main><h2>In</h2><p>{'Enough words. ' * 20}</p></main></body>"

    assert text_of(body).startswith("## In\n\nEnough words.")
    assert "Beside" not in text_of(body)


def test_a_short_main_does_not_hide_the_rest() -> None:
    """An empty shell is not the page."""
    assert text_of("<main>Hi</main><div>The rest</div>") == "Hi\n\nThe rest"


def test_a_page_of_nothing_but_furniture_is_read_all_the_same() -> None:
    """Better a menu than `no_text`."""
    assert text_of("<nav>Only a menu</nav>") == "Only a menu"


def test_a_header_with_the_heading_is_content() -> None:
    """Many pages put their first heading into one."""
    assert text_of("<header><h1>T</h1></header><p>x</p>") == "# T\n\nx"


def test_structure_becomes_markdown_shapes() -> None:
    """Lists nest and count, tables are rows, code is fenced, breaks are kept."""
    html = (
        "<h3>Steps</h3><ol><li>One<ul><li>sub <b>bold</b></li></ul></li><li><p>Two</p><p>more</p></li></ol>"
        "<p>a<br>b &amp;&nbsp;c</p><pre>x = `1`\n  y<br>z</pre><pre>```\n</pre><hr>"
        "<table><caption>Cap</caption><tr><th>k</th><th>v</th></tr><tr><td>a|b</td><td><p>1</p><p>2</p></td></tr>"
        "<tr></tr></table><dl><dt>term</dt><dd>meaning</dd></dl>loose"
    )

    assert text_of(html) == (
        "### Steps\n\n1. One\n  - sub bold\n2. Two\n   more\n\na\nb & c\n\n```\nx = `1`\n  y\nz\n```\n\n"
        "````\n```\n````\n\nCap\n\n| k | v |\n| --- | --- |\n| a\\|b | 1 2 |\n\nterm\n  meaning\n\nloose"
    )


def test_offsets_are_exact_and_kinds_are_told() -> None:
    """Each block is the slice it claims to be."""
    extraction = extract_html(b"<h1>T</h1><ul><li>x</ul><table><tr><td>a<td>b</table><pre>c</pre><p>d")

    assert [block.kind for block in extraction.blocks] == ["heading", "list", "table", "code", "paragraph"]
    for block in extraction.blocks:
        assert extraction.text[block.char_start : block.char_end] == block.text


def test_a_layout_table_is_read_as_what_it_holds() -> None:
    """A table of one column, or around another table, only places things."""
    html = "<table><tr><td><p>Intro</p><table><tr><td>k</td><td>v</td></tr></table></td></tr></table>"

    assert text_of(html) == "Intro\n\n| k | v |\n| --- | --- |"


def test_the_title_element_names_a_page_without_a_first_heading() -> None:
    """Its white space collapsed."""
    assert extract_html(b"<title> A\n page </title><h2>Part</h2>").title == "A page"


@pytest.mark.parametrize("html", ["", "<script>x</script>", "<p> &nbsp; </p>", "<!-- only -->"])
def test_a_page_without_text_says_so(html: str) -> None:
    """The reason is no_text."""
    with pytest.raises(IngestError) as caught:
        extract_html(html.encode())

    assert caught.value.reason == "no_text"


@pytest.mark.parametrize("tag", ["div", "b", "table", "blockquote"])
def test_absurd_nesting_is_refused_before_the_tree_is_built(tag: str) -> None:
    """A million open elements would keep a parser busy for minutes."""
    with pytest.raises(IngestError) as caught:
        extract_html(f"<{tag}>".encode() * 100_000 + b"x")

    assert caught.value.reason == "corrupt"


def test_deep_but_possible_nesting_and_unclosed_paragraphs_are_read() -> None:
    """A thousand levels cost no stack; what HTML closes by itself counts for nothing."""
    assert text_of("<div>" * 1_000 + "deep") == "deep"
    assert text_of("<p>x" * 5_000).count("x") == 5_000
