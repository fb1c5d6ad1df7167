"""Chunking: sizes, boundaries, offsets, headings."""

import hashlib
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ingest.blocks import Extraction, heading_labels, heading_path
from app.ingest.chunking import (
    MAX_TOKENS,
    MIN_TOKENS,
    TARGET_TOKENS,
    ChunkDraft,
    chunk,
    embedded_sha256,
    embedded_text,
)
from app.ingest.cutting import count_tokens
from app.ingest.extract.markdown import extract_markdown
from app.ingest.extract.plain import extract_plain
from app.ingest.extract.rst import extract_rst

SENTENCE = "The backup of the second pool runs every night at ten past two and takes an hour. "


def markdown(text: str) -> Extraction:
    return extract_markdown(text, "utf-8")


def check_cover(extraction: Extraction, chunks: list[ChunkDraft]) -> None:
    """Offsets exact, order kept, every character that is not white space in some chunk, sizes and lines right."""
    text, covered = extraction.text, 0
    for ordinal, draft in enumerate(chunks):
        assert draft.ordinal == ordinal
        assert draft.text == text[draft.char_start : draft.char_end]
        assert draft.text == draft.text.rstrip()
        assert draft.text.strip()
        assert count_tokens(draft.text) <= MAX_TOKENS
        assert draft.char_start >= covered
        assert not text[covered : draft.char_start].strip()
        covered = draft.char_end
        assert draft.line_start == 1 + text.count("\n", 0, draft.char_start)
        assert draft.line_end == 1 + text.count("\n", 0, draft.char_end)
        assert draft.sha256 == embedded_sha256(extraction.title, draft.heading, draft.text)
    assert not text[covered:].strip()


def check_headings(extraction: Extraction, chunks: list[ChunkDraft]) -> None:
    """No chunk crosses a heading of the same or a higher level than the first it stands under."""
    headings = [block for block in extraction.blocks if block.kind == "heading"]
    for draft in chunks:
        inside = [h.level for h in headings if draft.char_start < h.char_start < draft.char_end]
        before = [h.level for h in headings if h.char_start <= draft.char_start]
        levels = [*before[-1:], *inside]
        assert all(level > levels[0] for level in levels[1:])


SYNTAX = """\
# One
## Two
### Three
#### Four
```
~~~sh
- item
  - deeper
1. first
---
| a | b |
| - | - |
    indented
Setext
===
<!-- note
-->
:::note
+++
> quoted
import X from 'y'
{{< tab >}}
.. note:: text
   :opt: v
::
.. code-block:: sh
+---+
* x

"""
LINES = st.one_of(
    st.sampled_from(SYNTAX.split("\n")),
    st.text(alphabet="ab .!?\t|`é漢。", max_size=60),
    st.integers(1, 40).map(lambda n: SENTENCE * n),
    st.integers(1, 3000).map(lambda n: "x" * n),
    st.integers(1, 900).map(lambda n: "漢字" * n),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES, max_size=60), st.sampled_from(["md", "rst", "txt", "py"]))
def test_any_text_is_cut_into_exact_covering_bounded_chunks(lines: list[str], kind: str) -> None:
    """Whatever a file holds, its chunks are exact slices that cover it, bounded in size, in order, the same twice."""
    text = "\n".join(lines)
    if kind == "md":
        extraction = markdown(text)
    elif kind == "rst":
        extraction = extract_rst(text, "utf-8")
    else:
        extraction = extract_plain(text, "utf-8", f"x.{kind}")

    chunks = chunk(extraction)

    check_cover(extraction, chunks)
    check_headings(extraction, chunks)
    assert chunk(extraction) == chunks
    assert extraction.text.count("\n") == text.count("\n")
    for one, other in pairwise(extraction.blocks):
        assert one.char_end <= other.char_start


def test_a_section_that_fits_is_one_chunk() -> None:
    """What stands under one heading stays together up to about the target."""
    chunks = chunk(markdown("# Backups\n\n" + SENTENCE * 8 + "\n\n" + SENTENCE * 7))

    assert len(chunks) == 1
    assert chunks[0].heading == "Backups"


def test_a_small_section_takes_in_the_smaller_ones_below_it() -> None:
    """A heading with a line under it is no passage of its own if a deeper section follows."""
    chunks = chunk(markdown("# Manual\n\n## Disks\n\nSix drives.\n\n### Bays\n\n" + SENTENCE * 5))

    assert [draft.heading for draft in chunks] == ["Manual › Disks"]
    assert chunks[0].text.startswith("# Manual")


def test_a_small_section_does_not_take_in_its_neighbour() -> None:
    """Two short answers under headings of one level stay two passages."""
    chunks = chunk(markdown("## How much?\n\nFive.\n\n## When?\n\nAt noon.\n"))

    assert [(draft.heading, draft.line_start, draft.line_end) for draft in chunks] == [
        ("How much?", 1, 3),
        ("When?", 5, 7),
    ]


def test_text_before_the_first_heading_joins_it() -> None:
    """Front matter is filed under the first heading, and does not swallow the second one of that level."""
    extraction = markdown("---\ntitle: Words\n---\n\n## Alert\n\nIt rings.\n\n## Box\n\nIt is square.\n")

    chunks = chunk(extraction)

    assert extraction.title == "Words"
    assert [draft.heading for draft in chunks] == ["Alert", "Box"]


def test_a_chunk_over_two_subsections_is_filed_under_what_they_share() -> None:
    """A heading path names all of a passage, or it names less."""
    chunks = chunk(markdown("# A\n\n## B\n\nOne.\n\n### C\n\nTwo.\n\n### D\n\nThree.\n"))

    assert [draft.heading for draft in chunks] == ["A › B"]


def test_a_long_section_is_cut_into_even_parts_near_the_target() -> None:
    """No crumb is left at the end of a long section."""
    text = "# Long\n\n" + "\n\n".join(SENTENCE * 3 for _ in range(24))

    sizes = [count_tokens(draft.text) for draft in chunk(markdown(text))]

    assert len(sizes) > 3
    assert min(sizes) > TARGET_TOKENS * 0.6
    assert max(sizes) < TARGET_TOKENS * 1.5


def test_a_table_and_a_code_block_that_fit_are_never_cut() -> None:
    """Half a table or half a command is worth little."""
    table = "| name | value |\n| --- | --- |\n" + "\n".join(f"| key-{n} | value {n} |" for n in range(35))
    code = "```sh\n" + "\n".join(f"borg create repo-{n}" for n in range(60)) + "\n```"
    text = f"# T\n\n{SENTENCE * 12}\n\n{table}\n\n{SENTENCE * 12}\n\n{code}\n"

    chunks = chunk(markdown(text))

    assert any(table in draft.text for draft in chunks)
    assert any(code in draft.text for draft in chunks)


def test_a_table_too_long_for_one_chunk_is_cut_between_rows() -> None:
    """Every row stays whole."""
    rows = [f"| key-{n} | the value of setting number {n} |" for n in range(300)]
    extraction = markdown("| name | value |\n| --- | --- |\n" + "\n".join(rows))

    chunks = chunk(extraction)

    check_cover(extraction, chunks)
    assert len(chunks) > 5
    assert all(line.startswith("| ") and line.endswith(" |") for draft in chunks for line in draft.text.split("\n"))


def test_a_long_paragraph_is_cut_at_sentences() -> None:
    """Every sentence stands whole in one passage, and no text in two."""
    sentences = [f"Step {n} of the long recovery is done by hand and takes a while." for n in range(120)]
    extraction = markdown(" ".join(sentences))

    chunks = chunk(extraction)

    check_cover(extraction, chunks)
    assert len(chunks) > 3
    assert " ".join(draft.text for draft in chunks) == extraction.text
    for draft in chunks:
        assert draft.text.startswith("Step")
        assert draft.text.endswith("a while.")


def test_a_text_without_blank_lines_is_cut_where_its_lines_end() -> None:
    """There every line is a paragraph; a title among them, which ends no sentence, stays with what follows it."""
    lines = [f"{SENTENCE * (3 + n % 5)}".strip() for n in range(40)]
    lines[12:12] = [" = = Restoring a pool = ="]
    extraction = extract_plain("\n".join(lines), "utf-8", "notes.txt")

    chunks = chunk(extraction)

    check_cover(extraction, chunks)
    assert len(chunks) > 5
    assert "\n".join(draft.text for draft in chunks) == extraction.text
    assert not any(draft.text.endswith("= =") for draft in chunks)


def test_lines_that_were_wrapped_do_not_end_a_passage() -> None:
    """Half a sentence at the end of a line is none."""
    words = " ".join(f"{SENTENCE}Then comes {n}." for n in range(100)).split()
    extraction = extract_plain("\n".join(" ".join(words[n : n + 9]) for n in range(0, len(words), 9)), "utf-8", "a.txt")

    chunks = chunk(extraction)

    check_cover(extraction, chunks)
    assert len(chunks) > 4
    assert all(draft.text.endswith(".") for draft in chunks)


def test_code_is_cut_at_blank_lines_before_other_lines() -> None:
    """A long listing is parted where its author parted it."""
    functions = [f"def f{n}():\n" + "\n".join(f"    call_{n}({i})" for i in range(12)) for n in range(30)]
    extraction = markdown("```python\n" + "\n\n".join(functions) + "\n```")

    chunks = chunk(extraction)

    check_cover(extraction, chunks)
    assert all(draft.text.startswith("def ") for draft in chunks[1:])


@pytest.mark.parametrize("unit", ["x", "漢", "0", "-", "é"])
def test_a_line_without_a_place_to_cut_is_cut_all_the_same(unit: str) -> None:
    """A key of 20,000 characters neither breaks the limit nor loses a character."""
    extraction = markdown(unit * 20_000 if unit != "-" else "a" + unit * 20_000)

    check_cover(extraction, chunk(extraction))


def test_a_heading_longer_than_a_chunk_is_cut() -> None:
    """A file whose only line begins with a hash is still read."""
    extraction = markdown("# " + "word " * 3_000 + "\n\nText.")

    check_cover(extraction, chunk(extraction))


def test_heading_paths_follow_levels() -> None:
    """A heading closes those of its level and below."""
    blocks = markdown("# A\n\n### B\n\ntext\n\n## C\n\ntext\n").blocks

    assert [heading_path(path) for path in heading_labels(blocks)] == ["A", "A › B", "A › B", "A › C", "A › C"]


def test_the_embedded_text_says_the_title_once() -> None:
    """Title, heading path and text, a line each; a path that begins with the title carries it."""
    assert embedded_text("Manual", "Disks", "Six.") == "Manual\nDisks\nSix."
    assert embedded_text("Manual", "Manual › Disks", "Six.") == "Manual › Disks\nSix."
    assert embedded_text("Manual", "Manual", "Six.") == "Manual\nSix."
    assert embedded_text("", "", "Six.") == "Six."
    assert embedded_sha256("", "", "Six.") == hashlib.sha256(b"Six.").hexdigest()


def test_an_empty_document_has_no_chunks() -> None:
    """Nothing in, nothing out."""
    assert chunk(markdown(" \n\n")) == []


def test_token_estimates_grow_with_text_and_never_shrink_when_parted() -> None:
    """A bound on the whole is a bound on what its parts sum to."""
    text = "Wärmepumpe 12345 --log.level=debug 漢字 " * 4_000

    assert count_tokens(text) <= count_tokens(text[:70_001]) + count_tokens(text[70_001:])
    assert count_tokens(text) > len(text) / 6
    assert MIN_TOKENS < TARGET_TOKENS < MAX_TOKENS
