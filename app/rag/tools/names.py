"""Names of files and documents as a model is shown them. Pure.

A name comes from outside: it is set on one line, cut, and made inert like the text of a passage.
"""

from app.rag.prompts import disarm

NAME_CHARS = 300
ASKED_CHARS = 60
"""Of what a model asked for, as it is said back."""


def one_line(text: str, limit: int = NAME_CHARS) -> str:
    """`text` on one line, without control characters, at most `limit` characters of it, inert."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return disarm(flat if len(flat) <= limit else flat[: limit - 1] + "…")
