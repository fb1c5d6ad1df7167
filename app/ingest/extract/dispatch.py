"""One file to one extraction: opens it safely, finds its true type, hands it to its family.

Called by `child`, and by unit tests in process. Owns the checks every file gets; no family opens a path unchecked.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePosixPath

from app.ingest.blocks import Block, Extraction, shortened
from app.ingest.errors import IngestError
from app.ingest.extract import json_text
from app.ingest.extract.csv_table import extract_csv
from app.ingest.extract.decode import decode, is_blank
from app.ingest.extract.html import extract_html
from app.ingest.extract.markdown import extract_markdown
from app.ingest.extract.pdf_lines import PageImage, PageLines
from app.ingest.extract.plain import extract_plain
from app.ingest.extract.rst import extract_rst
from app.ingest.extract.settings_file import extract_settings
from app.ingest.extract.sniff import HEAD_BYTES, Family, sniff
from app.ingest.extract.zip_guard import Source, size_of

OnPage = Callable[[int, int], None]

_ZIPPED = frozenset({"docx", "xlsx", "pptx", "epub"})


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The largest file in bytes, the longest canonical text in characters, the most chunks of one document."""

    max_bytes: int = 512 * 1024 * 1024
    max_chars: int = 40_000_000
    max_chunks: int = 60_000


def extract(
    path: Path,
    name: str,
    limits: SizeLimits,
    on_page: OnPage | None = None,
    recognised: Mapping[int, PageLines] | None = None,
    charset: str | None = None,
) -> Extraction:
    """Reads the file at `path`, which its owner calls `name`. `recognised` holds what was found in pictures of a PDF's
    pages, by index from 0; `charset` is what a server called a text's encoding.

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
        extraction = _from(family, path, on_page, recognised)
    else:
        extraction = _extract(path, family, name, limits, charset)
    if len(extraction.text) > limits.max_chars:
        raise IngestError("too_long")
    return replace(extraction, title=shortened(extraction.title))


def picture_of(path: Path, index: int) -> PageImage:
    """The page `index` (from 0) of the PDF at `path`, drawn.

    Raises:
        IngestError: as `extract`; unsupported for another kind of file.
    """
    size, head = _open_checked(path)
    if size == 0 or sniff(head, path, "") != "pdf":
        raise IngestError("unsupported")
    picture: PageImage = import_module("app.ingest.extract.page_image").page_image(path, index)
    return picture


def _extract(source: Source, family: Family, name: str, limits: SizeLimits, charset: str | None = None) -> Extraction:
    if family == "pdf" or family in _ZIPPED:
        return _from(family, source)
    if family == "eml":
        return _from(family, _bytes(source), _attachment_reader(limits))
    if size_of(source) > 4 * limits.max_chars:
        raise IngestError("too_long")
    return _extract_text(_bytes(source), family, name, charset)


def _from(family: Family, *arguments: object) -> Extraction:
    """What the module of a family reads; it is imported when its first file comes."""
    extraction: Extraction = getattr(import_module(f"app.ingest.extract.{family}"), f"extract_{family}")(*arguments)
    return extraction


def _attachment_reader(limits: SizeLimits) -> Callable[[bytes, str], Extraction]:
    """Reads what hangs on a mail, as a file of that name would be read, while all of it together stays within half of
    what a document may hold. Mail under another name is read as text: `eml` follows messages."""
    left = limits.max_chars // 2

    def read_part(data: bytes, name: str) -> Extraction:
        nonlocal left
        if not data:
            raise IngestError("empty")
        family = sniff(data[:HEAD_BYTES], data, name)
        if family == "eml":
            family = "plain"
        extraction = _extract(data, family, name, limits)
        if len(extraction.text) > left:
            raise IngestError("too_long")
        left -= len(extraction.text)
        return extraction

    return read_part


def _bytes(source: Source) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()


def _extract_text(data: bytes, family: Family, name: str, charset: str | None) -> Extraction:
    if family == "html":
        return extract_html(data, charset)
    text, encoding = decode(data, charset)
    if is_blank(text):
        raise IngestError("empty")
    if PurePosixPath(name.lower()).suffix in json_text.SUFFIXES:
        text = json_text.with_letters(text)
    if family == "markdown":
        extraction = extract_markdown(text, encoding)
    elif family == "rst":
        extraction = extract_rst(text, encoding)
    elif family == "settings":
        extraction = extract_settings(text, encoding, name)
    else:
        table = extract_csv(text, encoding, name) if family == "table" else None
        extraction = table or extract_plain(text, encoding, name)
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
