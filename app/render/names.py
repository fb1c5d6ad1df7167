"""Names as they may be shown: of files, folders, collections, and titles that documents give themselves. Pure.

Everything that came with a file is untrusted: a name with a character that turns the direction of writing reads as
another name, one that can't be seen makes two names look alike. Called by `app.edge` and `app.web` wherever a name or a
title goes into a page; what the API answers and what is stored keeps its bytes.
"""

import unicodedata

NAME_CHARS = 96
"""A longer path is cut in the middle; the row's title keeps it whole."""

_UNSEEN = ("Cc", "Cf", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""They belong to the writing of Persian, Hindi and others, and hold some emoji together."""


def plain_name(name: str) -> str:
    """`name` with "�" for each control and direction-changing character and each one that can't be seen."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(
        "�" if unicodedata.category(char) in _UNSEEN and not _is_joining(name, at) else char
        for at, char in enumerate(name)
    )


def shown_name(path: str) -> str:
    """`plain_name`, the middle of a long one "…"."""
    clean = plain_name(path)
    if len(clean) <= NAME_CHARS:
        return clean
    head = NAME_CHARS // 3
    return f"{clean[:head]}…{clean[len(clean) - (NAME_CHARS - head - 1) :]}"


def _is_joining(name: str, at: int) -> bool:
    """Whether a joiner stands between characters of such writing, and is not there to tell two names apart unseen."""
    around = name[at - 1 : at] + name[at + 1 : at + 2]
    return name[at] in _JOINERS and len(around) == 2 and all(_takes_joiners(char) for char in around)


def _takes_joiners(char: str) -> bool:
    return not char.isascii() and (unicodedata.category(char) in ("Lo", "Mn", "Mc", "So", "Sk") or char == "\ufe0f")
