"""One file to one extraction: opens it safely, finds its true type, hands it to its family.

Called by `child`, and by unit tests in process. Owns the checks every file gets; no family opens a path unchecked.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from app.ingest.blocks import Block, Extraction, shortened
from app.ingest.errors import IngestError
from app.ingest.extract.decode import decode
from app.ingest.extract.html import extract_html
from app.ingest.extract.markdown import extract_markdown
from app.ingest.extract.plain import extract_plain
from app.ingest.extract.rst import extract_rst
from app.ingest.extract.sniff import HEAD_BYTES, Family, sniff

OnPage = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The largest file in bytes, the longest canonical text in characters, the most chunks of one document."""

    max_bytes: int = 512 * 1024 * 1024
    max_chars: int = 40_000_000
    max_chunks: int = 60_000


def extract(path: Path, name: str, limits: SizeLimits, on_page: OnPage | None = None) -> Extraction:
    """Reads the file at `path`, which its owner calls `name`.

    Raises:
        IngestError: with any reason but timeout.
    """
    size, head = _open_checked(path)
    if size == 0:
        raise IngestError("empty")
    if size > limits.max_bytes:
        raise IngestError("too_long")
    family = sniff(head, path, name)
    if family == "pdf":
        extraction = import_module("app.ingest.extract.pdf").extract_pdf(path, on_page)
    elif family == "docx":
        extraction = import_module("app.ingest.extract.docx").extract_docx(path)
    else:
        if size > 4 * limits.max_chars:
            raise IngestError("too_long")
        extraction = _extract_text(path.read_bytes(), family, name)
    if len(extraction.text) > limits.max_chars:
        raise IngestError("too_long")
    return replace(extraction, title=shortened(extraction.title))


def _extract_text(data: bytes, family: Family, name: str) -> Extraction:
    if family == "html":
        return extract_html(data)
    text, encoding = decode(data)
    if not text.strip():
        raise IngestError("empty")
    if family == "markdown":
        extraction = extract_markdown(text, encoding)
    elif family == "rst":
        extraction = extract_rst(text, encoding)
    else:
        extraction = extract_plain(text, encoding, name)
    return extraction if extraction.blocks else _as_it_stands(text, extraction)


def _as_it_stands(text: str, extraction: Extraction) -> Extraction:
    """A file of nothing but comments or directives: better its source than nothing."""
    stripped = text.strip()
    start = text.index(stripped)
    block = Block("code", stripped, 0, start, start + len(stripped))
    return Extraction(text, extraction.title, extraction.mime, extraction.encoding, None, None, (block,))


def _open_checked(path: Path) -> tuple[int, bytes]:
    """Size and first bytes of a regular file; never waits on a pipe or device that took its place."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise IngestError("vanished" if error.errno in (errno.ENOENT, errno.ENOTDIR) else "unreadable") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise IngestError("unreadable")
        return status.st_size, os.read(fd, HEAD_BYTES)
    except OSError as error:
        raise IngestError("unreadable") from error
    finally:
        os.close(fd)
