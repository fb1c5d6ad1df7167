"""What the app asks of the drawing child and what it gets. Pure, and free of any parser: both sides import it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """Which page (from 1) and what to show on it: the passage's text, the page on which it begins, and the span of the
    supporting sentence in it. Without a passage nothing is boxed. Page 0 is the one with the supporting sentence, or
    the one on which the passage begins."""

    page: int
    passage: str = ""
    first: int = 0
    support: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A page: the PNG file, its size in pixels, whether something of the passage is boxed on it, how many pages the
    document has, and which of them it is."""

    png: bytes
    width: int
    height: int
    boxed: bool
    pages: int
    page: int
