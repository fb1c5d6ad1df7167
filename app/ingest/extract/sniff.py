"""What a file truly is, by its first bytes; its name only tells text formats apart. Pure but for a zip's list of parts.

Called by `dispatch`. Owns no parsing.
"""

import re
from pathlib import PurePosixPath
from typing import Literal

from app.ingest.errors import IngestError
from app.ingest.extract.decode import is_binary
from app.ingest.extract.zip_guard import Source, opened, part_names

Family = Literal["markdown", "rst", "html", "plain", "table", "settings", "eml", "pdf", "docx", "xlsx", "pptx", "epub"]

HEAD_BYTES = 64 * 1024

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"})
_RST = frozenset({".rst", ".rest"})
_HTML = frozenset({".html", ".htm", ".xhtml", ".shtml"})
_TEMPLATES = frozenset({".php", ".j2", ".jinja", ".jinja2", ".vue", ".svelte", ".erb", ".ejs", ".tmpl", ".tpl", ".hbs"})
_TABLES = frozenset({".csv", ".tsv", ".tab"})
_SETTINGS = frozenset(
    {".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".service", ".timer", ".socket", ".mount", ".path"}
    | {".container", ".network", ".netdev", ".desktop", ".editorconfig", ".gitconfig", ".properties"}
)
_LATER = frozenset({".mbox", ".rtf", ".ps", ".eps"})
"""Formats that are text to look at but whose text is not what they say."""
_SEALED = frozenset({".pdf", ".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm", ".ppsx", ".epub"})
"""Names that promise a format with bytes of its own: text or an image under them is a damaged file."""

_LEAD = rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*+-->\s*)*+<"
"""What may stand before a page's first tag. Possessive: comments have one end each, or twenty of them in front of what
is no page would be tried in a million ways."""
_HTML_START = re.compile(_LEAD + rb"(?:!doctype\s+html|html[\s>])", re.I | re.S)
_HTML_PART = re.compile(
    _LEAD + rb"(?:head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|link|main|article|section)[\s>]",
    re.I | re.S,
)
"""How a page begins that leaves out what a browser adds: the tags of the MIME Sniffing Standard (section 7.1), and
others that pages begin with. Only where no name says more: Markdown and templates begin so, too."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OFFICE_PARTS: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("docx", re.compile(r"word/document\d*\.xml$")),
    ("xlsx", re.compile(r"xl/workbook\d*\.xml$")),
    ("pptx", re.compile(r"ppt/presentation\d*\.xml$")),
)
_BOOK_PART = "META-INF/container.xml"
_BLANK_LINE = re.compile(rb"\n\r?\n")
_FIELD_LINE = re.compile(rb"[!-9;-~]{1,70}[ \t]*:|[ \t]|$")
_MAIL_FIELD = re.compile(
    rb"^(from|to|cc|subject|date|message-id|received|mime-version|return-path|delivered-to|content-type):", re.I | re.M
)
_TRANSPORT = frozenset({b"message-id", b"received", b"mime-version", b"return-path", b"delivered-to"})
"""Header fields that programs write and people don't: a note that begins with "From:" is no mail."""


def sniff(head: bytes, source: Source, name: str) -> Family:
    """The family that reads a file, from its first `HEAD_BYTES` bytes and its name.

    Raises:
        IngestError: unsupported, encrypted (a locked office file), or corrupt (not what the name promises).
    """
    suffix = PurePosixPath(name.lower()).suffix
    if head.lstrip()[:5] == b"%PDF-" or (suffix == ".pdf" and b"%PDF-" in head[:1024]):
        return "pdf"
    if head.startswith(_ZIPS):
        return _sniff_zip(source, suffix)
    if head.startswith(_OLE):
        raise IngestError("encrypted" if _is_encrypted_package(source) else _otherwise(suffix))
    if _is_mail(head, suffix):
        return "eml"
    if is_binary(head):
        raise IngestError(_otherwise(suffix))
    return _sniff_text(head, suffix)


def _sniff_text(head: bytes, suffix: str) -> Family:
    is_page = suffix not in _TEMPLATES and _HTML_START.match(head)
    if suffix in _HTML or is_page or (not suffix and _HTML_PART.match(head)):
        return "html"
    if suffix in _SEALED or suffix == ".eml":
        raise IngestError("corrupt")
    if suffix in _LATER or head.startswith((b"{\\rtf", b"%!PS")):
        raise IngestError("unsupported")
    if suffix in _MARKDOWN:
        return "markdown"
    if suffix in _TABLES:
        return "table"
    if suffix in _SETTINGS:
        return "settings"
    return "rst" if suffix in _RST else "plain"


def _is_mail(head: bytes, suffix: str) -> bool:
    """Whether a text begins with a mail's header: fields only up to the first empty line, a sender among them, and one
    that programs write; a name ending in .eml makes up for that one."""
    header = head[: end.start() + 1] if (end := _BLANK_LINE.search(head)) else head
    lines = header.removeprefix(b"\xef\xbb\xbf").splitlines()
    if end is None and len(head) >= HEAD_BYTES:
        lines.pop()  # cut off in the middle
    if not lines or not all(_FIELD_LINE.match(line) for line in lines) or lines[0][:1] in b" \t":
        return False
    fields = {match[1].lower() for match in _MAIL_FIELD.finditer(header.removeprefix(b"\xef\xbb\xbf"))}
    return bool(fields) if suffix == ".eml" else b"from" in fields and bool(fields & _TRANSPORT)


def _sniff_zip(source: Source, suffix: str) -> Family:
    try:
        names = part_names(source)
    except IngestError:
        raise IngestError(_otherwise(suffix)) from None
    for family, part in _OFFICE_PARTS:
        if any(part.match(name) for name in names):
            return family
    if _BOOK_PART in names:
        return "epub"
    raise IngestError(_otherwise(suffix))


def _otherwise(suffix: str) -> Literal["corrupt", "unsupported"]:
    return "corrupt" if suffix in _SEALED else "unsupported"


def _is_encrypted_package(source: Source) -> bool:
    """Office files with a password are OLE containers with a stream of this name; its directory may lie anywhere."""
    overlap = b""
    with opened(source) as file:
        while data := file.read(1 << 20):
            if _ENCRYPTED_PACKAGE in overlap + data:
                return True
            overlap = data[-len(_ENCRYPTED_PACKAGE) :]
    return False
