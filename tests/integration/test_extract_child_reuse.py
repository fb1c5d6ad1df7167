"""The extraction child is kept from document to document, however much memory the app itself holds."""

from pathlib import Path

import psutil

from app.ingest.extract.extractor import Extractor

APP_BYTES = 400 * 1024 * 1024


def test_the_child_is_kept_although_the_app_is_large(tmp_path: Path) -> None:
    """A fork's peak memory is its parent's: an app with an embedder loaded once had every document start a process."""
    held = bytearray(APP_BYTES)
    held[::4096] = b"x" * len(held[::4096])
    path = tmp_path / "a.md"
    path.write_text("# Kept\n\nThe same process reads the next one, too.\n")
    extractor = Extractor()
    try:
        seen: set[int] = set()
        for _ in range(3):
            extractor.extract(path, path.name)
            seen |= {
                child.pid for child in psutil.Process().children() if "app.ingest.extract.child" in child.cmdline()
            }
        assert len(seen) == 1
    finally:
        extractor.close()
        del held
