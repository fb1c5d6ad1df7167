"""Word documents: structure kept, bombs and locks refused."""

import zipfile
from pathlib import Path

import docx

from tests.unit.ingest.files import put, read, reason_of


def test_word_documents_keep_headings_lists_and_tables(tmp_path: Path) -> None:
    """Styles become structure; pictures are left out unread."""
    document = docx.Document()
    document.add_heading("Runbook", level=1)
    document.add_heading("Router", level=2)
    document.add_paragraph("Switch it off.", style="List Number")
    document.add_paragraph("Wait & see.")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip([*table.rows[0].cells, *table.rows[1].cells], ["Name", "Band", "hill", "5 GHz"], strict=True):
        cell.text = text
    path = tmp_path / "a.docx"
    document.save(str(path))

    extraction = read(path, "renamed.txt")

    assert extraction.title == "Runbook"
    assert extraction.text == (
        "# Runbook\n\n## Router\n\n1. Switch it off.\n\nWait & see.\n\n| Name | Band |\n| --- | --- |\n| hill | 5 GHz |"
    )


TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override '
    'PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)

RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def word_file(folder: Path, body: str, **parts: str) -> Path:
    path = folder / "a.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr("_rels/.rels", RELATIONS)
        archive.writestr("word/document.xml", body)
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_a_word_file_that_unpacks_to_a_hundredfold_is_refused(tmp_path: Path) -> None:
    """Its sizes are added up before a parser sees it."""
    text = "a" * 20_000_000
    path = word_file(
        tmp_path, f"<w:document {WORD}><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"
    )

    assert path.stat().st_size < 200_000
    assert reason_of(path) == "too_long"


def test_a_word_file_with_ten_thousand_parts_is_refused(tmp_path: Path) -> None:
    """Whatever they hold."""
    path = word_file(tmp_path, f"<w:document {WORD}/>", **{f"x{n}": "" for n in range(10_001)})

    assert reason_of(path) == "too_long"


def test_a_word_file_that_declares_entities_is_refused(tmp_path: Path) -> None:
    """Billion laughs need a document type, and no office file has one."""
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'

    assert reason_of(word_file(tmp_path, laughs + f"<w:document {WORD}/>")) == "corrupt"


def test_a_word_file_with_broken_parts_is_corrupt(tmp_path: Path) -> None:
    """Bad XML, a missing part, a cut-off archive: one sentence for all."""
    assert reason_of(word_file(tmp_path, "<w:document")) == "corrupt"
    whole = word_file(tmp_path, f"<w:document {WORD}/>").read_bytes()
    assert reason_of(put(tmp_path, "b.docx", whole[:-30])) == "corrupt"
    flipped = bytearray(whole)
    flipped[60:70] = b"\xff" * 10
    assert reason_of(put(tmp_path, "c.docx", bytes(flipped))) == "corrupt"


def test_locked_office_files_are_encrypted(tmp_path: Path) -> None:
    """An encrypted package in an OLE container, or a zip whose parts ask for a password."""
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
    assert reason_of(put(tmp_path, "a.docx", ole + "EncryptedPackage".encode("utf-16-le"))) == "encrypted"
    assert reason_of(put(tmp_path, "old.doc", ole)) == "unsupported"
    data = bytearray(word_file(tmp_path, f"<w:document {WORD}/>").read_bytes())
    at = 0
    while (at := data.find(b"PK\x01\x02", at + 1)) > 0:
        data[at + 8] |= 1
    assert reason_of(put(tmp_path, "b.docx", bytes(data))) == "encrypted"
