"""A sentence of a document as a line of Markdown that shows the same words. Pure.

Owns taking away markup that would not survive the move: links to other files,
footnotes, shortcodes, tags, table bars, brackets that would read as citation markers. Words, numbers and code stay
exactly as they are. Used by `app.rag.quoting`.
"""

import re

from app.render.sentences import code_spans

_DROPPED = re.compile(
    r"!\[[^\]\n]*\]\([^)\n]*\)|\[\^[^\]\n]+\]|\[[\w#.-]+\]_|\{\{[<%].*?[>%]\}\}|\{[#:][^{}\n]*\}"
    r"|</?(?:a|abbr|b|br|code|details|div|em|i|img|kbd|li|ol|p|pre|small|span|strong|sub|summary|sup|table|t[dhr]|tbody|"
    r"thead|u|ul|Tabs|TabItem)\b[^<>\n]*>",
)
_LINK = re.compile(r"\[(?P<text>[^\[\]\n]+)\](?:\((?:[^()\n]|\([^()\n]*\))*\)|\[[^\[\]\n]*\])")
_OPENING = re.compile(r"^(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|[-=_*]{3,}\s*$|~{3,})|^(\d{1,9})(?=[.)](?:\s|$))")
_BARS = re.compile(r"\s*\|\s*")


def quoted(sentence: str) -> str:
    """`sentence` as one line. May be empty when it was nothing but markup."""
    line = " ".join(sentence.split())
    parts: list[str] = []
    at = 0
    for start, end in code_spans("x" + line):
        parts.extend((_prose(line[at : start - 1]), line[start - 1 : end - 1]))
        at = end - 1
    line = " ".join("".join([*parts, _prose(line[at:])]).split())
    if line.endswith("::"):
        line = line[:-1]
    return _OPENING.sub(lambda found: f"{found.group(1) or ''}\\", line)


def quoted_row(row: str) -> str:
    """A table row as one line, its cells parted by a middle dot."""
    cells = [quoted(cell) for cell in _BARS.split(" ".join(row.split()))]
    return " · ".join(cell for cell in cells if cell)


def quoted_code(block: str, text: str, start: int) -> str:
    """A block of code as a fenced one, its indentation moved to the left. `text` and `start` say where it stands, so
    that the indentation of its first line is known."""
    first = text.rfind("\n", 0, start) + 1
    lines = (text[first:start] + block).splitlines() if not text[first:start].strip() else block.splitlines()
    language = ""
    if opening := re.match(r"\s*(`{3,}|~{3,})\s*([\w+#.-]*)", lines[0] if lines else ""):
        language = opening.group(2)
        closed = len(lines) > 1 and re.fullmatch(rf"\s*{opening.group(1)}+\s*", lines[-1])
        lines = lines[1:-1] if closed else lines[1:]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    body = "\n".join(line[indent:].rstrip() for line in lines).strip("\n")
    longest = max((len(run) for run in re.findall(r"`{3,}", body)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def _prose(text: str) -> str:
    """What stands outside of code: no links, no tags, nothing that reads as a marker or as HTML."""
    text = _LINK.sub(r"\g<text>", _DROPPED.sub("", text))
    text = re.sub(r"\[(?=\d)", r"\\[", text)
    return re.sub(r"<(?=[A-Za-z/!?])(?!https?:)", r"\\<", text)
