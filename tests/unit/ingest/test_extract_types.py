"""What decides between families, and what is refused with which reason."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from app.ingest.chunking import chunk
from app.ingest.errors import REASONS, ExtractorClosedError, IngestError
from app.ingest.extract.dispatch import SizeLimits
from tests.unit.ingest.files import put, read, reason_of


def zipped(**parts: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("_", "/"), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.md", b"", "empty"),
        ("a.md", b" \n\t\r\n", "empty"),
        ("a.txt", b"\xff\xfe", "empty"),
        ("a.html", b"<p></p>", "no_text"),
        ("a.md", bytes(range(256)) * 40, "unsupported"),
        ("a.pdf", bytes(range(256)) * 40, "corrupt"),
        ("a.pdf", b"just words", "corrupt"),
        ("a.docx", b"just words", "corrupt"),
        ("a.pdf", b"%PDF-1.7\nbroken", "corrupt"),
        ("a.docx", zipped(x="1"), "corrupt"),
        ("a.docx", b"PK\x03\x04broken", "corrupt"),
        ("a.zip", zipped(x="1"), "unsupported"),
        ("a.xlsx", zipped(xl_workbook="1"), "corrupt"),
        ("a.xlsb", zipped(**{"xl_workbook.bin": "1"}), "unsupported"),
        ("a.pptx", b"just words", "corrupt"),
        ("a.epub", zipped(x="1"), "corrupt"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(60), "unsupported"),
        ("a.eml", b"Hello there,\nthis is no mail.\n", "corrupt"),
        ("a.mbox", b"From a@example.org Mon\nFrom: a@example.org\n\nHi", "unsupported"),
        ("a.txt", b"{\\rtf1 hello}", "unsupported"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    """The name is not trusted, and each kind of bad file has its own reason."""
    assert reason_of(put(tmp_path, "stored", data), name) == reason


@pytest.mark.parametrize(
    ("name", "data", "mime"),
    [
        ("page.txt", b"<!-- saved --> <!DOCTYPE html><html><body><p>x</p></body></html>", "text/html"),
        ("page.pdf", b"<html><body>x</body></html>", "text/html"),
        ("view.php", b"<html><?php echo 1 ?></html>", "text/plain"),
        ("a.HTM", b"<p>x", "text/html"),
        ("README", b"Hello there.", "text/plain"),
        ("a/b.MD", b"# x", "text/markdown"),
        ("a.rst", b"x\n=\n", "text/x-rst"),
        ("a.yml", b"a: 1", "application/yaml"),
        ("Dockerfile", b"FROM x", "text/plain"),
        ("deep.json", b"[" * 100_000, "application/json"),
    ],
)
def test_the_true_type_decides(tmp_path: Path, name: str, data: bytes, mime: str) -> None:
    """Bytes first; the suffix only tells text formats apart."""
    assert read(put(tmp_path, "stored", data), name).mime == mime


@pytest.mark.parametrize(("name", "text"), [("a.rst", ".. only a comment\n"), ("a.md", "<!-- only a comment -->\n")])
def test_a_file_of_nothing_but_comments_is_read_as_it_stands(tmp_path: Path, name: str, text: str) -> None:
    """It has text, so it must not fail."""
    extraction = read(put(tmp_path, name, text.encode()))

    assert extraction.text == text
    assert [draft.text for draft in chunk(extraction)] == [text.strip()]


def test_size_limits_are_kept(tmp_path: Path) -> None:
    """Bytes of the file, and characters of the text."""
    path = put(tmp_path, "a.txt", b"word " * 100)

    assert reason_of(path, limits=SizeLimits(max_bytes=100)) == "too_long"
    assert reason_of(path, limits=SizeLimits(max_chars=100)) == "too_long"
    assert reason_of(path, limits=SizeLimits(max_chars=400)) == "too_long"


def test_what_is_no_readable_file_is_never_waited_for(tmp_path: Path) -> None:
    """Gone, a folder, a pipe nobody writes to, a file without permission."""
    os.mkfifo(tmp_path / "pipe")
    locked = put(tmp_path, "locked.txt", b"x")
    locked.chmod(0)

    assert reason_of(tmp_path / "nothing.md") == "vanished"
    assert reason_of(put(tmp_path, "file", b"x") / "below.md") == "vanished"
    assert reason_of(tmp_path) == "unreadable"
    assert reason_of(tmp_path / "pipe") == "unreadable"
    if os.geteuid() != 0:  # root reads everything
        assert reason_of(locked) == "unreadable"


def test_reasons_have_codes_and_say_whether_trying_again_helps() -> None:
    """A fact about the bytes stays one; a crash or a missing permission may pass."""
    assert IngestError("corrupt").code == "ingest_corrupt"
    assert not IngestError("corrupt").retryable
    assert IngestError("timeout").retryable
    assert ExtractorClosedError().retryable
    assert {"empty", "no_text", "encrypted", "corrupt", "unsupported", "too_large", "timeout"} < REASONS


def test_a_title_as_long_as_a_page_is_cut(tmp_path: Path) -> None:
    """It is embedded with every passage; the text itself keeps all of it."""
    extraction = read(put(tmp_path, "a.md", b"# " + b"word " * 200 + b"\n\nText.\n"))

    assert len(extraction.title) <= 160
    assert extraction.title.endswith("word…")
    assert chunk(extraction)[0].heading == extraction.title
    assert extraction.text.count("word") == 200
    assert len(read(put(tmp_path, "b.md", b"# " + b"x" * 500)).title) == 160
