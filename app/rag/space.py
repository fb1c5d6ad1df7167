"""How much of a model's window a prompt may take, and whether a server read the whole of it. Pure.

Owns the room for an answer and the comparison of what a server counted with what was sent. Which window a model has is
`app.upstream.window`'s, what goes into the room `app.rag.context`'s.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from app.rag.tokens import Reading, estimate_tokens
from app.settings import Settings
from app.upstream.window import DEFAULT_WINDOW, Window

DEFAULT_ANSWER = 1024
_ANSWER_SHARE = 1 / 2
_JUDGED_FROM = 500
"""Tokens reported; fewer may be what a server had not read before, and no window is that small."""

_FEWEST_SHARE = 0.8
_EXPECTED_SHARE = 0.7
_NEAR = 4
_LETTERS = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class Space:
    """Tokens of a turn: of `window` the prompt may take `room`, the rest is the answer's. `rate` is how many of the
    model's tokens one estimated token is."""

    window: int
    room: int
    rate: float = 1.0

    @property
    def estimated(self) -> int:
        """The room in tokens as `estimate_tokens` counts them."""
        return round(self.room / self.rate)


def space_of(settings: Settings, window: Window | None = None) -> Space:
    """The room of a turn in `window`: all of it but the answer's LLM_MAX_TOKENS or 1,024, at most half. Without a
    window that was asked for, LLM_CONTEXT_TOKENS or 8,192 tokens."""
    tokens = window.tokens if window is not None else settings.llm_context_tokens or DEFAULT_WINDOW
    answer = min(settings.llm_max_tokens or DEFAULT_ANSWER, round(tokens * _ANSWER_SHARE))
    return Space(tokens, tokens - answer, window.rate if window is not None else 1.0)


@dataclass(frozen=True, slots=True)
class Size:
    """A prompt in tokens: as estimated, and the fewest that any model's tokens could be."""

    estimated: int
    fewest: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The server read `read` of about `sent` tokens."""

    read: int
    sent: int


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What a turn's readings tell: the first prompt that was cut, and how many of the model's tokens an estimated one
    is (None: too little to tell)."""

    cut: Cut | None = None
    rate: float | None = None


def read_back(readings: Sequence[Reading], window: Window) -> ReadBack:
    """Compares what the server reported with what was sent. Takes milliseconds for a large prompt.

    The first request is compared whole. The next ones hold it, so a server that counts only what it had not read before
    reports less for them: those are only held against whole windows.
    """
    rate: float | None = None
    most = 0
    for reading in readings:
        if reading.reported is None:
            continue
        size = size_of(
            (str(message.get("content") or "") for message in reading.messages),
            orjson.dumps(list(reading.tools)).decode() if reading.tools else "",
        )
        only_filled = reading.reported < most
        if is_cut(size, reading.reported, window, only_filled=only_filled):
            return ReadBack(Cut(reading.reported, round(size.estimated * window.rate)), rate)
        if most == 0 and min(size.estimated, reading.reported) >= _JUDGED_FROM:
            rate = reading.reported / size.estimated
        most = max(most, reading.reported)
    return ReadBack(None, rate)


def size_of(texts: Iterable[str], beside: str = "") -> Size:
    """The size of a prompt's messages; `beside` is what some templates add to them and some don't (tools).

    The fewest are its words of letters: no model in use has tokens that reach over a blank. Scripts without blanks
    count as few words, so that nothing is said of them.
    """
    estimated = fewest = 0
    for text in texts:
        estimated += estimate_tokens(text)
        fewest += sum(_LETTERS.search(word) is not None for word in text.split())
    return Size(estimated + (estimate_tokens(beside) if beside else 0), fewest)


def is_cut(size: Size, reported: int, window: Window, *, only_filled: bool = False) -> bool:
    """Whether a server that reports `reported` tokens evidently did not read the whole of a prompt of `size`.

    It is when that is well below the fewest it could be; or when it is a whole window, or the half that Ollama keeps
    of one (`num_ctx / 2 + 2`), and well below what is to be expected by the turns before.
    """
    if reported < _JUDGED_FROM:
        return False
    if not only_filled and reported < size.fewest * _FEWEST_SHARE:
        return True
    limits = {limit for tokens in (window.tokens, window.said) if tokens for limit in (tokens, tokens // 2 + 2)}
    filled = any(abs(reported - limit) <= _NEAR for limit in limits)
    return filled and reported < size.estimated * window.rate * _EXPECTED_SHARE
