"""HTML as a flat list of tokens, and a writer that can put something between them without ever breaking nesting.

Reads only what the sanitiser of `app.render.markdown` let through; writes only the tags it is handed. Everything that
is text leaves escaped.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser

INLINE = frozenset({"a", "code", "del", "em", "strong", "br", "img"})
VOID = frozenset({"br", "hr", "img"})

_PART = re.compile(r"(<[^>]*>)|([^<\s]+)")
_LONGEST_WORD = 28
"""Characters of code that fit a line on a screen of 320 px, in a list too."""


@dataclass(frozen=True, slots=True)
class Start:
    """An opening tag, or a void one."""

    name: str
    attrs: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str:
        """The attribute's value, or ""."""
        return dict(self.attrs).get(name, "")

    def html(self) -> str:
        """As written."""
        attrs = "".join(f' {key}="{escape(value)}"' for key, value in self.attrs)
        return f"<{self.name}{attrs}>"


@dataclass(frozen=True, slots=True)
class End:
    """A closing tag."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """Characters, unescaped."""

    text: str


Token = Start | End | Text


def read(html: str) -> list[Token]:
    """The tokens of well-formed HTML, text between two tags in one piece."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.tokens


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tokens: list[Token] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tokens.append(Start(tag, tuple((name, value or "") for name, value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.tokens.append(End(tag))

    def handle_data(self, data: str) -> None:
        if self.tokens and isinstance(self.tokens[-1], Text):
            self.tokens[-1] = Text(self.tokens[-1].text + data)
        else:
            self.tokens.append(Text(data))


class InlineWriter:
    """Writes a run of inline tokens. Tags are opened when the first text inside them comes, so that `between` can close
    all of them, write, and let them open again without leaving empty ones behind."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._stack: list[Start] = []
        self._written = 0
        self._link_text = ""

    @property
    def in_code(self) -> bool:
        """Whether the next text stands in a code span."""
        return any(tag.name == "code" for tag in self._stack)

    def start(self, tag: Start) -> None:
        """Opens an inline tag, or writes a void one; an image leaves its description."""
        if tag.name == "br":
            self._raw("<br>")
        elif tag.name == "img":
            self.text(tag.get("alt"))
        else:
            if tag.name == "a":
                self._link_text = ""
            self._stack.append(tag)

    def end(self, name: str) -> None:
        """Closes the innermost tag, which is `name`; a link whose text hides its host says it."""
        if self._written == len(self._stack):
            self._parts.append(f"</{name}>")
            self._written -= 1
        tag = self._stack.pop()
        if name == "a":
            self._parts.append(_host_note(tag.get("href"), self._link_text))

    def text(self, text: str) -> None:
        """Text, escaped; inside code every word is kept whole, so that lines break at blanks only."""
        if not text:
            return
        self._link_text += text
        if self.in_code:
            self._raw(code_words(escape(text, quote=False)))
        else:
            self._raw(escape(text, quote=False))

    def between(self, html: str) -> None:
        """Writes safe `html` outside of every inline tag."""
        while self._written:
            self._written -= 1
            self._parts.append(f"</{self._stack[self._written].name}>")
        self._parts.append(html)

    def html(self) -> str:
        """What was written."""
        return "".join(self._parts)

    def _raw(self, html: str) -> None:
        self._parts.extend(tag.html() for tag in self._stack[self._written :])
        self._written = len(self._stack)
        self._parts.append(html)


def code_words(html: str) -> str:
    """Code as escaped HTML, tags among it, with each word in an element that is not broken, so that no flag is split
    after its dashes. A word that a narrow screen can't hold on one line may break like any other."""
    return _PART.sub(
        lambda part: part[0] if part[1] or len(part[2]) > _LONGEST_WORD else f"<span>{part[2]}</span>", html
    )


def _host_note(href: str, text: str) -> str:
    """` (host)` after a link whose text does not show where it leads."""
    scheme, _, rest = href.partition(":")
    if scheme.lower() == "mailto":
        place = rest.partition("?")[0]
    else:
        place = rest.lstrip("/\\").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    if not place or place.lower() in text.lower():
        return ""
    return f' <span class="host">({escape(place)})</span>'
