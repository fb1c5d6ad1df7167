"""What a declared charset means, and when it counts."""

import pytest

from app.ingest.extract.decode import decode


def test_a_declared_charset_counts_only_if_it_is_one_of_text() -> None:
    """Python knows codecs that unpack archives; a page may not name them."""
    assert decode("é".encode("latin-1"), "iso-8859-1") == ("é", "iso-8859-1")
    assert decode(b"plain", "zlib") == ("plain", "utf-8")
    assert decode(b"plain", "no-such") == ("plain", "utf-8")
    assert decode(b"plain \\u0041 +AGE-", "unicode_escape", "utf-7") == ("plain \\u0041 +AGE-", "utf-8")


@pytest.mark.parametrize(
    ("declared", "words", "codec"),
    [
        ("iso-8859-1", "“Straße” – 5 €", "cp1252"),
        ("US-ASCII", "“Straße” – 5 €", "cp1252"),
        ("iso-8859-9", "“İstanbul”", "cp1254"),
        ("tis-620", "“ท่าเรือ”", "cp874"),
        ("gb2312", "港口的起重机㐂", "gb18030"),
        ("x-gbk", "港口的起重机", "gbk"),
        ("Shift_JIS", "①港のクレーン", "cp932"),
        ("x-sjis", "港のクレーン", "shift_jis"),
        ("euc-kr", "항구의 똠방각하", "cp949"),
        ("big5", "港口嘅起重機", "big5hkscs"),
        ("utf-16", "港口的起重机", "utf-16-le"),
    ],
)
def test_a_declared_charset_means_what_browsers_take_it_for(declared: str, words: str, codec: str) -> None:
    """Pages are written for them: quotation marks of Windows in Latin-1, characters that came later in East Asia."""
    assert decode(words.encode(codec), declared) == (words, declared.lower())


def test_of_two_declared_charsets_the_first_that_fits_counts() -> None:
    """The server's word before the page's own, unless the bytes show that it is wrong."""
    data = "Żuraw".encode("iso-8859-2")

    assert decode(data, "iso-8859-2", "cp1252") == ("Żuraw", "iso-8859-2")
    assert decode(data, "utf-8", "iso-8859-2") == ("Żuraw", "iso-8859-2")
    assert decode(data, None, "iso-8859-2") == ("Żuraw", "iso-8859-2")
