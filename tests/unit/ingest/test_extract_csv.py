"""Tables of separated values: their delimiter and header found, their values untouched."""

from pathlib import Path

import pytest

from app.ingest.chunking import chunk
from app.ingest.extract.tables import MAX_ROWS
from tests.unit.ingest.files import put, read


def text_of(folder: Path, text: str, name: str = "a.csv") -> str:
    return read(put(folder, name, text.encode())).text


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("Gerät;kWh\nKühlschrank;134,56\n", "| Gerät | kWh |\n| --- | --- |\n| Kühlschrank | 134,56 |"),
        ("a,b\n1,2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("a\tb\n1,5\t2\n", "| a | b |\n| --- | --- |\n| 1,5 | 2 |"),
        ("a|b\n1|2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("1,5;2,5\n3,5;4,5\n", "| A | B |\n| --- | --- |\n| 1,5 | 2,5 |\n| 3,5 | 4,5 |"),
        ("sep=;\na;b,c\n1;2,5\n", "| a | b,c |\n| --- | --- |\n| 1 | 2,5 |"),
        ('a,b\n"x, y","say ""no""\nnow | then"\n', '| a | b |\n| --- | --- |\n| x, y | say "no" now \\| then |'),
        (
            "Export of May\n\na;b\n1;2\n3;4\n5;6\n",
            "Export of May\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |",
        ),
        ("Gerät;2023;2024\nNAS;41;40\n", "| Gerät | 2023 | 2024 |\n| --- | --- | --- |\n| NAS | 41 | 40 |"),
        ("a;b;c\n1;;3\n", "| a | b | c |\n| --- | --- | --- |\n| 1 |  | 3 |"),
        ("name;name\nx;y\n", "| A | B |\n| --- | --- |\n| name | name |\n| x | y |"),
    ],
)
def test_a_table_is_read_whatever_parts_its_cells(tmp_path: Path, text: str, table: str) -> None:
    """Decimal commas are no delimiters, years may be headers, and what stands above a table is a paragraph."""
    assert text_of(tmp_path, text) == table


@pytest.mark.parametrize(
    "text", ["only one line, of words\n", "no table\nat all\n", "x\n" * 50, "a,b\n" + "x" * 2_000_000 + ",1\n"]
)
def test_what_is_no_table_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """Nothing is parted that does not part itself; a field longer than any is none."""
    assert text_of(tmp_path, text) == text


def test_a_stray_quote_does_not_swallow_the_rest(tmp_path: Path) -> None:
    """A cell of more than a hundred lines is none."""
    text = text_of(tmp_path, 'size;note\n"27 inch;x\n' + "".join(f"{n};y\n" for n in range(300)))

    assert '| "27 inch | x |' in text
    assert "| 299 | y |" in text


def test_encodings_and_types_are_recorded(tmp_path: Path) -> None:
    """Of a table in an old code page, and one parted by tabs in UTF-16 without a mark."""
    old = read(put(tmp_path, "a.csv", "Gerät;kWh\nTür;1,5\n".encode("latin-1")))
    wide = read(put(tmp_path, "a.tsv", "name\tnote\nx\ty\n".encode("utf-16-le")))

    assert (old.mime, old.encoding, old.title) == ("text/csv", "cp1252", "")
    assert (wide.mime, wide.encoding) == ("text/tab-separated-values", "utf-16-le")
    assert wide.text == "| name | note |\n| --- | --- |\n| x | y |"


def test_long_tables_are_passages_that_each_have_the_header(tmp_path: Path) -> None:
    """And a table longer than is read says so at its end."""
    extraction = read(put(tmp_path, "a.csv", b"key;value\n" + b"".join(b"k%d;%d\n" % (n, n) for n in range(MAX_ROWS))))
    chunks = chunk(extraction)

    assert all(draft.text.startswith("| key | value |\n") for draft in chunks)
    assert extraction.text.endswith(f"\n\nOnly the first {MAX_ROWS} rows of this table were read.")
    assert extraction.cut
