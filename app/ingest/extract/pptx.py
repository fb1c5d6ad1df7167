"""Presentations: a slide is a page, its title a heading; lists, tables, numbers of charts, diagrams' words and notes.

Every title has the same level, so that no passage holds two slides and each is cited with its own.

Called by `dispatch` in the extraction child. Slides come in the order they are shown; hidden ones are read and marked.
What the layout repeats on every slide (date, footer, number) is left out. Pictures are not read.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.chart import chart_blocks
from app.ingest.extract.found import Found, assembled, heading
from app.ingest.extract.package import Package, attribute, child, local, open_package, reference, under
from app.ingest.extract.tables import row_of, table_blocks
from app.ingest.extract.zip_guard import Source

MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
MAX_SLIDES = 5_000

_TITLES = frozenset({"title", "ctrTitle"})
_REPEATED = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
_LISTED = frozenset({"", "body", "obj"})
"""Places whose paragraphs are bullets unless they say otherwise; "" is a place that names no kind."""
_BULLETS = frozenset({"buChar", "buAutoNum", "buBlip"})
_MAX_INDENT = 6


def extract_pptx(source: Source) -> Extraction:
    """Reads a presentation. Title: the first slide's, else the one in its properties.

    Raises:
        IngestError: corrupt, encrypted, no_text, or too_long for a zip bomb or more than `MAX_SLIDES` slides.
    """
    with open_package(source) as package:
        main = package.main_part()
        relations = package.relations(main)
        wanted = [relations.get(reference(entry)) for entry in under(package.tree(main), "sldId")]
        slides = [relation.target for relation in wanted if relation and relation.target in package.names]
        if len(slides) > MAX_SLIDES:
            raise IngestError("too_long")
        found: list[Found] = []
        counts: list[int] = []
        for number, part in enumerate(slides, 1):
            blocks = list(_slide(package, part, number))
            counts.append(sum(len("".join(block.text.split())) for block in blocks))
            found.extend(_under_heading(blocks, number))
        if not any(counts):
            raise IngestError("no_text")
        text, placed = assembled(found)
        title = placed[0].label if placed[0].page == 1 and found[0].label != _numbered(1) else package.own_title()
        return Extraction(text, title, MIME, None, len(slides), tuple(counts), placed)


def _under_heading(blocks: list[Found], number: int) -> list[Found]:
    """A slide without a title is called by its number, so that its text does not stand under the one before."""
    if blocks and blocks[0].kind != "heading":
        return [heading(1, _numbered(number), number), *blocks]
    return blocks


def _numbered(number: int) -> str:
    return f"Slide {number}"


def _slide(package: Package, part: str, number: int) -> Iterator[Found]:
    slide = package.tree(part)
    relations = package.relations(part)
    body: list[Found] = []
    title = ""
    for shape in _shapes(child(slide, "cSld", "spTree")):
        place = _place(shape)
        if local(shape) == "graphicFrame":
            body.extend(_frame(package, shape, {key: found.target for key, found in relations.items()}, number))
        elif place in _TITLES and not title:
            title = " ".join(" ".join(text for _, text, _ in _paragraphs(shape)).split())
        elif place not in _REPEATED:
            body.extend(_text_blocks(shape, number, is_listed=place is not None and place in _LISTED))
    is_hidden = attribute(slide, "show") in ("0", "false")
    if title:
        yield heading(1, f"{title} (hidden slide)" if is_hidden else title, number)
    yield from body
    notes = next((found.target for found in relations.values() if found.kind == "notesSlide"), "")
    if notes in package.names:
        yield from _notes(package.tree(notes), number)


def _shapes(tree: Element | None) -> Iterator[Element]:
    """Text shapes and frames in order, those of groups in place; of alternatives the first, which new readers show."""
    stack = [tree] if tree is not None else []
    while stack:
        element = stack.pop()
        name = local(element)
        if name in ("sp", "graphicFrame"):
            yield element
        elif name == "AlternateContent":
            choice = child(element, "Choice")
            stack.extend([choice] if choice is not None else [])
        elif name in ("spTree", "grpSp", "Choice"):
            stack.extend(reversed(element))


def _place(shape: Element) -> str | None:
    """The kind of the layout's place a shape fills; None for one that stands free."""
    mark = child(shape, "nvSpPr", "nvPr", "ph")
    return None if mark is None else attribute(mark, "type")


def _paragraphs(shape: Element) -> Iterator[tuple[int, str, bool | None]]:
    """Level, text, and whether it has a bullet (None: as its place has it) of each paragraph with words."""
    for paragraph in under(shape, "p"):
        words = [_words(run) for run in paragraph if local(run) in ("r", "fld", "br")]
        text = "\n".join(line for line in (" ".join(part.split()) for part in "".join(words).split("\n")) if line)
        if not text:
            continue
        properties = child(paragraph, "pPr")
        names = {local(found) for found in properties} if properties is not None else set[str]()
        level = attribute(properties, "lvl") if properties is not None else ""
        bullet = True if names & _BULLETS else False if "buNone" in names else None
        yield min(int(level) if level.isdigit() else 0, _MAX_INDENT), text, bullet


def _words(run: Element) -> str:
    if local(run) == "br":
        return "\n"
    text = child(run, "t")
    return "" if text is None else (text.text or "").replace("\v", "\n")


def _text_blocks(shape: Element, page: int, *, is_listed: bool) -> Iterator[Found]:
    items: list[str] = []
    for level, text, bullet in _paragraphs(shape):
        if is_listed if bullet is None else bullet:
            indent = "  " * level
            items.append(f"{indent}- " + text.replace("\n", f"\n{indent}  "))
            continue
        if items:
            yield Found("list", 0, "\n".join(items), "", page)
            items = []
        yield Found("paragraph", 0, text, "", page)
    if items:
        yield Found("list", 0, "\n".join(items), "", page)


def _frame(package: Package, frame: Element, targets: dict[str, str], page: int) -> Iterator[Found]:
    """A table's rows, or the numbers of a chart or the words of a diagram, which stand in parts of their own."""
    for table in under(frame, "tbl"):
        rows = ([" ".join(_joined(cell)) for cell in row if local(cell) == "tc"] for row in under(table, "tr"))
        yield from table_blocks((row_of(row) for row in rows), page)
    for mark in under(frame, "chart"):
        part = targets.get(reference(mark), "")
        if part in package.names:
            yield from chart_blocks(package.tree(part), page)
    for mark in under(frame, "relIds"):
        part = targets.get(reference(mark, "dm"), "")
        if part in package.names:
            points = [" ".join(_joined(point)) for point in under(package.tree(part), "pt")]
            lines = [f"- {words}" for words in points if words.strip()]
            yield Found("list", 0, "\n".join(lines), "", page)


def _joined(holder: Element) -> list[str]:
    return [text for _, text, _ in _paragraphs(holder)]


def _notes(notes: Element, page: int) -> Iterator[Found]:
    """What the speaker wrote below the slide, told apart from what the slide says."""
    lines = [
        line
        for shape in _shapes(child(notes, "cSld", "spTree"))
        if _place(shape) not in _REPEATED and _place(shape) is not None
        for line in _joined(shape)
    ]
    if lines:
        yield Found("paragraph", 0, "Notes: " + "\n".join(lines), "", page)
