"""How much the results of a turn's tools may say. Pure.

A result may take half of what is left, so that many looks are possible, and always enough to be of use. Owns the count
and fitting a text that can be made shorter; how it is made shorter is the tools' business.
"""

from collections.abc import Callable

from app.rag.context import estimate_tokens

RESULT_MAX = 4000
RESULT_MIN = 400
USEFUL_MIN = 200
"""Tokens; a result with less would be a heading and no text."""


class Budget:
    """Tokens for all results of a turn."""

    def __init__(self, tokens: int) -> None:
        self._left = tokens

    @property
    def allowance(self) -> int:
        """What the next result may take; 0 when what is left is of no use."""
        if self._left < USEFUL_MIN:
            return 0
        return min(RESULT_MAX, self._left, max(self._left // 2, RESULT_MIN))

    def spend(self, text: str) -> None:
        """Counts a result."""
        self._left -= estimate_tokens(text)


def bounded(text: str, tokens: int) -> str:
    """`text`, or as much of its beginning as fits."""
    return text[: largest_fitting(lambda length: text[:length], len(text), tokens)]


def largest_fitting(render: Callable[[int], str], upto: int, tokens: int) -> int:
    """The largest `k` of 0…`upto` for which `render(k)` takes at most `tokens`; -1 when not even 0 does. A longer `k`
    has to make a longer text."""
    low, high = -1, upto
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(render(middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return low
