"""Zipped documents for tests, written part by part: only what a reader needs, so that each part can be made wrong."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NUMBERS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
SLIDE = f'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" {DRAWING} {NUMBERS}'


def zipped(path: Path, parts: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def relations(**targets: str) -> str:
    """Relations by id: `r1="worksheet worksheets/sheet1.xml"`."""
    entries = "".join(
        f'<Relationship Id="{key}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for key, (kind, target) in ((key, value.split()) for key, value in targets.items())
    )
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{package}">{entries}</Relationships>'


def workbook(
    path: Path,
    *sheets: str,
    strings: str = "",
    styles: str = "",
    book: str = "",
    states: Mapping[int, str] | None = None,
    parts: Mapping[str, str] | None = None,
) -> Path:
    """A workbook of sheets given as the inside of `<worksheet>`, called S1, S2 …"""
    numbers = range(1, len(sheets) + 1)
    tabs = "".join(f'<sheet name="S{n}" r:id="s{n}" state="{(states or {}).get(n, "visible")}"/>' for n in numbers)
    targets = {f"s{n}": f"worksheet worksheets/sheet{n}.xml" for n in numbers}
    return zipped(
        path,
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(r1="officeDocument xl/workbook.xml"),
            "xl/workbook.xml": f"<workbook {SHEET} {NUMBERS}>{book}<sheets>{tabs}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                **targets, a="sharedStrings sharedStrings.xml", b="styles styles.xml"
            ),
            "xl/sharedStrings.xml": f"<sst {SHEET}>{strings}</sst>",
            "xl/styles.xml": f"<styleSheet {SHEET}>{styles}</styleSheet>",
            **{f"xl/worksheets/sheet{n}.xml": f"<worksheet {SHEET}>{sheets[n - 1]}</worksheet>" for n in numbers},
            **(parts or {}),
        },
    )


def rows(*lines: str) -> str:
    """Rows of text cells parted by `|`; numbers become numbers, an empty line leaves a row out."""
    written = []
    for number, line in enumerate(lines, 1):
        if line:
            cells = "".join(cell(chr(65 + at) + str(number), text) for at, text in enumerate(line.split("|")) if text)
            written.append(f'<row r="{number}">{cells}</row>')
    return f"<sheetData>{''.join(written)}</sheetData>"


def cell(place: str, text: str) -> str:
    if text.replace(".", "").isdigit():
        return f'<c r="{place}"><v>{text}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def deck(path: Path, *slides: str, related: Mapping[int, Mapping[str, str]] | None = None, **parts: str) -> Path:
    """A presentation of slides given as the inside of the shape tree."""
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in numbers)
    wanted = {f"s{n}": f"slide slides/slide{n}.xml" for n in numbers}
    links = {f"ppt/slides/_rels/slide{n}.xml.rels": relations(**dict(to)) for n, to in (related or {}).items()}
    return zipped(
        path,
        {
            "_rels/.rels": relations(r1="officeDocument ppt/presentation.xml"),
            "ppt/presentation.xml": f"<p:presentation {SLIDE}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(**wanted),
            **{f"ppt/slides/slide{n}.xml": slide(slides[n - 1]) for n in numbers},
            **links,
            **{name.replace("__", "/") + ".xml": content for name, content in parts.items()},
        },
    )


def slide(shapes: str, attributes: str = "") -> str:
    return f"<p:sld {SLIDE} {attributes}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def shape(text: str, place: str | None = "body") -> str:
    """A shape whose paragraphs are lines; two leading spaces make one level."""
    mark = "" if place is None else f'<p:ph type="{place}"/>'
    lines = "".join(
        f'<a:p><a:pPr lvl="{(len(line) - len(line.lstrip())) // 2}"/><a:r><a:t>{line.strip()}</a:t></a:r></a:p>'
        for line in text.split("\n")
    )
    return f"<p:sp><p:nvSpPr><p:nvPr>{mark}</p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"


def book(path: Path, pages: Mapping[str, str], *, contents: str = "", **parts: str) -> Path:
    """An e-book whose pages lie in a folder, in the order given; `contents` is its NCX."""
    nav = {"nav.xhtml": 'properties="nav"'}
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml" {nav.get(name, "")}/>' for name in pages
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in pages)
    listed = '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>' if contents else ""
    title = "<dc:title> The\n book </dc:title>"
    return zipped(
        path,
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="in side/book.opf"/></rootfiles>'
            "</container>",
            "in side/book.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            f"{title}</metadata><manifest>{items}{listed}</manifest><spine>{order}</spine></package>",
            **({"in side/toc.ncx": contents} if contents else {}),
            **{f"in side/{name}": content for name, content in pages.items()},
            **{name.replace("__", "/"): content for name, content in parts.items()},
        },
    )
