"""Numbers as they are compared: `1,000`, `1 000` and `1000` are one, and so are `3,50` and `3.5`, `02` and `2`. Pure.

Used by `app.rag.citations` beside `app.rag.words`, which leaves numbers as they are written.
"""

import re
from collections.abc import Iterator

from app.rag.words import Word

_SEPARATORS = ",.'’ \u00a0\u202f"
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<digits>"
    rf"\d{{1,3}}(?:[{_SEPARATORS}]\d{{3}})+(?:[.,]\d+)?"
    r"|\d+(?:[.,]\d+)?"
    r")(?P<unit>[^\W\d_]{0,3})(?![\w]|[.,]\d)"
)
_TENS = {
    word: str(number)
    for number, word in zip(
        range(20, 100, 10), ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], strict=True
    )
} | {
    word: str(number)
    for number, word in enumerate(
        ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"], start=13
    )
}
_TEN = re.compile(r"\b(?:" + "|".join(_TENS) + r")\b", re.IGNORECASE)


def number_words(text: str) -> Iterator[Word]:
    """What numbers in `text` mean, where that is written in more than one way: their value as a word, at their place.

    A group of three digits after a comma or point may be thousands or decimals; both values are given.
    """
    for found in _NUMBER.finditer(text):
        start, end = found.span("digits")
        for value in _values(found.group("digits")):
            if value != found.group():
                yield Word(value, start, end)
    for found in _TEN.finditer(text):
        yield Word(_TENS[found.group().lower()], found.start(), found.end())


def _values(digits: str) -> Iterator[str]:
    whole, point, decimals = _parted(digits)
    plain = re.sub(rf"[{_SEPARATORS}]", "", whole)
    yield _value(plain, decimals)
    if not point and re.fullmatch(r"\d{1,3}[.,]\d{3}", digits) and not digits.endswith("000"):
        yield _value(*re.split(r"[.,]", digits))


def _parted(digits: str) -> tuple[str, str, str]:
    """The part before the decimal point, the point, and the decimals; a group of three is no decimals."""
    decimals = re.search(r"[.,](\d+)$", digits)
    if decimals is None or (len(decimals.group(1)) == 3 and len(digits) <= 7 and digits[0] != "0"):
        return digits, "", ""
    if len(decimals.group(1)) == 3 and len(set(re.findall(rf"[{_SEPARATORS}]", digits))) == 1 and digits[0] != "0":
        return digits, "", ""
    return digits[: decimals.start()], digits[decimals.start()], decimals.group(1)


def _value(whole: str, decimals: str = "") -> str:
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole
