"""Presentations: a slide is a page, and everything a viewer or the speaker can read on it is there."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from app.ingest.chunking import chunk
from tests.unit.ingest.files import read, reason_of
from tests.unit.ingest.office import DRAWING, SLIDE, deck, shape, slide


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.pptx"


def test_slides_are_pages_under_their_titles(path: Path) -> None:
    """Bullets nest as they do on the slide; what the layout repeats is left out; no passage holds two slides."""
    first = shape("Moving", "ctrTitle") + shape("A talk", "subTitle") + shape("3 May", "dt") + shape("7", "sldNum")
    second = shape("one\n  below\ntwo") + shape("Steps", "title") + shape("free words", None)

    extraction = read(deck(path, first, second), "renamed.bin")

    assert extraction.text == "# Moving\n\nA talk\n\n# Steps\n\n- one\n  - below\n- two\n\nfree words"
    assert (extraction.title, extraction.pages) == ("Moving", 2)
    assert extraction.text_yield == (11, 28)
    assert [block.page for block in extraction.blocks] == [1, 1, 2, 2, 2]
    assert [(draft.page, draft.heading) for draft in chunk(extraction)] == [(1, "Moving"), (2, "Steps")]
    assert extraction.mime == "application/vnd.openxmlformats-officedocument.presentationml.presentation"


def test_tables_notes_and_diagrams_are_read(path: Path) -> None:
    """The notes are told apart from the slide; a diagram's words lie in a part of their own."""
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    lines = [("Service", "MB"), ("wiki", "190")]
    cells = "".join("<a:tr>" + "".join(cell.format(text) for text in line) + "</a:tr>" for line in lines)
    graph = f"<p:graphicFrame><a:graphic><a:tbl>{cells}</a:tbl></a:graphic></p:graphicFrame>"
    diagram = '<p:graphicFrame><d:relIds xmlns:d="urn:d" r:dm="r2"/></p:graphicFrame>'
    points = f"<d:data xmlns:d='urn:d' {DRAWING}>{'<d:pt><a:p><a:r><a:t>Plan</a:t></a:r></a:p></d:pt>' * 2}</d:data>"
    said = shape("say it slowly") + shape("1", "sldNum")
    notes = f"<p:notes {SLIDE}><p:cSld><p:spTree>{said}</p:spTree></p:cSld></p:notes>"
    related = {1: {"r1": "notesSlide ../notesSlides/n1.xml", "r2": "diagramData ../diagrams/d1.xml"}}

    made = deck(path, graph + diagram, related=related, ppt__notesSlides__n1=notes, ppt__diagrams__d1=points)

    assert read(made).text == (
        "# Slide 1\n\n| Service | MB |\n| --- | --- |\n| wiki | 190 |\n\n- Plan\n- Plan\n\nNotes: say it slowly"
    )
    assert read(made).title == ""


def series(name: str, *values: str, code: str = "General", across: Sequence[str] = ()) -> str:
    points = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values) if value)
    names = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(across))
    return (
        f'<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx>'
        f"<c:cat><c:strRef><c:strCache>{names}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache><c:formatCode>{code}</c:formatCode>{points}</c:numCache></c:numRef></c:val></c:ser>"
    )


def charted(path: Path, inside: str) -> str:
    mark = '<p:graphicFrame><c:chart xmlns:c="urn:c" r:id="r1"/></p:graphicFrame>'
    part = f"<c:chartSpace xmlns:c='urn:c' {DRAWING}><c:chart>{inside}</c:chart></c:chartSpace>"
    related = {1: {"r1": "chart ../charts/c1.xml"}}
    return read(deck(path, shape("T", "title") + mark, related=related, ppt__charts__c1=part)).text


def test_a_chart_is_read_as_its_title_and_its_numbers(path: Path) -> None:
    """A column for each series, as the numbers are shown; what a series leaves out is empty."""
    words = "<a:p><a:r><a:t>Power</a:t></a:r><a:r><a:t> used</a:t></a:r></a:p>"
    title = f"<c:title><c:tx><c:rich>{words}</c:rich></c:tx></c:title>"
    bars = series("2025", "0.25", "0.5", code="0%", across=("May", "June")) + series("2026", "", "12", across=("May",))

    assert charted(path, f"{title}<c:plotArea><c:barChart>{bars}</c:barChart></c:plotArea>") == (
        "# T\n\nPower used\n\n|  | 2025 | 2026 |\n| --- | --- | --- |\n| May | 25% |  |\n| June | 50% | 12 |"
    )


@pytest.mark.parametrize("value", ["1e999", "NaN", "-INF", "x"])
def test_a_number_that_is_none_is_shown_as_it_is_kept(path: Path, value: str) -> None:
    """It costs the others nothing."""
    text = charted(path, series("a", "1", value, across=("p", "q")) + "<c:ser/>")

    assert text.endswith(f"| p | 1 |\n| q | {value} |")


def test_groups_and_alternatives_are_read_once(path: Path) -> None:
    """A group's shapes in place; of two versions of a shape the one that new programs show."""
    group = f"<p:grpSp><p:grpSp>{shape('deep', None)}</p:grpSp>{shape('flat', None)}</p:grpSp>"
    versions = (
        '<m:AlternateContent xmlns:m="urn:m">'
        f"<m:Choice>{shape('new', None)}</m:Choice><m:Fallback>{shape('old', None)}</m:Fallback></m:AlternateContent>"
    )

    assert read(deck(path, shape("T", "title") + group + versions)).text == "# T\n\ndeep\n\nflat\n\nnew"


def test_bullets_follow_the_paragraph_before_the_place(path: Path) -> None:
    """A text box may have them, a list's paragraph may not; a break within a paragraph stays one."""
    box = (
        "<p:sp><p:txBody><a:p><a:pPr><a:buChar/></a:pPr><a:r><a:t>dot</a:t></a:r></a:p>"
        "<a:p><a:r><a:t>plain</a:t></a:r><a:br/><a:fld><a:t>next</a:t></a:fld></a:p><a:p/></p:txBody></p:sp>"
    )
    listed = (
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="body"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>a</a:t></a:r></a:p>'
        "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>b</a:t></a:r></a:p></p:txBody></p:sp>"
    )

    assert read(deck(path, box + listed)).text == "# Slide 1\n\n- dot\n\nplain\nnext\n\n- a\n\nb"


def test_hidden_slides_are_marked_and_textless_ones_counted(path: Path) -> None:
    """A slide of pictures only is a page without characters, which the library shows."""
    hidden = slide(shape("Spare", "title"), 'show="0"')

    extraction = read(deck(path, "", shape("x"), "", ppt__slides__slide3=hidden))

    assert extraction.text == "# Slide 2\n\n- x\n\n# Spare (hidden slide)"
    assert extraction.text_yield == (0, 2, 18)
    assert reason_of(deck(path, "", "")) == "no_text"
    assert reason_of(deck(path)) == "no_text"


def test_absurd_and_broken_presentations_are_refused(path: Path) -> None:
    """Too many slides, entities, a slide cut off."""
    laughs = f'<!DOCTYPE x [<!ENTITY a "ha">]><p:sld {SLIDE}>&a;</p:sld>'
    many = '<p:sldId id="256" r:id="s1"/>' * 5_001

    main = f"<p:presentation {SLIDE}><p:sldIdLst>{many}</p:sldIdLst></p:presentation>"
    assert reason_of(deck(path, shape("x"), ppt__presentation=main)) == "too_long"
    assert reason_of(deck(path, "", ppt__slides__slide1=laughs)) == "corrupt"
    assert reason_of(deck(path, "<p:sp>")) == "corrupt"
    assert reason_of(deck(path, "x", related={1: {"r1": "notesSlide missing.xml"}})) == "no_text"
