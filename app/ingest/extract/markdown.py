"""Markdown as people keep it: front matter, Hugo and MkDocs shortcodes, MDX components, HTML in between.

The canonical text keeps the file's lines, so that `path:lines` is right in both; only machine noise within a line goes
(imports of components, tags that stand alone, comments, the padding of tables). Called by `dispatch`.
"""

import re

from app.ingest.blocks import MAX_LABEL_CHARS, Extraction
from app.ingest.extract.lines import LineBlocks

_FENCE = re.compile(r"[ \t>]*(?:[-*+] |\d+[.)] )?\s*(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_ATX_TAIL = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_ANCHOR = re.compile(r"\s*\{[#.:][^}]*\}\s*$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_CONTAINER = re.compile(r"(?:!!!|\?\?\?|===|:::)")
_IMPORT = re.compile(r"(?:import\s.+\sfrom\s|import\s|export\s.+\sfrom\s)['\"][^'\"]+['\"];?\s*$")
_COMPONENT_LINE = re.compile(r"\s*(?:</?[A-Z][\w.]*(?:\s[^<>]*)?/?>\s*)+$")
_SHORTCODE = re.compile(r"\{\{[<%]\s*(/?)\s*([\w./-]+)\s*(.*?)\s*/?[>%]\}\}")
_INLINE_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*`]{1,3}|<[^>]{1,80}>")
_LOOKS = re.compile(r"\s*\b(?:icon|context|class|style|width|height|id)=(?:\"[^\"]*\"|'[^']*')")
_FRONT_SETTING = re.compile(r"\s*(?:#.*|[\w.-]+\s*[:=]\s*(?:\"\"|''|\[\]|true|false|-?\d{1,7})?\s*(?:#.*)?)$")
"""A comment, or a key whose value says nothing to a reader: empty, a switch, a small number."""
_FRONT_TITLE = re.compile(r"title\s*[:=]\s*(.+?)\s*$", re.IGNORECASE)
_PADDING = re.compile(r" {2,}")
_DASHES = re.compile(r"-{4,}")


def extract_markdown(text: str, encoding: str) -> Extraction:
    """Reads a Markdown file. Title: the front matter's, else the first level-one heading, else the first heading."""
    lines = text.split("\n")
    scanner = _Scanner(_without_comments(lines) if "<!--" in text else lines)
    scanner.run()
    canonical, blocks = scanner.blocks.build()
    title = scanner.title
    if not title:
        headings = [block for block in blocks if block.kind == "heading"]
        first = next((block for block in headings if block.level == 1), headings[0] if headings else None)
        title = first.label if first else ""
    return Extraction(canonical, title, "text/markdown", encoding, None, None, blocks)


class _Scanner:
    """One pass over the lines; each `_take_…` begins at `self.at` and leaves it behind what it took."""

    def __init__(self, lines: list[str]) -> None:
        self.blocks = LineBlocks(lines)
        self.lines = self.blocks.lines
        self.title = ""
        self.at = 0
        self._paragraph = 0
        self._in_container = False

    def run(self) -> None:
        """Reads everything."""
        self._take_front_matter()
        self._paragraph = self.at
        lines = self.lines
        while self.at < len(lines):
            line = lines[self.at]
            if not line.strip():
                self._end_paragraph()
                self.at += 1
                self._paragraph = self.at
            elif not self._take_special(line):
                self.at += 1
        self._end_paragraph()

    def _take_special(self, line: str) -> bool:
        """Takes what is not a paragraph; False leaves the line to the paragraph it stands in."""
        lead = line.lstrip()[0]
        if lead in "`~>-*+0123456789" and (match := _FENCE.match(line)):
            return self._take_fence(match[1])
        if lead == "#" and (match := _ATX.match(line)):
            return self._take_heading(line[match.end() :], len(match[1]))
        if lead in "=-" and self.at > self._paragraph and (match := _SETEXT.match(line)):
            return self._take_underlined(1 if match[1][0] == "=" else 2)
        if "|" in line and self.at + 1 < len(self.lines) and self._is_delimiter(self.lines[self.at + 1]):
            return self._take_table()
        if lead in "-*+0123456789" and _ITEM.match(line):
            return self._take_list()
        if self._paragraph == self.at and line.startswith(("    ", "\t")):
            return self._take_indented()
        self._tidy(line)
        return False

    def _tidy(self, line: str) -> None:
        """Rewrites a line of prose without shortcode and component noise."""
        if self.at == self._paragraph:
            self._in_container = _CONTAINER.match(line) is not None
        if "{{" in line:
            line = _SHORTCODE.sub(_shortcode_text, line)
        is_import = ("from" in line or "import" in line) and _IMPORT.match(line)
        if is_import or ("<" in line and _COMPONENT_LINE.match(line)):
            line = ""
        self.lines[self.at] = line

    def _end_paragraph(self) -> None:
        if self._paragraph < self.at:
            self.blocks.add("paragraph", self._paragraph, self.at)

    def _close(self, end: int) -> bool:
        """Ends a special block at `end`; the next paragraph begins there."""
        self.at = self._paragraph = end
        return True

    def _take_front_matter(self) -> None:
        mark = self.lines[0].rstrip() if self.lines else ""
        if mark not in ("---", "+++"):
            return
        for end in range(1, min(len(self.lines), 400)):
            line = self.lines[end]
            if line.rstrip() == mark:
                for at in range(1, end):
                    if _FRONT_SETTING.match(self.lines[at]) and not self._has_children(at, end):
                        self.blocks.blank(at, at + 1)
                self.blocks.blank(0, 1)
                self.blocks.blank(end, end + 1)
                self.blocks.add("paragraph", 0, end + 1)
                self.at = end + 1
                return
            if not self.title and (match := _FRONT_TITLE.match(line)):
                self.title = _plain(match[1].strip().strip("\"'"))
        self.title = ""

    def _has_children(self, at: int, end: int) -> bool:
        """Whether the next line of the front matter belongs to the key on this one (`tags:` above `- backup`)."""
        following = self.lines[at + 1] if at + 1 < end else ""
        return following.lstrip().startswith("- ") and not self.lines[at].lstrip().startswith("#")

    def _take_fence(self, opening: str) -> bool:
        self._end_paragraph()
        self._in_container = self._in_container and self.lines[self.at][0] in " \t"
        mark, end = opening, self.at + 1
        while end < len(self.lines):
            candidate = self.lines[end].lstrip(" \t>")
            if candidate.startswith(mark) and not candidate.rstrip().strip(mark[0]):
                end += 1
                break
            end += 1
        self.blocks.add("code", self.at, min(end, len(self.lines)))
        return self._close(end)

    def _take_heading(self, rest: str, level: int) -> bool:
        self._end_paragraph()
        self._in_container = False
        label = _plain(_SHORTCODE.sub(_shortcode_text, _ATX_TAIL.sub("", rest)))
        self.blocks.add("heading", self.at, self.at + 1, level=level, label=label)
        return self._close(self.at + 1)

    def _take_underlined(self, level: int) -> bool:
        if self.at - self._paragraph > 3:
            return False
        label = _plain(" ".join(line.strip() for line in self.lines[self._paragraph : self.at]))
        if len(label) > MAX_LABEL_CHARS:
            return False
        self._in_container = False
        self.blocks.add("heading", self._paragraph, self.at + 1, level=level, label=label)
        return self._close(self.at + 1)

    def _is_delimiter(self, line: str) -> bool:
        return "-" in line and "|" in line and _DELIMITER.match(line) is not None

    def _take_table(self) -> bool:
        self._end_paragraph()
        self._in_container = self._in_container and self.lines[self.at][0] in " \t"
        end = self.at
        while end < len(self.lines) and "|" in self.lines[end]:
            row = _PADDING.sub(" ", self.lines[end].rstrip())
            self.lines[end] = _DASHES.sub("---", row) if end == self.at + 1 else row
            end += 1
        self.blocks.add("table", self.at, end)
        return self._close(end)

    def _take_list(self) -> bool:
        """Items and what is indented below them; ends before a fence, a heading or prose at the margin."""
        self._end_paragraph()
        self._in_container = True
        start = end = self.at
        while end < len(self.lines):
            line = self.lines[end]
            if not line.strip():
                end += 1
                continue
            after_blank = end > start and not self.lines[end - 1].strip()
            if _FENCE.match(line) or _ATX.match(line) or (after_blank and not self._continues_list(line)):
                break
            self.at = end
            self._tidy_item(line)
            end += 1
        self.blocks.add("list", start, end)
        return self._close(end)

    def _continues_list(self, line: str) -> bool:
        return line[0] in " \t" or _ITEM.match(line) is not None

    def _tidy_item(self, line: str) -> None:
        if "{{" in line:
            self.lines[self.at] = _SHORTCODE.sub(_shortcode_text, line)

    def _take_indented(self) -> bool:
        """Four columns in: code, unless it is the inside of a list item, a tab or an admonition."""
        end = self.at
        while end < len(self.lines) and (not self.lines[end].strip() or self.lines[end].startswith(("    ", "\t"))):
            if _FENCE.match(self.lines[end]):
                break
            end += 1
        if end == self.at:
            return False
        self.blocks.add("paragraph" if self._in_container else "code", self.at, end)
        return self._close(end)


def _without_comments(lines: list[str]) -> list[str]:
    """Blanks HTML comments that end somewhere, but in code fences, where one may be shown."""
    last_end = max((index for index, line in enumerate(lines) if "-->" in line), default=-1)
    fence, in_comment = "", False
    kept: list[str] = []
    for index, line in enumerate(lines):
        match = _FENCE.match(line) if not in_comment and ("```" in line or "~~~" in line) else None
        if match and not fence:
            fence = match[1]
        elif match and line.strip().startswith(fence):
            fence = ""
        if not fence and index <= last_end and (in_comment or "<!--" in line):
            line, in_comment = _cut_comments(line, in_comment)
        kept.append(line)
    return kept


def _cut_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    """A line without its comments, and whether one is still open at its end."""
    kept: list[str] = []
    at = 0
    while True:
        found = line.find("-->" if in_comment else "<!--", at)
        if not in_comment:
            kept.append(line[at:] if found < 0 else line[at:found])
        if found < 0:
            return "".join(kept), in_comment
        at = found + (3 if in_comment else 4)
        in_comment = not in_comment


def _shortcode_text(match: re.Match[str]) -> str:
    """`{{< confkey type="string" >}}` → `type="string"`; a lone argument without its quotes; closing tags go."""
    closing, _, arguments = match.groups()
    if closing:
        return ""
    arguments = _LOOKS.sub("", arguments).strip()
    quoted = len(arguments) > 1 and arguments[0] == arguments[-1] == '"' and '"' not in arguments[1:-1]
    return arguments[1:-1] if quoted else arguments


def _plain(label: str) -> str:
    """A heading as a reader says it: no links, emphasis, tags or `{#anchor}`."""
    return " ".join(_INLINE_MARKS.sub(lambda m: m[1] or "", _ANCHOR.sub("", label)).split())
