"""Files made to hurt, in the real child: each ends with text or a named reason in time, and the next is read."""

import io
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.ingest.errors import IngestError
from app.ingest.extract.extractor import Extractor, Limits
from tests.unit.ingest.office import SHEET, SLIDE, book, deck, rows, shape, workbook

LIMIT_S = 60
GRACE_S = 2
MAIL = "From: a@example.org\nMessage-ID: <1>\nSubject: s\nMIME-Version: 1.0\n"
Outcome = Callable[[Path], str]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    extractor = Extractor(Limits(wall_s=LIMIT_S))
    yield extractor
    extractor.close()


@pytest.fixture
def outcome(extractor: Extractor, tmp_path: Path) -> Iterator[Outcome]:
    """Reads a monster: "read" or the reason; afterwards an ordinary note is read by the same extractor."""

    def outcome(path: Path) -> str:
        started = time.monotonic()
        try:
            extractor.extract(path, path.name)
            how = "read"
        except IngestError as error:
            how = error.reason
        assert time.monotonic() - started < LIMIT_S + GRACE_S
        return how

    yield outcome
    note = tmp_path / "note.md"
    note.write_text("# Still here\n")
    assert extractor.extract(note, note.name)[0].title == "Still here"


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "' + f"&{chr(97 + n)};" * 10 + '">' for n in range(9)
)


def laughing(name: str, folder: Path) -> Path:
    """A billion laughs in the main part of a format."""
    path = folder / name
    if name.endswith("xlsx"):
        part = f"{LAUGHS}]><worksheet {SHEET}><sheetData><row><c><v>&j;</v></c></row></sheetData></worksheet>"
        return workbook(path, rows("x"), parts={"xl/worksheets/sheet1.xml": part})
    if name.endswith("pptx"):
        return deck(path, shape("x"), ppt__slides__slide1=f"{LAUGHS}]><p:sld {SLIDE}>&j;</p:sld>")
    return book(path, {"a.xhtml": "<p>x"}, **{"in side/book.opf": f"{LAUGHS}]><package>&j;</package>"})


@pytest.mark.parametrize("name", ["a.xlsx", "a.pptx", "a.epub"])
def test_a_billion_laughs_are_refused_in_every_zipped_format(outcome: Outcome, tmp_path: Path, name: str) -> None:
    """No entity is ever expanded."""
    assert outcome(laughing(name, tmp_path)) == "corrupt"


def test_entities_in_an_encoding_the_guard_cannot_see_are_refused(outcome: Outcome, tmp_path: Path) -> None:
    """The mark of a document type looks different in EBCDIC; the parser knows it all the same."""
    sheet = f'<?xml version="1.0" encoding="cp037"?>{LAUGHS}]><worksheet><sheetData/></worksheet>'
    path = workbook(tmp_path / "a.xlsx", rows("x"))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/worksheets/sheet1.xml"] = sheet.encode("cp037")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)

    assert outcome(path) == "corrupt"


@pytest.mark.parametrize("name", ["a.xlsx", "a.pptx", "a.epub"])
def test_zips_that_unpack_to_a_hundredfold_are_refused(outcome: Outcome, tmp_path: Path, name: str) -> None:
    """Whatever format they are, before a parser sees them."""
    path = laughing(name, tmp_path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.bin", bytes(20_000_000))

    assert outcome(path) == "too_long"


def test_zips_within_zips_are_not_followed(outcome: Outcome, tmp_path: Path) -> None:
    """Not ten levels of sixteen copies, not one that holds a copy of itself: an archive is no document."""
    data = b"end"
    for _ in range(6):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for copy in range(16):
                archive.writestr(f"{copy}.zip", data)
        data = buffer.getvalue()
    (tmp_path / "a.zip").write_bytes(data)
    (tmp_path / "a.xlsx").write_bytes(data)

    assert outcome(tmp_path / "a.zip") == "unsupported"
    assert outcome(tmp_path / "a.xlsx") == "corrupt"


def test_a_million_rows_are_read_as_far_as_rows_are_read(outcome: Outcome, tmp_path: Path) -> None:
    """Of a sheet and of a table of separated values."""
    lines = "".join(f"<row><c><v>{n * n}</v></c><c><v>{n}</v></c></row>" for n in range(400_000))
    (tmp_path / "a.csv").write_text("a;b\n" + "".join(f"{n};{n * 7}\n" for n in range(1_000_000)))

    assert outcome(workbook(tmp_path / "a.xlsx", f"<sheetData>{lines}</sheetData>")) == "read"
    assert outcome(tmp_path / "a.csv") == "read"


@pytest.mark.parametrize("body", ["<sheetData>" + "<row>" * 500_000, f"<sheetData><row>{'<c>' * 100_000}x"])
def test_a_sheet_nested_without_end_is_corrupt(outcome: Outcome, tmp_path: Path, body: str) -> None:
    """Depth costs memory and not the stack."""
    assert outcome(workbook(tmp_path / "a.xlsx", body)) in ("corrupt", "too_long")


def test_a_slide_and_a_chapter_nested_without_end_are_refused(outcome: Outcome, tmp_path: Path) -> None:
    """Closed or not."""
    deep = "<p:grpSp>" * 100_000 + shape("deep", None) + "</p:grpSp>" * 100_000

    assert outcome(deck(tmp_path / "a.pptx", deep)) in ("read", "corrupt")
    assert outcome(book(tmp_path / "a.epub", {"a.xhtml": "<div>" * 200_000 + "x"})) == "corrupt"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "[" * 300_000),
        ("b.json", '{"a":' * 100_000),
        ("a.yaml", "\n".join(" " * depth + "k:" for depth in range(1_500))),
        ("b.yaml", "a: &a [x, x]\nb: &b [*a, *a]\n" * 10_000),
        ("a.csv", ",".join(str(n) for n in range(200_000))),
        ("b.csv", 'a;b\n"' + "x;y\n" * 100_000),
    ],
)
def test_text_nested_or_stretched_without_end_is_read(outcome: Outcome, tmp_path: Path, name: str, text: str) -> None:
    """Nothing of it is parsed, so nothing is expanded and no stack runs out."""
    (tmp_path / name).write_text(text)

    assert outcome(tmp_path / name) == "read"


def part(number: int) -> str:
    return f"--b\nContent-Type: text/plain\n\npart {number}\n"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (MAIL + "Content-Type: multipart/mixed; boundary=b\n\n" + "".join(map(part, range(10_000))), "too_long"),
        ((MAIL + "Content-Type: message/rfc822\n\n") * 3_000 + MAIL + "\nhi", "corrupt"),
        ((MAIL + "Content-Type: message/rfc822\n\n") * 50 + MAIL + "\nhi", "read"),
        (MAIL + "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(3_000)), "corrupt"),
        (MAIL + "To: " + "=?utf-8?q?a?= " * 200_000 + "\n\nhi", "read"),
        (MAIL + "X: y\n" * 200_000 + "\nhi", "read"),
    ],
    ids=["ten thousand parts", "three thousand messages", "fifty messages", "nested parts", "long", "many headers"],
)
def test_mail_without_end_is_read_or_refused(outcome: Outcome, tmp_path: Path, text: str, how: str) -> None:
    """Parts, messages within messages, headers."""
    (tmp_path / "a.eml").write_text(text)

    assert outcome(tmp_path / "a.eml") == how
