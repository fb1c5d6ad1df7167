"""Configuration files: shown line for line; a long one is parted where its own sections begin. Pure.

Called by `dispatch` for JSON, YAML, TOML, INI and their kin. Nothing is parsed: nesting costs no stack, and a file
with a fault is still read. A section becomes a heading only where the syntax leaves no doubt, and only in a file too
long for one passage. JSON without line breaks is given some.
"""

import re
from pathlib import PurePosixPath

from app.ingest.blocks import Extraction
from app.ingest.cutting import count_tokens
from app.ingest.extract.lines import LineBlocks
from app.ingest.extract.plain import extract_plain, mime_of

_WHOLE = 300
"""Estimated tokens up to which a file, or a section of one, is not parted."""
_MAX_LEVEL = 2

_KEY = re.compile(r"""(\s*)(["']?)([\w./][\w./ @*-]{0,80})\2:\s*(?:[&!][\w.-]+\s*)?(#.*)?$""")
_YAML_LINE = re.compile(r"""\s*["']?[\w./][^:#]{0,80}:(?:\s|$)""")
_JSON_KEY = re.compile(r'(\s*)"((?:[^"\\]|\\.){1,80})"\s*:\s*[\[{]\s*$')
_JSON_LINE = re.compile(r'\s*"(?:[^"\\]|\\.)*"\s*:')
_SECTION = re.compile(r"\[{1,2}\s*([\w.:\-\"'/@* ]{1,120}?)\s*\]{1,2}\s*(?:[#;].*)?$")
_SETTING = re.compile(r"\s*[\w.\-\"' ]{1,80}\s*[=:]")
_COMMENT = ("#", ";", "//", "---", "...", "%")

_MAX_TIDIED = 2_000_000
_MAX_DEPTH = 60
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+|"')


def extract_settings(text: str, encoding: str, name: str) -> Extraction:
    """Reads a configuration file. No title."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix == ".json" and "\n" not in text.strip():
        text = _with_lines(text)
    lines = LineBlocks(text.split("\n"))
    if count_tokens(text) <= _WHOLE:
        return extract_plain(text, encoding, name)
    if suffix == ".json":
        is_parted = _Nested(lines, _JSON_KEY, _JSON_LINE).part(0, len(lines.lines), 1)
    elif suffix in (".yaml", ".yml"):
        is_parted = _Nested(lines, _KEY, _YAML_LINE).part(0, len(lines.lines), 1)
    else:
        is_parted = _by_sections(lines)
    if not is_parted:
        return extract_plain(text, encoding, name)
    canonical, blocks = lines.build()
    return Extraction(canonical, "", mime_of(name), encoding, None, None, blocks)


def _by_sections(blocks: LineBlocks) -> bool:
    """`[name]` at the margin, outside strings of several lines; False for a file without settings below such lines."""
    lines = blocks.lines
    is_inside = ""
    starts: list[tuple[int, str]] = []
    for index, line in enumerate(lines):
        for quote in ('"""', "'''"):
            if is_inside in ("", quote) and line.count(quote) % 2:
                is_inside = "" if is_inside else quote
        match = None if is_inside else _SECTION.match(line)
        if match:
            starts.append((index, match[1].strip("\"'")))
    settings = sum(1 for line in lines if _SETTING.match(line))
    if not starts or settings < len(starts) // 2:
        return False
    blocks.add("code", 0, starts[0][0])
    for (start, label), end in zip(starts, [*(start for start, _ in starts[1:]), len(lines)], strict=True):
        blocks.add("heading", start, start + 1, level=1, label=label)
        blocks.add("code", start + 1, end)
    return True


class _Nested:
    """Files whose sections are keys with more deeply indented lines below them."""

    def __init__(self, blocks: LineBlocks, key: re.Pattern[str], line: re.Pattern[str]) -> None:
        self._blocks = blocks
        self._lines = blocks.lines
        self._key = key
        self._line = line

    def part(self, first: int, end: int, level: int) -> bool:
        """Adds the sections between two lines; False, with nothing added, where they can't be told for certain."""
        if level > _MAX_LEVEL or count_tokens("\n".join(self._lines[first:end])) <= _WHOLE:
            return False
        starts = self._keys(first, end)
        if len(starts) < 2:
            return False
        self._blocks.add("code", first, starts[0])
        for start, stop in zip(starts, [*starts[1:], end], strict=True):
            match = self._key.match(self._lines[start])
            label = match.groups()[-2 if self._key is _KEY else -1] if match else ""
            self._blocks.add("heading", start, start + 1, level=level, label=label or "")
            if not self.part(start + 1, stop, level + 1):
                self._blocks.add("code", start + 1, stop)
        return True

    def _keys(self, first: int, end: int) -> list[int]:
        """Lines of the keys at the shallowest indentation that hold something; none if a plain setting follows one,
        for that would be filed under it."""
        content = [index for index in range(first, end) if self._is_content(index)]
        if self._key is _JSON_KEY:
            content = [index for index in content if self._line.match(self._lines[index])]
        if not content:
            return []
        margin = _indent(self._lines[content[0]])
        if any(_indent(self._lines[index]) < margin for index in content):
            return []
        starts: list[int] = []
        for index in content:
            line = self._lines[index]
            if _indent(line) != margin:
                continue
            if self._key.match(line):
                starts.append(index)
            elif starts and not line.lstrip().startswith("- "):
                return []
        return starts

    def _is_content(self, index: int) -> bool:
        line = self._lines[index].strip()
        return bool(line) and not line.startswith(_COMMENT)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _with_lines(text: str) -> str:
    """JSON of one line, a value a line; its numbers and strings as they were. Left alone when too long or too deep."""
    if len(text) > _MAX_TIDIED:
        return text
    parts: list[str] = []
    depth = 0
    words = _JSON_TOKEN.findall(text)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in "[{":
            depth += 1
            if depth > _MAX_DEPTH:
                return text
            parts.append(word if following in ("]", "}") else word + _break(depth))
            depth -= following in ("]", "}")
        elif word in "]}":
            opened = parts and parts[-1] in ("[", "{")
            parts.append(word if opened else _break(depth := max(0, depth - 1)) + word)
        elif word == ",":
            parts.append("," + _break(depth))
        else:
            parts.append(": " if word == ":" else word)
    return "".join(parts)


def _break(depth: int) -> str:
    return "\n" + "  " * depth
