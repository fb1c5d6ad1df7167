"""Lines with places to blocks: paragraphs, headings, lists and tables of a PDF's pages. Pure.

Called by `pdf`. What repeats in the margins of most pages (running heads, page numbers) is left out; `pdf_lines`
tells columns and rows apart.
"""

import re
from collections import Counter
from collections.abc import Sequence

from app.ingest.blocks import Block, BlockKind
from app.ingest.extract.pdf_lines import Line, PageLines, are_rows, in_columns

_MARGIN = 0.1
"""Share of a page's height, above and below, where running heads and feet stand."""
_ITEM = re.compile(r"(?:[-*•‣◦▪·–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_NUMBERS = re.compile(r"\d+")
_MAX_HEADING_CHARS = 160
_MAX_HEADING_LEVELS = 4
_FULL_LINE = 0.72
"""Share of its column's width from which a line is taken to run on into the next."""


def layout(pages: Sequence[PageLines]) -> tuple[Block, ...]:
    """Blocks of all pages, one blank line apart in the canonical text; each has its page."""
    running = _running_lines(pages)
    levels = _heading_levels([line for page in pages for line in page.lines])
    blocks: list[Block] = []
    at = 0
    for number, page in enumerate(pages, start=1):
        kept = in_columns([line for line in page.lines if not (running and _key(line, page) in running)])
        for paragraph in _paragraphs(kept):
            level = _level(paragraph, levels)
            kind, text = _written(paragraph, kept, level)
            label = " ".join(text.split()) if level else ""
            blocks.append(Block(kind, text, level, at, at + len(text), number, label))
            at += len(text) + 2
    return tuple(blocks)


def _key(line: Line, page: PageLines) -> tuple[str, int] | None:
    """What makes a line in the margin the same on another page: its words, any numbers, and its height."""
    in_margin = line.y > page.height * (1 - _MARGIN) or line.y < page.height * _MARGIN
    return (_NUMBERS.sub("#", line.text), round(line.y / 4)) if in_margin else None


def _running_lines(pages: Sequence[PageLines]) -> frozenset[tuple[str, int]]:
    """Lines in the margins of at least three pages and most of them."""
    counts = Counter(key for page in pages for key in {_key(line, page) for line in page.lines} if key)
    least = max(3, len(pages) * 0.6)
    running = frozenset(key for key, count in counts.items() if count >= least)
    is_all = all(_key(line, page) in running for page in pages for line in page.lines)
    return frozenset() if is_all else running


def _heading_levels(lines: Sequence[Line]) -> dict[float, int]:
    """Font sizes clearly above the text's own, largest first, as levels 1 to 4."""
    if not lines:
        return {}
    weights: Counter[float] = Counter()
    for line in lines:
        weights[_rounded(line.size)] += len(line.text)
    body = weights.most_common(1)[0][0]
    sizes = sorted((size for size in weights if size >= body * 1.12), reverse=True)
    return {size: min(rank, _MAX_HEADING_LEVELS) for rank, size in enumerate(sizes, start=1)}


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def _level(paragraph: Sequence[Line], levels: dict[float, int]) -> int:
    chars = sum(len(line.text) for line in paragraph)
    has_words = any(char.isalpha() for line in paragraph for char in line.text)
    return levels.get(_rounded(paragraph[0].size), 0) if has_words and chars <= _MAX_HEADING_CHARS else 0


def _paragraphs(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that belong together; rows of a table are kept apart from the prose around them."""
    paragraphs: list[list[Line]] = []
    pitch = _pitch(lines)
    is_row = [len(line.cells) > 1 and _has_row_beside(lines, index) for index, line in enumerate(lines)]
    for index, line in enumerate(lines):
        continues = index > 0 and is_row[index] == is_row[index - 1] and _continues(lines[index - 1], line, pitch)
        if continues:
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
    return paragraphs


def _has_row_beside(lines: Sequence[Line], index: int) -> bool:
    around = [lines[other] for other in (index - 1, index + 1) if 0 <= other < len(lines)]
    return any(are_rows(lines[index], other) for other in around)


def _pitch(lines: Sequence[Line]) -> float:
    """The usual distance from one baseline to the next."""
    steps = Counter(
        round(lines[index - 1].y - lines[index].y, 1)
        for index in range(1, len(lines))
        if lines[index - 1].y > lines[index].y
    )
    return steps.most_common(1)[0][0] if steps else 0.0


def _continues(above: Line, below: Line, pitch: float) -> bool:
    """Whether two lines in reading order belong to one paragraph or table."""
    if are_rows(above, below):
        return 0 < above.y - below.y < above.size * 4
    if _rounded(above.size) != _rounded(below.size):
        return False
    step = above.y - below.y
    if step < -above.size * 2:
        return above.hyphenated or (above.text[-1] not in ".!?:;" and below.text[:1].islower())
    return step <= max(pitch * 1.25, above.size * 1.45)


def _written(paragraph: Sequence[Line], page: Sequence[Line], level: int) -> tuple[BlockKind, str]:
    if len(paragraph) > 1 and all(len(line.cells) > 1 for line in paragraph):
        rows = ["| " + " | ".join(cell.text for cell in line.cells) + " |" for line in paragraph]
        return "table", "\n".join([rows[0], "|" + " --- |" * len(paragraph[0].cells), *rows[1:]])
    text = _joined(paragraph, _full_width(page, paragraph[0]))
    if level:
        return "heading", text
    return ("list" if _ITEM.match(text) else "paragraph"), text


def _full_width(lines: Sequence[Line], first: Line) -> float:
    """The width of the column a paragraph stands in: its widest line with about the same left edge."""
    return max((line.x1 - line.x0 for line in lines if abs(line.x0 - first.x0) < 4), default=0.0)


def _joined(paragraph: Sequence[Line], full: float) -> str:
    """Lines that filled their column run on; short ones (addresses, verse) keep their break."""
    parts: list[str] = []
    for index, line in enumerate(paragraph):
        parts.append(line.text)
        if index + 1 == len(paragraph) or line.hyphenated:
            continue
        following = paragraph[index + 1].text
        runs_on = line.x1 - line.x0 >= full * _FULL_LINE and not _ITEM.match(following)
        parts.append(" " if runs_on else "\n")
    return "".join(parts)
