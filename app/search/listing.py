"""Hits as a terminal and a JSON client see them.

Owns the wording-free shapes: the fields of `POST /api/search` and `docent search --json`, and the plain listing of
`docent search`. Prints nothing.
"""

import re
from collections.abc import Sequence
from typing import Any

from app.errors import InvalidInputError
from app.search.hits import Hit

SNIPPET_CHARS = 200


def check_query(query: str, limit: int) -> None:
    """Lets a question of 1 to `limit` characters pass.

    Raises:
        InvalidInputError: question_empty for a blank one, question_too_long for one over the limit.
    """
    if not query.strip():
        raise InvalidInputError("question_empty")
    if len(query) > limit:
        params = {"chars": len(query), "limit": limit}
        raise InvalidInputError("question_too_long", setting="QUESTION_MAX_CHARS", params=params)


def as_fields(hit: Hit) -> dict[str, Any]:
    """A hit's JSON, by the contract's names."""
    return {
        "document_id": hit.document_id,
        "chunk_id": hit.chunk_id,
        "path": hit.path,
        "title": hit.title,
        "heading": hit.heading,
        "page": hit.page,
        "text": hit.text,
        "char_start": hit.char_start,
        "char_end": hit.char_end,
        "score": round(hit.score, 4),
        "fulltext_rank": hit.fulltext_rank,
        "vector_rank": hit.vector_rank,
    }


def as_lines(hits: Sequence[Hit]) -> list[str]:
    """Three lines a hit: number, title and heading; `path:first-last` line and score; the passage's beginning."""
    lines: list[str] = []
    for number, hit in enumerate(hits, 1):
        title = "" if hit.title and hit.heading.startswith(hit.title) else hit.title or hit.path
        name = " › ".join(part for part in (title, hit.heading) if part)
        lines.append(f"{number}. {_one_line(name)}")
        lines.append(f"   {_one_line(hit.path)}:{hit.line_start}-{hit.line_end}  {hit.score:.2f}")
        lines.append(f"   {_snippet(hit.text)}")
    return lines


def _snippet(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= SNIPPET_CHARS else line[:SNIPPET_CHARS].rsplit(" ", 1)[0] + " …"


def _one_line(text: str) -> str:
    """Without what a terminal would obey: control characters, line ends, reversed writing."""
    return re.sub(r"\s+", " ", "".join(char if char.isprintable() else " " for char in text)).strip()
