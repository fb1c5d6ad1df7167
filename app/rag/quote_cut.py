"""The quote of a source: a cut of its passage on one line that begins with what supports the claim. Pure.

Called by `app.rag.citations` for its rows. Owns length and beginning of a quote; which sentence supports a claim is
decided before.
"""

from collections.abc import Sequence

from app.render.sentences import sentences

QUOTE_CHARS = 360
_LEAD_CHARS = 90
"""Two lines of a margin note: the supporting words have to begin in them."""

Span = tuple[int, int]


def cut_quote(text: str, start: int | None, marked: Sequence[Span]) -> tuple[str, list[Span]]:
    """At most `QUOTE_CHARS` of `text`, white space made single blanks, "…" where a sentence was cut; and where
    `marked`, the supporting words, lie in it.

    It begins at `start`, the supporting sentence, or with its words where they come late in a long one; without them
    with the first sentence.
    """
    units = sentences(text)
    begins = units[0].start if units else 0
    if start is not None and marked:
        begins = start
        if marked[0][0] - begins > _LEAD_CHARS // 2:
            begins = _word_start(text, marked[0][0] - _LEAD_CHARS // 4)
    lead = "" if any(unit.start == begins for unit in units) else "… "
    flat, places = _single_blanks(text, begins, QUOTE_CHARS - len(lead))
    cut = len(places) > 0 and text[places[-1] + 1 :].strip() != ""
    if cut:
        end = flat.rfind(" ", QUOTE_CHARS // 2, QUOTE_CHARS - len(lead) - 2)
        flat = flat[: end if end > 0 else QUOTE_CHARS - len(lead) - 2]
        places = places[: len(flat)]
    quote = lead + flat + (" …" if cut else "")
    marks = [_moved(mark, places, len(lead)) for mark in marked]
    return quote, [mark for mark in marks if mark is not None]


def _word_start(text: str, near: int) -> int:
    """The beginning of the first word at or after `near`."""
    while near < len(text) and near > 0 and not text[near - 1].isspace():
        near += 1
    return near


def _single_blanks(text: str, start: int, limit: int) -> tuple[str, list[int]]:
    """`text` from `start` with every run of white space as one blank, and where each character came from."""
    flat: list[str] = []
    places: list[int] = []
    for at in range(start, len(text)):
        blank = text[at].isspace()
        if blank and (not flat or flat[-1] == " "):
            continue
        if len(flat) == limit:
            break
        flat.append(" " if blank else text[at])
        places.append(at)
    while flat and flat[-1] == " ":
        flat.pop()
        places.pop()
    return "".join(flat), places


def _moved(mark: Span, places: Sequence[int], lead: int) -> Span | None:
    inside = [at for at, place in enumerate(places) if mark[0] <= place < mark[1]]
    return (inside[0] + lead, inside[-1] + 1 + lead) if inside else None
