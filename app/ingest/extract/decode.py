"""Bytes to characters: the encoding of a text file, and the clean-up every canonical text gets. Pure.

Called by the text families. Own rules first: byte order mark, strict UTF-8, UTF-16/32 by where their zero bytes fall,
cp1252; charset-normalizer is asked only for text that is neither UTF-8 nor mostly ASCII (Cyrillic, Greek, East Asian
code pages), where it beats any short rule.
"""

import codecs
import re
from collections.abc import Sequence

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16-be"),
)
"""Mark, codec that eats it, recorded name. UTF-32's mark begins with UTF-16's, so it is asked first."""

_MEANT = {
    **dict.fromkeys(("iso8859-1", "ascii"), "cp1252"),
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
"""What browsers take a declared name for (Encoding Standard, section 4.2, Names and labels), by Python's names: pages
that say Latin-1 have quotation marks and dashes of Windows' own."""
_NO_CHARSETS = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Codecs of text that no page may ask for: in them plain words mean other ones."""

_SAMPLE = 64 * 1024
_BREAK = re.compile("[\x0b\x0c\x1c-\x1e\x85]")
"""What ends a line or a page besides the usual (Unicode Standard Annex 14, classes BK and NL); without it words on both
sides would be one."""
_STRUCK_OVER = re.compile("[^\n\x08]\x08(?!_)|\x08_")
"""How old programs print bold and underlined: a letter, a step back, and a letter over it."""
_ZERO = re.compile("\x00{2,}|(?<!\x00[^\x00])\x00(?![^\x00]\x00)")
"""A zero that parts two words. One behind every letter is how UTF-16 looks that was appended to another text."""
_VISIBLE = re.compile("[^\\s\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2800\ufeff\ufffd]")
_MIXED = "docent-mixed"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_MULTI_BYTE = re.compile(rb"[\xc3-\xf4][\x80-\xbf]{1,3}")
_HIGH = bytes(range(128, 256))
_FIRST_HIGH, _FIRST_LEAD, _LAST_LETTER = 0x80, 0xC0, 0xFD
"""Of cp1252: where signs begin, where letters begin, and the last one that is written: FE and FF are what storage that
was erased reads as."""


def is_binary(data: bytes) -> bool:
    """Whether bytes can't be text in any encoding known here: more than one control byte in twenty."""
    sample = data[:_SAMPLE]
    if not sample or _bom(sample) or _wide_codec(sample):
        return False
    return len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > len(sample) // 20


def decode(data: bytes, *declared: str | None) -> tuple[str, str]:
    """Text (normalised) and the name of its encoding, e.g. "utf-8" or "cp1252".

    Never raises: bytes that fit no encoding become U+FFFD. `declared` are the charsets that the server and the page
    itself name, in this order; they count after a byte order mark and before any guess, each unless the bytes don't fit
    it.
    """
    for codec, name in _candidates(data, declared):
        try:
            return normalise(data.decode(codec)), name
        except (UnicodeDecodeError, LookupError):
            continue
    return _decode_legacy(data)


def charset_codec(name: str) -> str | None:
    """The codec for a charset that somebody declared; None where there is none. Python also has codecs that turn bytes
    into bytes, and ones that run decompressors."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return charset_codec(name[2:]) if name[:2].lower() == "x-" else None
    if not codec._is_text_encoding or codec.name.replace("_", "-") in _NO_CHARSETS:  # pyright: ignore[reportPrivateUsage]
        return None
    return _MEANT.get(codec.name, codec.name)


def normalise(text: str) -> str:
    """`\\n` line ends; no control characters but tab, no terminal colours, no lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\x08" in text:
        text = _STRUCK_OVER.sub("", text)
    if "\x00" in text:
        text = _ZERO.sub(" ", text)
    return _UNWANTED.sub("", _BREAK.sub("\n", text))


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: white space, marks of direction and joining, characters that were lost."""
    return _VISIBLE.search(text) is None


def _candidates(data: bytes, declared: Sequence[str | None]) -> list[tuple[str, str]]:
    marked = _bom(data)
    if marked:
        return [marked]
    wide = _wide_codec(data[:_SAMPLE])
    if wide:
        return [(wide, wide)]
    named = [(codec, name.lower()) for name in declared if name and (codec := charset_codec(name))]
    return [*named, ("utf-8", "utf-8")]


def _bom(data: bytes) -> tuple[str, str] | None:
    return next(((codec, name) for mark, codec, name in _BOMS if data.startswith(mark)), None)


def _wide_codec(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: text in it has its zero bytes at regular places."""
    if len(sample) < 8 or b"\x00" not in sample:
        return None
    quarters = [sample[offset::4].count(0) / len(sample[offset::4]) for offset in range(4)]
    if quarters[2] > 0.9 and quarters[3] > 0.9 and quarters[0] < 0.1:
        return "utf-32-le"
    if quarters[0] > 0.9 and quarters[1] > 0.9 and quarters[3] < 0.1:
        return "utf-32-be"
    even, odd = (quarters[0] + quarters[2]) / 2, (quarters[1] + quarters[3]) / 2
    if odd > 0.6 and even < 0.05:
        return "utf-16-le"
    if even > 0.6 and odd < 0.05:
        return "utf-16-be"
    return None


def _decode_legacy(data: bytes) -> tuple[str, str]:
    damaged = data.decode("utf-8", "replace").count("\ufffd")
    if len(_MULTI_BYTE.findall(data)) >= 2 * damaged:
        return normalise(data.decode("utf-8", _MIXED)), "utf-8"
    high = len(data) - len(data.translate(None, _HIGH))
    if high * 4 > len(data):
        guessed = _guess(data)
        if guessed:
            return guessed
    try:
        return normalise(data.decode("cp1252")), "cp1252"
    except UnicodeDecodeError:
        return normalise(data.decode("latin-1")), "latin-1"


def _stray_byte(error: UnicodeError) -> tuple[str, int]:
    """A byte that is no UTF-8 amid text that is: a line of another program, in cp1252. What is left of a character that
    was cut is none: several bytes, the last one, or one that goes on with what is no character."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, at = error.object, error.start
    if error.end - at > 1 or error.end == len(data) or not (_is_letter(data[at]) or _is_sign(data, at)):
        return "\ufffd", error.end
    return data[at : at + 1].decode("cp1252", "replace"), error.end


def _is_letter(byte: int) -> bool:
    return _FIRST_LEAD <= byte <= _LAST_LETTER


def _is_sign(data: bytes, at: int) -> bool:
    """Whether a byte that goes on with a character stands where none has begun."""
    is_after_ascii = at > 0 and data[at - 1] < _FIRST_HIGH
    return data[at] < _FIRST_LEAD and is_after_ascii and not _FIRST_HIGH <= data[at + 1] < _FIRST_LEAD


codecs.register_error(_MIXED, _stray_byte)


def _guess(data: bytes) -> tuple[str, str] | None:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - 40 ms that one text in a thousand needs

    best = from_bytes(data[:_SAMPLE]).best()
    if best is None:
        return None
    return normalise(data.decode(best.encoding, "replace")), best.encoding
