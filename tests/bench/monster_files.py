"""Files made to hurt: bombs, loops, depth and size in every format that is read. Used by `tests.bench.monsters`.

Each is small as it lies; what it asks for is not. `monsters(folder)` writes them all and gives their paths.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.unit.ingest.office import book, deck, rows, shape, workbook

LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "' + f"&{chr(97 + n)};" * 10 + '">' for n in range(9)
)
MAIL = "From: a@example.org\nMessage-ID: <1>\nSubject: s\nMIME-Version: 1.0\n"
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def monsters(folder: Path) -> list[Path]:
    """Writes every file into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for made in (*texts(), *mails(), *pdfs(), *zips()):
        name, content = made
        path = folder / name
        path.write_bytes(content)
        paths.append(path)
    return [*paths, *offices(folder)]


def texts() -> Iterator[tuple[str, bytes]]:
    """Depth, width and lines without end in formats that are text."""
    yield "deep.json", b"[" * 5_000_000
    yield "deep-keys.json", b'{"a":' * 500_000
    yield "deep.yaml", "\n".join(" " * depth + "k:" for depth in range(3_000)).encode()
    yield "laughs.yaml", b"a: &a [x, x]\nb: &b [*a, *a]\n" * 20_000
    yield "deep.html", b"<div>" * 1_000_000 + b"x"
    yield "deep-table.html", b"<table><tr><td>" * 100_000 + b"x"
    yield "attributes.html", b"<p " + b'a="b" ' * 500_000 + b">x"
    yield "long-line.txt", b"x" * 30_000_000
    yield "quotes.md", b">" * 2_000_000 + b" x"
    yield "brackets.md", b"[" * 500_000 + b"](" * 500_000
    yield "stars.md", b"*a _b " * 500_000
    yield "fences.md", b"```\n" * 500_000
    yield "titles.rst", b"a\n=\n" * 500_000
    yield "wide.csv", ",".join(str(n) for n in range(1_000_000)).encode()
    yield "quoted.csv", b'a;b\n"' + b"x;y\n" * 2_000_000
    yield "nuls.txt", b"a\0" * 5_000_000
    yield "marks.txt", ("a" + "\u0301" * 1_000_000).encode()
    yield "broken-utf8.txt", b"\xff\xfe\xfd" * 2_000_000


def mails() -> Iterator[tuple[str, bytes]]:
    """Messages in messages, parts without end."""
    yield "messages.eml", ((MAIL + "Content-Type: message/rfc822\n\n") * 5_000 + MAIL + "\nhi").encode()
    parts = "".join(f"--b\nContent-Type: text/plain\n\npart {n}\n" for n in range(50_000))
    yield "parts.eml", (MAIL + "Content-Type: multipart/mixed; boundary=b\n\n" + parts).encode()
    yield "headers.eml", (MAIL + "X: y\n" * 500_000 + "\nhi").encode()


def pdfs() -> Iterator[tuple[str, bytes]]:
    """Loops, a million pages, an enormous picture, streams that swell."""
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>"
    text = stream(b"BT /F1 12 Tf 72 700 Td (hello) Tj ET")
    loop = "<< /Title (x) /Parent 5 0 R /Next 6 0 R /Prev 6 0 R /First 6 0 R >>"
    outline = "<< /Type /Outlines /First 6 0 R /Last 6 0 R /Count 1 >>"
    yield (
        "outline-loop.pdf",
        pdf(["<< /Type /Catalog /Pages 2 0 R /Outlines 5 0 R >>", PAGES, page, text, outline, loop]),
    )
    tree = "<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 1000000 >>"
    yield "tree-loop.pdf", pdf(["<< /Type /Catalog /Pages 2 0 R >>", tree, page, text])
    levels = [f"<< /Type /Pages /Kids [{f'{n + 1} 0 R ' * 10}] /Count {10 ** (8 - n)} >>" for n in range(2, 8)]
    yield "million-pages.pdf", pdf(["<< /Type /Catalog /Pages 2 0 R >>", *levels, page.replace("4 0 R", "9 0 R"), text])
    yield "many-pages.pdf", many_pages(50_000)
    picture = "/Type /XObject /Subtype /Image /Width 30000 /Height 30000 /ColorSpace /DeviceGray /BitsPerComponent 8"
    image = stream(bytes(900_000_000), picture)
    shown = page.replace("/Contents", "/Resources << /XObject << /I 5 0 R >> >> /Contents")
    yield (
        "picture.pdf",
        pdf(["<< /Type /Catalog /Pages 2 0 R >>", PAGES, shown, stream(b"500 0 0 500 0 0 cm /I Do"), image]),
    )
    yield "swelling.pdf", pdf(["<< /Type /Catalog /Pages 2 0 R >>", PAGES, page, stream(b" " * 800_000_000)])
    words = b"BT /F1 12 Tf 72 700 Td " + b"(hello) Tj " * 3_000_000 + b"ET"
    yield "words.pdf", pdf(["<< /Type /Catalog /Pages 2 0 R >>", PAGES, page, stream(words)])
    form = stream(b"/X Do", "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >>")
    own = page.replace("/Contents", "/Resources << /XObject << /X 5 0 R >> >> /Contents")
    yield "form-loop.pdf", pdf(["<< /Type /Catalog /Pages 2 0 R >>", PAGES, own, stream(b"/X Do"), form])
    yield "cut.pdf", pdf(["<< /Type /Catalog /Pages 2 0 R >>", PAGES, page, text])[:200]
    yield (
        "page-size.pdf",
        pdf(["<< /Type /Catalog /Pages 2 0 R >>", PAGES, page.replace("595 842", "99999999 99999999"), text]),
    )


PAGES = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"


def many_pages(count: int) -> bytes:
    """A flat tree of so many pages that share one object's content."""
    kids = " ".join(f"{4 + n} 0 R" for n in range(count))
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 3 0 R >>"
    head = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>"]
    return pdf([*head, stream(b"BT /F1 12 Tf 72 700 Td (hello) Tj ET"), *[page] * count])


def stream(data: bytes, entries: str = "") -> bytes:
    """A compressed stream object."""
    packed = zlib.compress(data, 9)
    return f"<< {entries} /Filter /FlateDecode /Length {len(packed)} >>\nstream\n".encode() + packed + b"\nendstream"


def pdf(objects: Sequence[str | bytes]) -> bytes:
    """Objects numbered from 1 with the table that finds them; the first is the catalogue."""
    out = io.BytesIO()
    out.write(b"%PDF-1.5\n")
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n".encode() + (body.encode() if isinstance(body, str) else body) + b"\nendobj\n")
    table = out.tell()
    out.write(f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{place:010} 00000 n \n" for place in places).encode())
    out.write(f"trailer << /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n".encode())
    return out.getvalue()


def zips() -> Iterator[tuple[str, bytes]]:
    """Archives in archives, and names that promise a document."""
    data = b"end"
    for _ in range(6):
        data = archive({f"{copy}.zip": data for copy in range(16)})
    for name in ("nested.zip", "nested.docx", "nested.xlsx"):
        yield name, data
    yield "names.docx", archive({f"word/{n}.xml": b"" for n in range(60_000)})
    yield "swollen.docx", archive({"[Content_Types].xml": b"", "word/document.xml": bytes(300_000_000)})
    body = f"<w:document {WORD}><w:body><w:p><w:r><w:t>&j;</w:t></w:r></w:p></w:body></w:document>"
    yield "laughs.docx", archive({"word/document.xml": f"{LAUGHS}]>{body}".encode()})
    deep = f"<w:document {WORD}><w:body>" + "<w:tbl><w:tr><w:tc>" * 100_000
    yield "deep.docx", archive({"word/document.xml": deep.encode()})


def archive(parts: dict[str, bytes]) -> bytes:
    """A zip of these."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def offices(folder: Path) -> Iterator[Path]:
    """Workbooks, slides and books that are well-formed but for what they hold."""
    yield workbook(folder / "rows.xlsx", "<sheetData>" + "<row>" * 500_000)
    yield workbook(folder / "cells.xlsx", f"<sheetData><row>{'<c>' * 300_000}x")
    lines = "".join(f"<row><c><v>{n * n}</v></c><c><v>{n}</v></c></row>" for n in range(600_000))
    yield workbook(folder / "long.xlsx", f"<sheetData>{lines}</sheetData>")
    laughing = f"{LAUGHS}]><worksheet><sheetData><row><c><v>&j;</v></c></row></sheetData></worksheet>"
    yield workbook(folder / "laughs.xlsx", rows("x"), parts={"xl/worksheets/sheet1.xml": laughing})
    yield deck(folder / "deep.pptx", "<p:grpSp>" * 200_000 + shape("deep", None) + "</p:grpSp>" * 200_000)
    yield book(folder / "deep.epub", {"a.xhtml": "<div>" * 400_000 + "x"})
    swollen = book(folder / "swollen.epub", {"a.xhtml": "<p>x"})
    with zipfile.ZipFile(swollen, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("more.bin", bytes(200_000_000))
    yield swollen
