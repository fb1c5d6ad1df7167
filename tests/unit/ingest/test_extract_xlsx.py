"""Workbooks: rows under their headers, cells as they are shown, nothing left out in silence."""

from pathlib import Path

import pytest

from app.ingest.chunking import chunk
from app.ingest.extract import tables
from app.ingest.extract.cell_format import shown
from tests.unit.ingest.files import read, reason_of
from tests.unit.ingest.office import SHEET, relations, rows, workbook


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.xlsx"


def test_each_sheet_stands_under_its_name(path: Path) -> None:
    """In the order of the tabs; the type is found by content, and an empty sheet is not named."""
    made = workbook(path, rows("Device|Watt", "NAS|41"), rows(), rows("Note|Day", "full|2"))

    extraction = read(made, "renamed.txt")

    assert extraction.text == (
        "# S1\n\n| Device | Watt |\n| --- | --- |\n| NAS | 41 |\n\n# S3\n\n| Note | Day |\n| --- | --- |\n| full | 2 |"
    )
    assert extraction.mime == "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert [draft.heading for draft in chunk(extraction)] == ["S1", "S3"]


def test_hidden_sheets_are_read_and_marked(path: Path) -> None:
    """Whoever may read the file can show them."""
    made = workbook(path, rows("A b|C d", "x|1"), rows("key"), states={1: "hidden", 2: "veryHidden"})

    assert [b.label for b in read(made).blocks if b.kind == "heading"] == ["S1 (hidden sheet)", "S2 (hidden sheet)"]


def test_lines_above_a_table_are_paragraphs_and_a_gap_ends_it(path: Path) -> None:
    """A second table has its own header; a row that only stands apart stays with the first."""
    made = workbook(
        path, rows("Inventory", "Device|Watt", "NAS|41", "", "Total|41", "", "Plug|Room|Watt", "p1|attic|3")
    )

    assert read(made).text.split("\n\n")[1:] == [
        "Inventory",
        "| Device | Watt |\n| --- | --- |\n| NAS | 41 |\n| Total | 41 |",
        "| Plug | Room | Watt |\n| --- | --- | --- |\n| p1 | attic | 3 |",
    ]


def test_columns_without_names_are_called_by_their_letters(path: Path) -> None:
    """A first row of values is no header; a lone row is a line, a lone column a list."""
    made = workbook(path, rows("1|2", "3|4"), rows("a|b"), rows("x", "y"))

    assert read(made).text == (
        "# S1\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n\n# S2\n\na · b\n\n# S3\n\n- x\n- y"
    )
    assert [tables.column_name(column) for column in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]


def test_every_part_of_a_long_table_has_the_header(path: Path) -> None:
    """A passage of row 900 says what its columns are; each part is one passage."""
    made = workbook(path, rows("Serial|Place", *(f"SN-{n:05}|shelf number {n}" for n in range(1000))))

    chunks = chunk(read(made))

    assert len(chunks) > 20
    assert all("| Serial | Place |\n| --- | --- |\n| SN-" in draft.text for draft in chunks)
    assert sum(draft.text.count("SN-") for draft in chunks) == 1000


def test_rows_too_wide_for_a_grid_are_written_one_by_one(path: Path) -> None:
    """Each value beside the name of its column; the same where a grid would be mostly empty."""
    names = "|".join(f"Property number {n} of the device" for n in range(26))
    made = workbook(path, rows(names, "|".join(f"value {n} of it and some more words" for n in range(26))))
    corner = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c><c r="XF{n}"><v>2</v></c></row>' for n in (1, 2))
    far = "".join(
        f'<row r="{n}"><c r="A{n}"><v>0</v></c><c r="{tables.column_name(3 * n)}{n}"><v>{n}</v></c></row>'
        for n in range(1, 200)
    )

    assert "\n- Property number 3 of the device: value 3 of it and some more words\n" in read(made).text
    assert read(workbook(path, f"<sheetData>{corner}</sheetData>")).text.endswith("| 1 | 2 |\n| 1 | 2 |")
    assert read(workbook(path, f"<sheetData>{far}</sheetData>")).text.endswith("- A: 0\n- VZ: 199")


def test_merged_cells_are_said_in_every_row_they_cover(path: Path) -> None:
    """A room named once beside three devices belongs to each; cells merged sideways are not repeated."""
    merges = '<mergeCells><mergeCell ref="A2:A3"/><mergeCell ref="B4:C4"/></mergeCells>'
    made = workbook(path, rows("Room|Device|Watt", "attic|printer|6", "|camera|4", "all|off|") + merges)

    assert read(made).text.endswith("| attic | printer | 6 |\n| attic | camera | 4 |\n| all | off |  |")


def test_cells_are_what_they_show(path: Path) -> None:
    """Shared and rich strings, switches, errors, formulas with their value or, without one, themselves."""
    cells = (
        '<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="b"><v>1</v></c>'
        '<c r="D1" t="e"><v>#N/A</v></c><c r="E1"><f>1+1</f><v>2</v></c><c r="F1"><f>A1*2</f></c>'
        '<c r="G1" t="str"><f>x</f><v>a  b</v></c><c r="H1" s="1"><v>45000.5</v></c><c r="I1" t="s"><v>9</v></c>'
        '<c t="inlineStr"><is><r><t>r</t></r><r><t>ich</t></r></is></c>'
    )
    strings = "<si><t>one</t></si><si><r><t>two</t></r><rPh><t>no</t></rPh><r><t> parts</t></r></si>"
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="dd\\.mm\\.yyyy\\ hh:mm"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>'
    )
    made = workbook(path, f'<sheetData><row r="1">{cells}</row></sheetData>', strings=strings, styles=styles)

    assert read(made).text.partition("\n\n")[2] == (
        "one · two parts · TRUE · #N/A · 2 · =A1*2 · a b · 2023-03-15 12:00 · rich"
    )


def test_notes_on_cells_are_read_with_their_place(path: Path) -> None:
    """Behind the sheet's table."""
    link = {"xl/worksheets/_rels/sheet1.xml.rels": relations(r1="comments ../comments1.xml")}
    note = '<comments><comment ref="B2"><text><r><t>ask Mara</t></r></text></comment></comments>'
    made = workbook(path, rows("A b|C d", "x|1"), parts={**link, "xl/comments1.xml": note})

    assert read(made).text.endswith("| x | 1 |\n\nNotes on cells:\n\n- B2: ask Mara")


def test_the_title_is_that_of_the_properties(path: Path) -> None:
    """A workbook without one has none: the file's name is shown then."""
    core = {"_rels/.rels": relations(r1="officeDocument xl/workbook.xml", r2="core-properties docProps/core.xml")}
    properties = "<p xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title> Power\nplan </dc:title></p>"
    made = workbook(path, rows("x"), parts={"docProps/core.xml": properties} | core)

    assert read(made).title == "Power plan"
    assert read(workbook(path, rows("x"))).title == ""


def test_a_sheet_that_is_too_long_says_what_was_left_out(path: Path) -> None:
    """The first hundred thousand rows are there, and a line says that there were more."""
    lines = "".join(f"<row><c><v>{n}</v></c><c><v>{n * 7919 % 10007}</v></c></row>" for n in range(tables.MAX_ROWS + 5))

    extraction = read(workbook(path, f"<sheetData>{lines}</sheetData>"))

    assert extraction.cut
    assert extraction.text.endswith(f"| {tables.MAX_ROWS - 1} | {(tables.MAX_ROWS - 1) * 7919 % 10007} |\n\n"
                                    "The rest of this sheet was not read: it is too long.")  # fmt: skip


def test_broken_workbooks_are_corrupt_and_empty_ones_have_no_text(path: Path) -> None:
    """Bad XML, a bad place, no workbook where the relations say; a sheet of nothing but style."""
    assert reason_of(workbook(path, "<sheetData><row>")) == "corrupt"
    assert reason_of(workbook(path, '<sheetData><row r="1"><c r="??"><v>1</v></c></row></sheetData>')) == "corrupt"
    assert (
        reason_of(workbook(path, rows("x"), parts={"_rels/.rels": relations(r="officeDocument no.xml")})) == "corrupt"
    )
    assert reason_of(workbook(path, '<sheetData><row r="1"><c r="A1" s="3"/></row></sheetData>')) == "no_text"
    assert reason_of(workbook(path)) == "no_text"


@pytest.mark.parametrize(
    "part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml", "xl/workbook.xml"]
)
def test_a_workbook_that_declares_entities_is_refused(path: Path, part: str) -> None:
    """In any part."""
    laughs = f'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><worksheet {SHEET}>&b;</worksheet>'

    assert reason_of(workbook(path, rows("x"), parts={part: laughs})) == "corrupt"


@pytest.mark.parametrize(
    ("raw", "code", "text"),
    [
        ("289.9", "General", "289.9"),
        ("0.1", "General", "0.1"),
        ("0.30000000000000004", "General", "0.3"),
        ("12345678901234567", "General", "12345678901234567"),
        ("1E3", "General", "1000"),
        ("-7", "General", "-7"),
        ("no number", "0.00", "no number"),
        ("289.9", "0.00", "289.90"),
        ("1234.5", '#,##0.00\\ "€"', "1234.50 €"),
        ("-1234.5", "[$$-409]#,##0.00;[Red]-[$$-409]#,##0.00", "-$1234.50"),
        ("-0.001", "0.0", "0.0"),
        ("0.155", "0.0%", "15.5%"),
        ("2.5", "0.##", "2.5"),
        ("4711", "00000", "04711"),
        ("12500000", '0.0,,"M"', "12.5M"),
        ("0.25", "# ?/?", "0.25"),
        ("12345", "0.00E+00", "12345"),
        ("45000", "yyyy-mm-dd", "2023-03-15"),
        ("45000.75", "d/m/yy h:mm AM/PM", "2023-03-15 18:00"),
        ("0.5", "hh:mm:ss", "12:00:00"),
        ("1.5", "[h]:mm", "36:00"),
        ("-0.5", "[h]:mm:ss", "-12:00:00"),
        ("1", "d mmm yyyy", "1900-01-01"),
        ("61", "d mmm yyyy", "1900-03-01"),
        ("99999999", "yyyy-mm-dd", "99999999"),
        ("3", '"Day; "0', "Day; 3"),
        ("1e999", "General", "1e999"),
        ("-INF", "0.00", "-INF"),
        ("NaN", "0%", "NaN"),
        ("nan", "yyyy-mm-dd", "nan"),
    ],
)
def test_numbers_are_written_as_a_reader_sees_them(raw: str, code: str, text: str) -> None:
    """Decimals, units, percent, dates and durations by the cell's format; thousands are never grouped."""
    assert shown(raw, code) == text


def test_workbooks_that_count_from_1904_are_dated_right(path: Path) -> None:
    """Old ones from Apple computers; the format is one that a workbook names by its number alone."""
    styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    sheet = '<sheetData><row r="1"><c r="A1" s="0"><v>0</v></c></row></sheetData>'

    assert read(workbook(path, sheet, styles=styles, book='<workbookPr date1904="1"/>')).text.endswith("1904-01-01")
