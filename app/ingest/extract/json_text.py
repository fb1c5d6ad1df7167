"""JSON as a person reads it: letters that a program wrote as `\\u00fc` are letters. Pure.

Called by `dispatch` for every file of JSON, whatever reads it then. Lines stay lines, and nothing is parsed: what JSON
has to escape (quotes, strokes, controls) stays as it was, so that the text is the same JSON (RFC 8259, section 7).
"""

import re

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".geojson", ".ipynb", ".webmanifest", ".har"})

_ESCAPES = re.compile(r"\\\\|(?P<units>(?:\\u[0-9A-Fa-f]{4})+)")
"""A stroke that is escaped itself, so that what follows it is no escape; or UTF-16 units in a row."""


def with_letters(text: str) -> str:
    """The text with its escaped letters and signs written out."""
    return _ESCAPES.sub(_written, text) if "\\u" in text else text


def _written(match: re.Match[str]) -> str:
    units = match["units"]
    if units is None:
        return match[0]
    characters = bytes.fromhex(units.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    return "".join(one if one > "~" and one.isprintable() else _escaped(one) for one in characters)


def _escaped(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[at : at + 4]}" for at in range(0, len(data), 4))
