"""Plain text, source code, and what tables and configuration turn out to be when they are none: shown as they are.

Called by `dispatch` for everything that is text and no document format. Owns no parsing of any language: a blank line
before something at the margin is where a reader would cut.
"""

import re
from pathlib import PurePosixPath

from app.ingest.blocks import Extraction
from app.ingest.extract.lines import LineBlocks

PROSE_SUFFIXES = frozenset({"", ".txt", ".text", ".log", ".adoc", ".asciidoc", ".org", ".tex", ".wiki", ".textile"})
_TABLE_SUFFIXES = frozenset({".csv", ".tsv", ".tab"})
_MIMES = {
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".xml": "application/xml",
    ".py": "text/x-python",
    ".sh": "text/x-shellscript",
    ".js": "text/javascript",
    ".css": "text/css",
}
_UNDERLINE = re.compile(r"(=|-|~|\*)\1{2,}\s*$")
_ITEM = re.compile(r"\s*(?:[-*+•–]|\d{1,4}[.)])\s")
_TITLE_CHARS = 100


def extract_plain(text: str, encoding: str, name: str) -> Extraction:
    """Reads text by its name's suffix: prose in paragraphs, tables as one block, everything else as code."""
    suffix = PurePosixPath(name.lower()).suffix
    lines = LineBlocks(text.split("\n"))
    title = ""
    if suffix in _TABLE_SUFFIXES:
        lines.add("table", 0, len(lines.lines))
    elif suffix in PROSE_SUFFIXES:
        title = _add_prose(lines)
    else:
        _add_code(lines)
    canonical, blocks = lines.build()
    return Extraction(canonical, title, mime_of(name), encoding, None, None, blocks)


def mime_of(name: str) -> str:
    """The type of a text by its name's suffix."""
    return _MIMES.get(PurePosixPath(name.lower()).suffix, "text/plain")


def _add_prose(blocks: LineBlocks) -> str:
    """Paragraphs, lists and underlined headings; returns the title: a short first line that stands alone."""
    lines, start, title = blocks.lines, 0, ""
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = start
        while end < len(lines) and lines[end].strip():
            end += 1
        if end - start >= 2 and _UNDERLINE.match(lines[start + 1]) and not _UNDERLINE.match(lines[start]):
            end = start + 2
            level = 1 if lines[start + 1][0] == "=" else 2
            blocks.add("heading", start, end, level=level, label=lines[start].strip())
            title = title or lines[start].strip()
        else:
            blocks.add("list" if _ITEM.match(lines[start]) else "paragraph", start, end)
            if not any(lines[:start]) and end - start == 1:
                title = _as_title(lines[start].strip())
        start = end
    return title


def _as_title(line: str) -> str:
    return line if len(line) <= _TITLE_CHARS and line[-1] not in ".,;:!?" and not _ITEM.match(line + " ") else ""


def _add_code(blocks: LineBlocks) -> None:
    """One block per stretch that begins at the margin after a blank line: a function, a class, a section."""
    lines, start = blocks.lines, 0
    for index in range(1, len(lines)):
        line = lines[index]
        if line and line[0] not in " \t)]}" and not lines[index - 1].strip():
            blocks.add("code", start, index)
            start = index
    blocks.add("code", start, len(lines))
