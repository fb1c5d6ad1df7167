"""Verbs of the extraction tests: put a file, read it, ask for its reason."""

from pathlib import Path

import pytest

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.dispatch import SizeLimits, extract


def read(path: Path, name: str | None = None, limits: SizeLimits | None = None) -> Extraction:
    return extract(path, name or path.name, limits or SizeLimits())


def reason_of(path: Path, name: str | None = None, limits: SizeLimits | None = None) -> str:
    with pytest.raises(IngestError) as caught:
        read(path, name, limits)
    return caught.value.reason


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path
