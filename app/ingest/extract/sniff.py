"""What a file truly is, by its first bytes; its name only tells text formats apart. Pure but for a zip's list of parts.

Called by `dispatch`. Owns no parsing.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Literal

from app.ingest.errors import IngestError
from app.ingest.extract.decode import is_binary
from app.ingest.extract.zip_guard import part_names

Family = Literal["markdown", "rst", "html", "plain", "pdf", "docx"]

HEAD_BYTES = 64 * 1024

_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"})
_RST = frozenset({".rst", ".rest"})
_HTML = frozenset({".html", ".htm", ".xhtml", ".shtml"})
_TEMPLATES = frozenset({".php", ".j2", ".jinja", ".jinja2", ".vue", ".svelte", ".erb", ".ejs", ".tmpl", ".tpl", ".hbs"})
_LATER = frozenset({".eml", ".mbox", ".rtf", ".ps", ".eps"})
"""Formats that are text to look at but whose text is not what they say."""
_SEALED = frozenset({".pdf", ".docx", ".docm"})
"""Names that promise a format with bytes of its own: text or an image under them is a damaged file."""

_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html[\s>])", re.I | re.S
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_WORD_PART = re.compile(r"word/document\d*\.xml$")


def sniff(head: bytes, path: Path, name: str) -> Family:
    """The family that reads a file, from its first `HEAD_BYTES` bytes and its name.

    Raises:
        IngestError: unsupported, encrypted (a locked office file), or corrupt (not what the name promises).
    """
    suffix = PurePosixPath(name.lower()).suffix
    if head.lstrip()[:5] == b"%PDF-" or (suffix == ".pdf" and b"%PDF-" in head[:1024]):
        return "pdf"
    if head.startswith(_ZIPS):
        return _sniff_zip(path, suffix)
    if head.startswith(_OLE):
        raise IngestError("encrypted" if _is_encrypted_package(path) else _otherwise(suffix))
    if is_binary(head):
        raise IngestError(_otherwise(suffix))
    return _sniff_text(head, suffix)


def _sniff_text(head: bytes, suffix: str) -> Family:
    if suffix in _HTML or (suffix not in _TEMPLATES and _HTML_START.match(head)):
        return "html"
    if suffix in _SEALED:
        raise IngestError("corrupt")
    if suffix in _LATER or head.startswith((b"{\\rtf", b"%!PS")):
        raise IngestError("unsupported")
    if suffix in _MARKDOWN:
        return "markdown"
    return "rst" if suffix in _RST else "plain"


def _sniff_zip(path: Path, suffix: str) -> Family:
    try:
        names = part_names(path)
    except IngestError:
        raise IngestError(_otherwise(suffix)) from None
    if any(_WORD_PART.match(part) for part in names):
        return "docx"
    raise IngestError(_otherwise(suffix))


def _otherwise(suffix: str) -> Literal["corrupt", "unsupported"]:
    return "corrupt" if suffix in _SEALED else "unsupported"


def _is_encrypted_package(path: Path) -> bool:
    """Office files with a password are OLE containers with a stream of this name; its directory may lie anywhere."""
    overlap = b""
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            if _ENCRYPTED_PACKAGE in overlap + data:
                return True
            overlap = data[-len(_ENCRYPTED_PACKAGE) :]
    return False
