"""An answer's markers become numerals and notes, wherever they stand, and nothing else changes."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from app.rag.markers import find_markers
from app.render.answer import Marker, Source, Titles, answer_html
from tests.unit.render.allowed import violations

HOSTILE = json.loads((Path(__file__).parents[2] / "fixtures" / "hostile_markdown.json").read_text("utf-8"))
SOURCES = {
    n: Source(
        n, f"/documents/{n}?chunk={n}", f"Title <{n}>", f"a/{n}.md:1–2", f"Source {n}", "the quoted words", ((4, 10),)
    )
    for n in (1, 2, 3)
}
MARKUP = ("[1]", "[2][1]", "[9]", "**", "_", "`", "- ", "| ", "<i>", "[x](http://a.b)", "![i](x)", "> ", "# ")
BITS = st.sampled_from((*MARKUP, " ", ". ", ",", "a", "b c", "\n", "\n\n", "\u29d8\ufdd0\u29d9"))


def render(content: str, known: Sequence[int] = (1, 2, 3), unbacked: str | None = None) -> str:
    markers = [Marker(found.start, found.end, found.numbers) for found in find_markers(content)]
    return answer_html(content, markers, {n: SOURCES[n] for n in known}, key="t1", titles=Titles(unbacked))


def claims(html: str) -> list[tuple[str, str]]:
    """(said, numerals) of every claim."""
    tree = LexborHTMLParser(html)
    found: list[tuple[str, str]] = []
    for claim in tree.css(".claim"):
        said = claim.css_first(".said")
        numerals = ",".join(cite.text() for cite in claim.css("a.cite"))
        found.append((said.text() if said else "", numerals))
    return found


def test_a_marker_lights_the_sentence_it_follows() -> None:
    """The sentence is wrapped, the numeral sits on its last word, the note follows."""
    assert claims(render("First one here. Second one here [2]. Third.")) == [("Second one here.", "2")]


def test_a_marker_after_the_full_stop_belongs_to_the_sentence_before() -> None:
    """Models write it both ways."""
    assert claims(render("First. [1] Second [2].")) == [("First.", "1"), ("Second.", "2")]


def test_two_markers_in_a_sentence_back_a_part_each() -> None:
    """The second claim begins where the first ended."""
    assert claims(render("It is locked[1], so stay clear [2].")) == [("It is locked,", "1"), ("so stay clear.", "2")]


def test_markers_side_by_side_share_a_sentence() -> None:
    """`[1][2]` and `[1, 2]` look alike."""
    assert claims(render("Both say so [1][2].")) == claims(render("Both say so [1, 2].")) == [("Both say so.", "1,2")]


def test_only_the_first_mention_brings_the_note() -> None:
    """Later ones are numerals alone."""
    html = render("One [1]. Two [1]. Three [2].")
    assert html.count('class="note"') == 2
    assert html.count('id="c-t1-1"') == 1


def test_a_note_shows_title_place_and_the_quote_with_its_words_marked() -> None:
    """Everything in it is escaped."""
    html = render("One [1].")
    assert '<a class="note-title" href="/documents/1?chunk=1">Title &lt;1&gt;</a>' in html
    assert '<span class="quote">the <mark>quoted</mark> words</span>' in html


def test_a_marker_that_names_no_passage_leaves_nothing() -> None:
    """Neither numeral nor brackets nor a blank too many."""
    assert render("One [9] two. Three [8].") == "<p>One two. Three.</p>\n"


def test_markers_in_code_stay_text() -> None:
    """Code is quoted as it is."""
    html = render("Use `a[1]` [1].\n\n```\nx = y[2]\n```")
    assert "a[1]" in html
    assert "x = y[2]" in html
    assert claims(html) == [("Use a[1].", "1")]


def test_markers_work_in_lists_headings_and_tables() -> None:
    """A table's notes stand before it: inside a cell they could not reach the margin."""
    html = render("- item [1]\n\n## Head [2]\n\n| a |\n|---|\n| cell [3] |")
    assert claims(html) == [("item", "1"), ("Head", "2"), ("cell", "3")]
    assert html.index('class="noted">3<') < html.index("<table>")


def test_emphasis_across_a_sentence_keeps_its_nesting() -> None:
    """Inline tags close before a claim ends and open again after it."""
    html = render("**First part. Second part [1]. Third** part.")
    assert claims(html) == [("Second part.", "1")]
    assert violations(html) == []
    assert LexborHTMLParser(html).css_first(".said strong") is not None
    assert LexborHTMLParser(html).css_first("strong .cite") is None


def test_a_numeral_never_nests_in_a_link() -> None:
    """A marker in a link's text closes the link first."""
    html = render("[read [1] this](https://a.example/)")
    assert LexborHTMLParser(html).css_first("a a") is None
    assert claims(html) == [("read", "1")]


def test_a_sentence_that_no_passage_backs_wears_a_quiet_mark() -> None:
    """Only in answers that cite, and not for headings or scraps."""
    html = render("This one is backed well [1]. This one is not backed at all. Fine.", unbacked="No passage")
    assert html.count('<span class="unbacked" title="No passage">This one is not backed at all.</span>') == 1
    assert "unbacked" not in render("Nothing here is backed by anything.", unbacked="No passage")


def test_a_marker_at_the_very_start_stands_alone() -> None:
    """`[1] says so` has no sentence before it."""
    assert claims(render("[1]. It says so.")) == [("", "1")]


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_answer_with_markers_leaves_only_allowed_html(payload: str) -> None:
    """Before, behind and inside of markers."""
    assert violations(render(f"{payload} [1]. {payload}[2] x [9]", unbacked="No passage")) == []


@given(st.lists(BITS, max_size=40))
def test_any_mix_of_markers_and_markdown_is_allowed_html(bits: list[str]) -> None:
    """And the words of the answer are all still there, in order."""
    text = "".join(bits)
    html = render(text, unbacked="No passage")
    assert violations(html) == []
    assert "\u29d8\ufdd0" not in html


@given(
    st.lists(st.sampled_from(["Alpha beta.", "Gamma [1].", "`code x` delta [2].", "**strong [1] words**."]), max_size=8)
)
def test_the_words_survive(sentences: list[str]) -> None:
    """What is said is what was written, without markup and markers."""
    html = LexborHTMLParser(render(" ".join(sentences)))
    for node in html.css(".note, .cite"):
        node.decompose()
    body = html.body
    shown = (body.text() if body else "").split()
    plain = " ".join(sentences).replace(" [1]", "").replace(" [2]", "").replace("`", "").replace("**", "")
    assert shown == plain.split()


def test_each_mention_of_a_source_opens_at_what_backs_it() -> None:
    """The second sentence that cites a source has an address and an id of its own; the note comes once."""
    later = {1: Source(1, "/d?n=1", "T", "t", "Source 1", later=("/d?n=1&m=2", "/d?n=1&m=3"))}
    text = "One [1]. Two [1][1]. Code `[1]`. Four [7, 1]."
    markers = [Marker(found.start, found.end, found.numbers) for found in find_markers(text)]
    html = answer_html(text, markers, later, key="t1", titles=Titles())
    cites = LexborHTMLParser(html).css("a.cite")
    assert [(cite.attributes["id"], cite.attributes["href"]) for cite in cites] == [
        ("c-t1-1", "/d?n=1"),
        ("c-t1-1-2", "/d?n=1&m=2"),
        ("c-t1-1-4", "/d?n=1"),
    ]
    assert html.count('role="note"') == 1


def test_a_cited_sentence_that_its_passages_do_not_back_is_quietly_marked() -> None:
    """One passage that does is enough; the numerals stay, so that it can be looked up."""
    known = {
        1: Source(1, "/1", "T", "t", "Source 1", unbacked=frozenset({1})),
        2: Source(2, "/2", "T", "t", "Source 2"),
    }
    text = "Bananas are yellow [1]. Packs have sixteen megabytes [1][2]. So it is [1, 2]."
    markers = [Marker(found.start, found.end, found.numbers) for found in find_markers(text)]
    html = answer_html(text, markers, known, key="t1", titles=Titles(unbacked="Unlike"))
    assert html.count("unbacked") == 1
    assert '<span class="said unbacked" title="Unlike">Bananas are yellow.</span><a class="cite"' in html
    assert "unbacked" not in answer_html(text, markers, known, key="t1", titles=Titles())
