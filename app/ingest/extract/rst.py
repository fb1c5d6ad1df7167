"""reStructuredText: sections by their underlines, directives by what they hold, without docutils.

docutils wants every directive and role known and executes some; here nothing runs and unknown ones are read through.
The canonical text keeps the file's lines. In it a tab begins each line of code and no other line: prose is set in as
often as code, so that nothing else tells them apart. Called by `dispatch`.
"""

import re

from app.ingest.blocks import BlockKind, Extraction
from app.ingest.extract.lines import LineBlocks
from app.ingest.extract.rst_inline import readable

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"(\s*)\.\. (?:\|[^|]+\| )?([A-Za-z][\w.:+-]*?)::(?:\s+(.*))?$")
_FOOTNOTE = re.compile(r"\s*\.\. \[[^\]]+\]\s")
_OPTION = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_ITEM = re.compile(r"\s*(?:[-*+•]|(?:\d{1,9}|#|[a-zA-Z])[.)]|\(\w\))\s")
_GRID = re.compile(r"\s*\+[-=+]{2,}\+\s*$")
_SIMPLE = re.compile(r"\s*=+(?: +=+)+\s*$")
_PADDING = re.compile(r" {2,}")

_CODE_MARK = "\t"

_CODE = frozenset(
    {"code-block", "code", "sourcecode", "parsed-literal", "prompt", "math", "productionlist", "graphviz"}
)
_DROPPED = frozenset(
    {"raw", "toctree", "contents", "index", "include", "highlight", "role", "default-domain", "class", "meta", "image"}
    | {"literalinclude", "tabularcolumns", "currentmodule", "module", "sectnum", "replace", "default-role", "unicode"}
)
_TABLES = frozenset({"list-table", "csv-table"})
_VERSIONS = {"versionadded": "New in", "versionchanged": "Changed in", "deprecated": "Deprecated since"}
_NOTES = frozenset(
    {"note", "warning", "important", "tip", "hint", "caution", "attention", "danger", "error", "seealso", "todo"}
)


def extract_rst(text: str, encoding: str) -> Extraction:
    """Reads a reStructuredText file. Title: the first heading of the highest level."""
    scanner = _Scanner(text.expandtabs(8).split("\n"))
    scanner.run()
    canonical, blocks = scanner.blocks.build()
    title = next((block.label for block in blocks if block.kind == "heading" and block.level == 1), "")
    return Extraction(canonical, title, "text/x-rst", encoding, None, None, blocks)


class _Scanner:
    """One pass over the lines; each `_take_…` begins at `self.at` and leaves it behind what it took."""

    def __init__(self, lines: list[str]) -> None:
        self.blocks = LineBlocks(lines)
        self.lines = self.blocks.lines
        self.at: int = 0
        self._styles: list[tuple[str, bool]] = []

    def run(self) -> None:
        """Reads everything."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                self.at += 1
            elif line.lstrip().startswith("..") and line.strip(" .") != line.strip():
                self._take_explicit(line)
            elif not self._take_title(line) and not self._take_table(line):
                self._take_text()

    def _line(self, index: int) -> str:
        return self.lines[index] if index < len(self.lines) else ""

    def _indent(self, line: str) -> int:
        return len(line) - len(line.lstrip())

    def _body_end(self, start: int, indent: int) -> int:
        """The first line from `start` that is neither blank nor deeper than `indent`."""
        end = start
        while end < len(self.lines) and (not self.lines[end].strip() or self._indent(self.lines[end]) > indent):
            end += 1
        return end

    def _take_explicit(self, line: str) -> None:
        """A directive, a footnote, a target or a comment."""
        match = _DIRECTIVE.match(line)
        if match:
            self._take_directive(len(match[1]), match[2].lower().rsplit(":", 1)[-1], (match[3] or "").strip())
        elif _FOOTNOTE.match(line):
            self._take_text()
        elif line.lstrip().startswith(".. ") or line.strip() == "..":
            start, self.at = self.at, self.at + 1
            is_target = line.lstrip().startswith(".. _")
            end = self.at if is_target else self._body_end(self.at, self._indent(line))
            self.blocks.blank(start, end)
            self.at = end
        else:
            self._take_text()

    def _take_directive(self, indent: int, name: str, argument: str) -> None:
        start, self.at = self.at, self.at + 1
        while _OPTION.match(self._line(self.at)) and self._indent(self._line(self.at)) > indent:
            self.blocks.blank(self.at, self.at + 1)
            self.at += 1
        end = self._body_end(self.at, indent)
        if name in _DROPPED:
            self.blocks.blank(start, end)
            self.at = end
            return
        said = _said(name, argument)
        self.lines[start] = " " * indent + readable(said) if said else ""
        if said:
            self.blocks.add("paragraph", start, start + 1)
        if name in _CODE:
            self._add_code(self.at, end)
            self.at = end
        elif name in _TABLES:
            self.blocks.add("table", self.at, end)
            self.at = end

    def _take_title(self, line: str) -> bool:
        """A section title: text with an adornment below, or above and below; levels by order of appearance."""
        if line[0] == " " and not _ADORNMENT.match(self._line(self.at + 2)):
            return False
        below, overlined = self._line(self.at + 1), False
        title, end = line.strip(), self.at + 2
        if _ADORNMENT.match(line):
            if not below.strip() or self._line(self.at + 2).strip() != line.strip():
                return self._take_transition(line)
            title, below, overlined, end = below.strip(), line, True, self.at + 3
        if line[0] == " " or not _ADORNMENT.match(below) or len(below.rstrip()) < min(len(title), 4):
            return False
        style = (below[0], overlined)
        if style not in self._styles:
            self._styles.append(style)
        title = readable(title)
        self.lines[end - 2] = title
        self.blocks.add("heading", self.at, end, level=min(self._styles.index(style) + 1, 6), label=_plain(title))
        self.at = end
        return True

    def _take_transition(self, line: str) -> bool:
        if len(line.strip()) < 4 or self._line(self.at + 1).strip():
            return False
        self.blocks.blank(self.at, self.at + 1)
        self.at += 1
        return True

    def _take_table(self, line: str) -> bool:
        if _GRID.match(line):
            end = self.at
            while self._line(end).lstrip()[:1] in ("+", "|") and self._line(end).strip():
                end += 1
            rows = [" ".join(row.split()) if "|" in row else "" for row in self.lines[self.at : end]]
            # a cell may hold markup over several lines, but none that crosses the cell's bars
            self.lines[self.at : end] = [readable(row) for row in rows]
        elif _SIMPLE.match(line):
            end = self._simple_end()
            rows = ["" if _SIMPLE.match(row) else _PADDING.sub("  ", row) for row in self.lines[self.at : end]]
            self.lines[self.at : end] = readable("\n".join(rows)).split("\n")
        else:
            return False
        self.blocks.add("table", self.at, end)
        self.at = end
        return True

    def _simple_end(self) -> int:
        """Behind the border that a blank line follows, or the first blank line where none does."""
        end = self.at + 1
        while end < len(self.lines):
            if _SIMPLE.match(self.lines[end]) and not self._line(end + 1).strip():
                return end + 1
            end += 1
        return self._paragraph_end(self.at)

    def _paragraph_end(self, start: int) -> int:
        """Behind the last line before a blank one, or before a directive that was not set apart."""
        end = start + 1
        while self._line(end).strip() and not self.lines[end].lstrip().startswith(".. "):
            end += 1
        return end

    def _take_text(self) -> None:
        """Lines up to the next blank one, and the literal block that `::` at their end announces."""
        start, end = self.at, self._paragraph_end(self.at)
        indent = self._indent(self.lines[start])
        kind = self._text_kind(self.lines[start])
        last = self.lines[end - 1].rstrip()
        literal = last.endswith("::") and kind != "code"
        if literal:
            indent = self._literal_indent(last, end, indent)
            self.lines[end - 1] = "" if last.strip() == "::" else last[:-1]
        if kind != "code":
            self.lines[start:end] = readable("\n".join(self.lines[start:end])).split("\n")
        if kind == "code":
            self._add_code(start, end)
        else:
            self.blocks.add(kind, start, end)
        self.at = end
        if literal:
            self.at = self._body_end(end, indent)
            self._add_code(end, self.at)

    def _literal_indent(self, last: str, end: int, indent: int) -> int:
        """What the literal block below `last` is set in deeper than: the words of an item rather than its mark, where
        it is deeper than those."""
        item = _ITEM.match(last)
        words = item.end() if item else self._indent(last)
        below = next((self.lines[at] for at in range(end, len(self.lines)) if self.lines[at].strip()), "")
        return words if self._indent(below) > words else indent

    def _add_code(self, start: int, end: int) -> None:
        self.lines[start:end] = [_CODE_MARK + line for line in self.lines[start:end]]
        self.blocks.add("code", start, end)

    def _text_kind(self, line: str) -> BlockKind:
        if line.lstrip().startswith(">>> "):
            return "code"
        return "list" if _ITEM.match(line) else "paragraph"


def _said(name: str, argument: str) -> str:
    """The words a directive's own line stands for; empty when it only sets a frame."""
    if name in _NOTES:
        label = {"seealso": "See also", "todo": "To do"}.get(name, name.capitalize())
        return f"{label}: {argument}".rstrip()
    if name in _VERSIONS:
        return f"{_VERSIONS[name]} version {argument}"
    if name in _CODE or name in ("only", "figure", "container", "rst-class"):
        return ""
    return argument


def _plain(title: str) -> str:
    return " ".join(title.replace("``", "").replace("`", "").replace("**", "").split())
