"""Whether a zip archive may be opened at all: its parts counted, sized and unpacked once with nothing kept.

Called by `sniff`, and by the families of zipped formats before any parser sees the archive. Owns no format.
"""

import io
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from app.ingest.errors import IngestError

MAX_ENTRIES = 10_000
MAX_RATIO = 100
MAX_UNPACKED = 256 * 1024 * 1024
RATIO_FREE = 8 * 1024 * 1024
"""Bytes below which the ratio is not asked: a page of one repeated line compresses 200:1 and hurts nobody."""

_READ = 256 * 1024
_ENCRYPTED_FLAG = 0x1
_DTD_MARKS = (b"<!DOCTYPE", b"<!ENTITY", "<!DOCTYPE".encode("utf-16-le"), "<!DOCTYPE".encode("utf-16-be"))


Source = Path | bytes
"""A file as it lies, or as it came inside another one."""


def opened(source: Source) -> BinaryIO:
    """A source as a file to read."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def size_of(source: Source) -> int:
    """Its bytes."""
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def part_names(source: Source) -> list[str]:
    """Names of a zip's parts.

    Raises:
        IngestError: corrupt when it is no readable zip.
    """
    try:
        with opened(source) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, UnicodeDecodeError) as error:
        raise IngestError("corrupt") from error


def check_zip(source: Source, *, document_types: bool = False) -> None:
    """Unpacks every part into nothing and adds up what really came out.

    Declared sizes can lie, and parts can overlap, so both are checked. XML parts with a document type are refused
    unless `document_types` says that the format has them: no office format does, and entities are declared there.

    Raises:
        IngestError: too_long (a bomb), encrypted, or corrupt.
    """
    try:
        with opened(source) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            packed = size_of(source)
            _check_sizes(len(entries), sum(entry.file_size for entry in entries), packed)
            if any(entry.flag_bits & _ENCRYPTED_FLAG for entry in entries):
                raise IngestError("encrypted")
            unpacked = 0
            for entry in entries:
                is_checked = not document_types and entry.filename.lower().endswith((".xml", ".rels"))
                unpacked = _unpack(archive, entry, unpacked, packed, is_checked=is_checked)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, OSError) as error:
        raise IngestError("corrupt") from error


def _check_sizes(entries: int, unpacked: int, packed: int) -> None:
    if entries > MAX_ENTRIES or unpacked > MAX_UNPACKED:
        raise IngestError("too_long")
    if unpacked > RATIO_FREE and unpacked > MAX_RATIO * packed:
        raise IngestError("too_long")


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, unpacked: int, packed: int, *, is_checked: bool) -> int:
    """Reads one part; returns the bytes unpacked so far."""
    tail = b""
    with archive.open(entry) as part:
        while data := part.read(_READ):
            unpacked += len(data)
            _check_sizes(0, unpacked, packed)
            if is_checked:
                window = tail + data
                if any(mark in window for mark in _DTD_MARKS):
                    raise IngestError("corrupt")
                tail = data[-32:]
    return unpacked
