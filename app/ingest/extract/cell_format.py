"""Number formats of a workbook: a stored number as its reader sees it. Pure.

Called by `xlsx`. Decimals, percent, units and dates follow the cell's format; thousands are not grouped, since readers
of other languages group them otherwise and nobody searches for them that way, and dates are written as in ISO 8601.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    48: "##0.0E+0",
    **dict.fromkeys((14, 15, 16, 17, *range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"),
    18: "hh:mm",
    19: "hh:mm:ss",
    20: "hh:mm",
    21: "hh:mm:ss",
    22: "yyyy-mm-dd hh:mm",
    32: "hh:mm",
    33: "hh:mm:ss",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    41: "#,##0",
    42: "#,##0",
    43: "#,##0.00",
    44: "#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss",
}
"""Formats that a workbook names by number only; those not here are General."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<number>[#0?][#0?,]*(?:\.[#0?]*)?(?P<thousands>,*)|\.[#0?]+)|(?P<exponent>E[+-]0+)|(?P<am>AM/PM|A/P)"
    r"|(?P<general>General)|(?P<part>[ymdhsYMDHS]+)|(?P<literal>.)",
    re.DOTALL | re.IGNORECASE,
)
_GENERAL_DIGITS = 11
_LAST_DAY = 2_958_466
"""The day after 9999-12-31, as a workbook counts."""
_LEAP_FAULT = 60
"""Workbooks hold 1900 for a leap year: before this day they count one less."""


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: Literal["general", "number", "date", "elapsed"]
    prefix: str = ""
    suffix: str = ""
    decimals: int = 0
    optional: int = 0
    digits: int = 1
    scale: float = 1
    has_day: bool = False
    has_time: bool = False
    has_seconds: bool = False


def shown(raw: str, code: str, *, from_1904: bool = False) -> str:
    """A stored number as text under a format code; what is no number stays as it is."""
    try:
        value = float(raw)
    except ValueError:
        return raw
    if not math.isfinite(value):
        return raw
    shape = _shape(code)
    if shape.kind == "number":
        return _number(value, shape)
    if shape.kind == "elapsed":
        return _elapsed(value, shape)
    if shape.kind == "date" and 0 <= value < _LAST_DAY:
        return _date(value, shape, from_1904=from_1904)
    return _general(raw, value)


def _general(raw: str, value: float) -> str:
    if raw.lstrip("-").isdigit():
        return raw
    if value == int(value) and abs(value) < 10**15:
        return str(int(value))
    return f"{value:.{_GENERAL_DIGITS}g}"


def _number(value: float, shape: _Shape) -> str:
    digits = f"{abs(value) * shape.scale:.{shape.decimals}f}"
    whole, _, fraction = digits.partition(".")
    while len(fraction) > shape.decimals - shape.optional and fraction.endswith("0"):
        fraction = fraction[:-1]
    text = whole.zfill(shape.digits) + (f".{fraction}" if fraction else "")
    sign = "-" if value < 0 and text.strip("0.") else ""
    return f"{sign}{shape.prefix}{text}{shape.suffix}".strip()


def _elapsed(value: float, shape: _Shape) -> str:
    seconds = round(abs(value) * 86_400)
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if shape.has_seconds else "")
    return f"-{text}" if value < 0 else text


def _date(value: float, shape: _Shape, *, from_1904: bool) -> str:
    start = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 31 if value < _LEAP_FAULT else 30)
    try:
        moment = start + timedelta(days=int(value), seconds=round(value % 1 * 86_400))
    except OverflowError:
        return f"{value:g}"
    time = "%H:%M:%S" if shape.has_seconds else "%H:%M"
    if shape.has_day:
        return moment.strftime(f"%Y-%m-%d {time}" if shape.has_time else "%Y-%m-%d")
    return moment.strftime(time)


@lru_cache(maxsize=1024)
def _shape(code: str) -> _Shape:
    tokens = list(_TOKEN.finditer(_first_section(code)))
    kinds = [token.lastgroup for token in tokens]
    elapsed = any(token["bracket"] and token["bracket"].lower().strip("hms") == "" for token in tokens)
    letters = "".join(token["part"].lower() for token in tokens if token["part"])
    if elapsed:
        return _Shape("elapsed", has_seconds="s" in letters)
    if letters:
        # An m beside hours or seconds is a minute.
        has_time = "h" in letters or "s" in letters
        return _Shape("date", has_day="d" in letters or "y" in letters or not has_time, has_time=has_time,
                      has_seconds="s" in letters)  # fmt: skip
    numbers = [token for token in tokens if token["number"]]
    if len(numbers) != 1 or "general" in kinds or "exponent" in kinds or "/" in code:
        return _Shape("general")
    at = tokens.index(numbers[0])
    return _number_shape(numbers[0][0], _literals(tokens[:at]), _literals(tokens[at + 1 :]))


def _number_shape(number: str, prefix: str, suffix: str) -> _Shape:
    whole, _, fraction = number.rstrip(",").partition(".")
    thousands = len(number) - len(number.rstrip(","))
    percents = suffix.count("%") + prefix.count("%")
    return _Shape(
        "number",
        prefix,
        suffix,
        decimals=len(fraction.replace(",", "")),
        optional=fraction.count("#"),
        digits=whole.count("0"),
        scale=100.0**percents / 1000.0**thousands,
    )


def _literals(tokens: Sequence[re.Match[str]]) -> str:
    return "".join(
        (token["quoted"] or "") + (token["escaped"] or "") + (token["currency"] or "") + (token["literal"] or "")
        for token in tokens
    )


def _first_section(code: str) -> str:
    """Up to the first semicolon that is not quoted: the format of positive numbers, used for all with a sign."""
    in_quotes = False
    for index, character in enumerate(code):
        if character == '"':
            in_quotes = not in_quotes
        elif character == ";" and not in_quotes:
            return code[:index]
    return code
