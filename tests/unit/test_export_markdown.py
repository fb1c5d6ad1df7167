"""A chat as Markdown: footnotes carry the sources, and nothing that was written changes its meaning."""

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from app.catalog import load_catalog
from app.web.export_markdown import Exchange, as_markdown, backing, file_name

QUOTE = "It starts at 02:00. It keeps seven daily snapshots. More of it."


def row(n: int, **values: object) -> dict[str, object]:
    known: dict[str, object] = {
        "n": n,
        "document_id": 7,
        "chunk_id": 70 + n,
        "path": f"notes/{n}.md",
        "title": f"Note {n}",
    }
    known |= {
        "heading": "",
        "page": None,
        "line_start": 3,
        "line_end": 4,
        "quote": QUOTE,
        "marks": [[3, 18]],
        "cited": True,
    }
    return {**known, **values}


def export(*exchanges: Exchange, title: str = "Backups") -> str:
    return as_markdown(load_catalog(), title, exchanges, "http://nas.lan:8642")


def html(text: str) -> str:
    return cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_FOOTNOTES)


def test_sources_are_footnotes_with_title_place_sentence_and_address() -> None:
    """Numbered through the file, once for each source of each answer."""
    text = export(
        Exchange("t1", "When?", "At two [1]. Seven are kept [2][1].", [row(1), row(2, marks=[[20, 40]], page=7)]),
        Exchange("t2", "And then?", "It ends [2].", [row(1), row(2)]),
    )
    assert text.startswith(
        "# Backups\n\n## When?\n\nAt two [^1]. Seven are kept [^2][^1].\n\n## And then?\n\nIt ends [^3].\n"
    )
    assert (
        "[^1]: **Note 1**, `notes/1.md:3–4`. “It starts at 02:00.” "
        "[Open in Docent](http://nas.lan:8642/documents/7?chunk=71&turn=t1&n=1#passage)\n" in text
    )
    assert "[^2]: **Note 2**, `notes/2.md, p. 7`. “It keeps seven daily snapshots.” [Open" in text
    assert html(text).count('<sup class="footnote-ref"><a') == 4
    assert html(text).count("footnote-backref") >= 3


def test_invented_numbers_and_the_models_own_footnotes_are_no_footnotes() -> None:
    """Only what was given is a source; text in code stays as it was."""
    text = export(Exchange("t1", "Q", "One [1]. Two [9]. Own[^1] note. `a[1] [^1]`\n\n```\nb[1]\n```", [row(1)]))
    assert "One [^1]. Two. Own\\[^1] note. `a[1] [^1]`\n\n```\nb[1]\n```" in text
    assert html(text).count('<sup class="footnote-ref"><a') == 1
    assert "[^2]" not in text


def test_an_answer_that_broke_off_in_code_does_not_swallow_the_rest() -> None:
    """The block is closed, and what is said of the answer follows."""
    text = export(Exchange("t1", "Q", "See:\n\n~~~~sh\nls ```", [], "Stopped."), Exchange("t2", "Next", "Fine.", []))
    assert "~~~~sh\nls ```\n~~~~\n\n*Stopped.*\n\n## Next" in text
    closed = export(Exchange("t1", "Q", "```\na\n```\n\nMore.", []))
    assert closed.endswith("```\na\n```\n\nMore.\n")


HOSTILE = "a *b* [x](y) <script>alert(1)</script> `c` | d\n# e"


def test_titles_paths_and_quotes_are_text() -> None:
    """Nothing of a document becomes markup of the file."""
    hostile = row(1, title=HOSTILE, path=f"x/`{HOSTILE}`.md", quote=HOSTILE, marks=[])
    shown = html(export(Exchange("t1", HOSTILE, "So [1].", [hostile]), title=HOSTILE))
    assert "<script>" not in shown
    assert "<em>b" not in shown
    assert 'href="y"' not in shown
    assert shown.count("<h1") == 1
    assert shown.count("<h2") == 1


def test_a_long_question_stands_whole_under_its_beginning() -> None:
    """The heading is cut at a word."""
    question = "Tell me of the pump. " * 20 + "\n\nAnd of the lamp?"
    text = export(Exchange("t1", question, "Yes.", []), title="")
    assert text.startswith("# Tell me of the pump.")
    assert text.splitlines()[0].endswith(" …")
    assert "\n>\n> And of the lamp?\n" in text


def test_the_sentence_is_taken_from_the_quote() -> None:
    """As far as the quote holds it."""
    assert backing(row(1, marks=[[23, 30]])) == "It keeps seven daily snapshots."
    assert backing(row(1, marks=[])) == QUOTE
    assert backing(row(1, quote="", marks=[])) == ""


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Pruning restic on the NAS", "Pruning restic on the NAS.md"),
        ("../../etc/passwd", "etc passwd.md"),
        ('a"b\r\nSet-Cookie: x', "a b Set-Cookie x.md"),
        ("\u202egnp.exe", "gnp exe.md"),
        ("Übergänge: 設定?", "Übergänge 設定.md"),
        ("???", "chat.md"),
        ("x" * 300, "x" * 80 + ".md"),
    ],
)
def test_a_file_is_named_after_its_chat(title: str, name: str) -> None:
    """Words of any script; nothing that a header or a file system reads as its own."""
    assert file_name(title) == name
