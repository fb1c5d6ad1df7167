"""Names from outside: safe to store, show, log and send, whatever they were."""

import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.filenames import NAME_MAX_BYTES, PATH_MAX_CHARS, clean_name, skip_reason
from app.logs import kv

NASTY = st.text(
    st.one_of(st.characters(), st.sampled_from("../\\\0\r\n\"'%:~\u202e\u2066\u200b\ufeff\ud800 ")), max_size=300
)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("raid.md", "raid.md"),
        ("guides/disks/raid.md", "guides/disks/raid.md"),
        ("../../etc/passwd", "passwd"),
        ("guides/../../x.md", "x.md"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\me\\plan.docx", "plan.docx"),
        ("\\\\server\\share\\plan.docx", "plan.docx"),
        ("a\r\nSet-Cookie: x.md", "aSet-Cookie: x.md"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("cafe\u0301.md", "caf\u00e9.md"),
        ("  spaced   out .md ", "spaced out .md"),
        ("notes. . .", "notes"),
        ("./a//b/./c.md", "a/b/c.md"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("\0\n", "unnamed"),
        ("CON", "CON"),
    ],
)
def test_a_name_is_cleaned(raw: str, clean: str) -> None:
    """A dropped folder's relative path is kept; one that is absolute or climbs is cut to its last part."""
    assert clean_name(raw) == clean


def test_a_long_name_keeps_its_ending() -> None:
    """Cut by bytes, between characters."""
    name = clean_name("ü" * 400 + ".pdf")
    assert name.endswith(".pdf")
    assert len(name.encode()) <= NAME_MAX_BYTES
    assert set(name.removesuffix(".pdf")) == {"ü"}
    deep = clean_name("/".join(["folder"] * 400) + "/raid.md")
    assert deep == "raid.md"


@given(NASTY)
def test_no_name_is_dangerous(raw: str) -> None:
    """Never empty, absolute, climbing, invisible or over its limits; one header value, one log line; stable."""
    name = clean_name(raw)
    assert 0 < len(name) <= PATH_MAX_CHARS
    parts = name.split("/")
    assert all(0 < len(part.encode()) <= NAME_MAX_BYTES and part.strip(".") for part in parts)
    assert not PurePosixPath(name).is_absolute()
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in name)
    assert unicodedata.is_normalized("NFC", name) or len(name) > 200
    assert "\n" not in kv("document", path=name)
    assert quote(name, safe="").isascii()
    assert clean_name(name) == name


@pytest.mark.parametrize(
    ("name", "is_dir", "reason"),
    [
        ("raid.md", False, None),
        ("Makefile", False, None),
        ("guides", True, None),
        ("env", True, None),
        (".hidden.md", False, "hidden"),
        ("backup.md~", False, "hidden"),
        (".ENV", False, "secret"),
        (".env.production", False, "secret"),
        ("ID_RSA", False, "secret"),
        ("id_ed25519.pub", False, "secret"),
        ("Passwords.KDBX", False, "secret"),
        (".ssh", True, "secret"),
        (".gnupg", True, "secret"),
        (".git", True, "hidden"),
        ("node_modules", True, "tooling"),
        ("photo.JPG", False, "unsupported"),
        ("movie.mkv", False, "unsupported"),
        ("archive.tar.gz", False, "unsupported"),
        ("photo.jpg", True, None),
    ],
)
def test_entries_of_a_folder_are_passed_over_by_name(name: str, is_dir: bool, reason: str | None) -> None:
    """Secrets before all else, in any case."""
    assert skip_reason(name, is_dir=is_dir) == reason
