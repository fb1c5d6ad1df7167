"""Made answers with right, wrong, invented and missing markers: what is shown is valid, and what is right is found.

The bound is the project's promise: no invalid marker shown, 95 % of right ones at the right sentence.
"""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from app.catalog import load_catalog
from app.edge.answers import answer_of_message
from app.ingest.chunking import chunk
from app.rag.citations import check, source_rows
from app.rag.markers import with_numbers
from app.rag.pieces import Passage
from app.render.highlight import reader_html
from tests.citing import Generated, answers, passage
from tests.unit.ingest.files import read
from tests.unit.rag.citing_texts import TEXTS

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "homelab"
LEAST_RIGHT = 0.95
COUNT = 210


def own_passages() -> list[Passage]:
    return [passage(number, text, 100 * number) for number, text in enumerate(TEXTS, 1)]


def corpus_passages(files: int = 40) -> list[Passage]:
    """Passages of real documentation, as chunking cuts them."""
    paths = sorted(path for path in CORPUS.rglob("*") if path.is_file())
    found: list[Passage] = []
    for path in random.Random(8).sample(paths, files):
        extraction = read(path)
        found += [
            passage(len(found) + index, draft.text, draft.char_start)
            for index, draft in enumerate(chunk(extraction)[:6], 1)
        ]
    return found


class Tally:
    """What the check made of answers: right and wrong markers, and the sentences found for them."""

    def __init__(self, made: list[Generated]) -> None:
        self.right = self.found = self.wrong = self.backed = 0
        for generated in made:
            checked = check(generated.answer, generated.passages)
            rows = source_rows(generated.passages, checked)
            assert checked.dropped == sum(said.kind == "invented" for said in generated.statements)
            assert_nothing_invalid(generated, rows)
            self._count(generated, rows)

    def _count(self, generated: Generated, rows: list[dict[str, Any]]) -> None:
        mentions: dict[int, int] = {}
        for said in generated.statements:
            if said.kind in ("invented", "missing"):
                continue
            nth = mentions[said.cited] = mentions.get(said.cited, 0) + 1
            support = rows[said.cited - 1]["supports"][nth - 1]
            if said.kind == "right":
                self.right += 1
                self.found += support == list(said.span)
            else:
                self.wrong += 1
                self.backed += support is not None


def assert_nothing_invalid(generated: Generated, rows: list[dict[str, Any]]) -> None:
    """Neither on the page nor in a copy is there a number that was not given."""
    given = {one.n for one in generated.passages}
    tree = LexborHTMLParser(str(answer_of_message(load_catalog(), generated.answer, rows, "t1")))
    shown = [int(cite.attributes["data-n"] or 0) for cite in tree.css("a.cite")]
    assert shown == [said.cited for said in generated.statements if said.kind in ("right", "wrong")]
    for note in tree.css(".note"):
        note.decompose()
    assert not re.search(r"\[\d+\]", tree.text())
    assert {int(n) for n in re.findall(r"\[(\d+)\]", with_numbers(generated.answer, given))} <= given


def test_answers_over_own_texts_show_what_is_right_and_nothing_invalid() -> None:
    """Plans, manuals and lists, in sentences turned about as models do; a wrong marker seldom has a support."""
    made = answers(own_passages(), COUNT, seed=11)
    assert {said.kind for generated in made for said in generated.statements} == {
        "right",
        "wrong",
        "invented",
        "missing",
    }
    tally = Tally(made)
    assert tally.right > COUNT
    assert tally.found >= LEAST_RIGHT * tally.right, vars(tally)
    assert tally.wrong > 50
    assert tally.backed <= 0.2 * tally.wrong, vars(tally)


def test_answers_over_real_documentation_do_as_well() -> None:
    """Forty documents of the shared corpus."""
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus does not lie beside this project")
    tally = Tally(answers(corpus_passages(), COUNT, seed=12))
    assert tally.right > COUNT
    assert tally.found >= LEAST_RIGHT * tally.right, vars(tally)
    assert tally.backed <= 0.2 * tally.wrong, vars(tally)


def test_the_reader_marks_the_sentence_of_every_right_marker() -> None:
    """From the stored offsets to the mark on the page: the same words."""
    for generated in answers(own_passages(), 60, seed=14):
        for said in generated.right:
            source = generated.passages[said.n - 1]
            text = " " * source.char_start + source.text
            html = str(
                reader_html(text, "text/markdown", passage=(source.char_start, source.char_end), support=[said.span])
            )
            marked = " ".join(part.text() for part in LexborHTMLParser(html).css("mark"))
            assert "".join(marked.split()) == "".join(text[slice(*said.span)].split())
