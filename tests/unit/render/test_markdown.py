"""Markdown becomes HTML that looks right and can do nothing."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.render.markdown import markdown_html
from tests.unit.render.allowed import violations

HOSTILE = json.loads((Path(__file__).parents[2] / "fixtures" / "hostile_markdown.json").read_text("utf-8"))
BITS = st.sampled_from(
    ["<", ">", "[", "]", "(", ")", "`", "```\n", "*", "_", "|", "\n", "\n\n", "- ", "> ", "#", "!", "&#", ";", '"', "'",
     "javascript:", "http://a.b", "<script>", "onerror=", "a", "b c", " ", "\\", "\x00", "\ufdd0", "\u29d8", "\ud800"]
)  # fmt: skip


def test_there_are_more_than_a_hundred_hostile_payloads() -> None:
    """The corpus is what the tests below stand on."""
    assert len(set(HOSTILE)) > 100


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_payload_leaves_only_allowed_html(payload: str) -> None:
    """No tag, attribute, class or address outside the list, judged by another parser."""
    assert violations(markdown_html(payload)) == []


@given(st.lists(BITS, max_size=40).map("".join))
def test_no_text_yields_anything_outside_the_list(text: str) -> None:
    """Whatever is written, only allowed HTML comes out."""
    assert violations(markdown_html(text)) == []


@given(st.text(max_size=200))
def test_arbitrary_unicode_is_safe(text: str) -> None:
    """Any characters at all, lone surrogates included."""
    assert violations(markdown_html(text)) == []


def test_words_that_look_like_tags_are_kept_as_text() -> None:
    """`user@<host>` loses nothing, in prose and in code."""
    html = markdown_html("Run `ssh <user>` on user@<host> now.")
    assert "user@&lt;host&gt; now." in html
    assert "<span>&lt;user&gt;</span>" in html


def test_a_link_whose_text_hides_its_host_says_it() -> None:
    """The reader sees where a click leads before it happens."""
    html = markdown_html("[click](https://evil.example/x) [evil.example](https://evil.example/)")
    assert html.count('<span class="host">(evil.example)</span>') == 1
    assert 'rel="noopener noreferrer nofollow"' in html


def test_a_link_to_nowhere_allowed_keeps_its_text() -> None:
    """The words stay, the address goes."""
    assert markdown_html("[read me](javascript:x)") == "<p>read me</p>\n"


def test_an_image_leaves_its_description() -> None:
    """Nothing is loaded, nothing is lost."""
    assert markdown_html("![a diagram](http://a.b/c.png)") == "<p>a diagram</p>\n"


def test_inline_code_breaks_at_blanks_only() -> None:
    """Each word stands in a span that does not wrap."""
    assert "<code><span>restic</span> <span>--keep-daily</span></code>" in markdown_html("`restic --keep-daily`")


def test_headings_go_below_the_question() -> None:
    """The page's own headings are h1 and h2."""
    assert markdown_html("# A\n\n### B") == "<h3>A</h3>\n<h5>B</h5>\n".replace("h5", "h4")


def test_tables_and_code_can_be_scrolled_by_keyboard() -> None:
    """Wide content scrolls in its own box, which takes the focus."""
    html = markdown_html("| a |\n|---|\n| b |\n\n```sh\nx < y\n```")
    assert '<div class="table-scroll" tabindex="0"><table>' in html
    assert '<div class="code"><pre tabindex="0"><code>x &lt; y\n</code></pre></div>' in html


@pytest.mark.parametrize(
    "text",
    [
        ">" * 100_000,
        "> " * 50_000,
        "[" * 50_000,
        "[a](" * 20_000,
        "**a " * 30_000,
        "*a_ " * 20_000,
        "<" * 50_000,
        "|".join("x" * 2000) + "\n" + "|".join("-" * 2000) + "\n" + "a\n" * 300,
        "\n".join(" " * i + "- x" for i in range(1000)),
    ],
    ids=["quotes", "spaced quotes", "brackets", "links", "strong", "emphasis", "tags", "wide table", "deep list"],
)
@pytest.mark.timeout(30)
def test_text_made_to_be_slow_is_not(text: str) -> None:
    """Time stays in proportion to length: quadratic work on these takes minutes and trips the time limit."""
    assert markdown_html(text)
