"""Bytes to text where programs of several minds wrote one file: words stay whole and stay apart."""

from pathlib import Path

import pytest

from app.ingest.extract.decode import decode, is_blank, normalise
from tests.unit.ingest.files import put, read, reason_of

UTF_8 = "Größe, Höhe und Länge.\n"


@pytest.mark.parametrize("line", ["Größe im Café", "“Zitat” – ja", "àéîõü ñ ß", "5 € für’s Café"])
@pytest.mark.parametrize("times", [3, 40])
def test_a_line_in_windows_own_encoding_amid_utf_8_is_read(line: str, times: int) -> None:
    """Two programs append to one log: either line is what its writer meant."""
    data = (UTF_8 * times).encode() + line.encode("cp1252") + b" end\n" + UTF_8.encode()

    assert decode(data) == (f"{UTF_8 * times}{line} end\n{UTF_8}", "utf-8")


@pytest.mark.parametrize("lost", ["日本".encode()[:-1], "日".encode()[1:] + b" x", b"\xff\xff x", "ö".encode()[:1]])
def test_what_is_left_of_a_character_that_was_cut_stays_a_lost_one(lost: bytes) -> None:
    """It is no letter of another encoding."""
    text, encoding = decode((UTF_8 * 5).encode() + lost)

    assert encoding == "utf-8"
    assert text.removeprefix(UTF_8 * 5).strip(" x日本\ufffd") == ""
    assert "\ufffd" in text


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85"])
def test_words_on_both_sides_of_the_end_of_a_page_stay_two(end: str) -> None:
    """Form feeds, vertical tabs and the like end a line."""
    assert normalise(f"last{end}first") == "last\nfirst"


def test_zeros_part_words_where_they_stand_alone_and_not_in_wide_text() -> None:
    """A list of names that `find -print0` wrote; UTF-16 that was appended to something else."""
    assert normalise("a b.txt\x00c.txt\x00") == "a b.txt c.txt "
    assert normalise("name\x00\x00\x00\x00next") == "name next"
    assert normalise("one\n" + "two three".encode("utf-16-le").decode("latin-1")) == "one\ntwo three"


def test_letters_that_were_struck_over_stand_once() -> None:
    """Manual pages that were sent to a file: bold is a letter over itself, underlined one over a line."""
    page = "N\bNA\bAM\bME\bE\n  _\bf_\bi_\bl_\be and f\b_i\b_le, N\bN\bN, a_b"

    assert normalise(page) == "NAME\n  file and file, N, a_b"


def test_a_file_that_shows_nothing_is_empty(tmp_path: Path) -> None:
    """Joiners and marks of direction are no text; one letter is."""
    nothing = "\ufeff\u200b \u200e\u2060\u00ad\n"

    assert is_blank(nothing)
    assert reason_of(put(tmp_path, "a.md", nothing.encode())) == "empty"
    assert read(put(tmp_path, "b.md", (nothing + "x").encode())).text.strip()
