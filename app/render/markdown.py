"""Markdown to safe HTML: the one function for live and stored text.

cmark with raw HTML off, then an allow list of tags and attributes, then a writer of our own that knows no others. What
comes out holds no script, no style, no image, no event handler and no address but http, https and mailto. Numbered
notes are added by `app.render.answer`, which reads the same tokens.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import nh3
from cmarkgfm import cmark  # pyright: ignore[reportMissingTypeStubs]
from markupsafe import Markup

from app.render.sentences import code_spans
from app.render.tokens import INLINE, End, InlineWriter, Start, Text, Token, read

_INLINE_TAGS = {"a", "br", "code", "del", "em", "img", "strong"}
_BLOCK_TAGS = {"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLE_TAGS = {"table", "tbody", "td", "th", "thead", "tr"}
TAGS = frozenset(_INLINE_TAGS | _BLOCK_TAGS | _TABLE_TAGS)
_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "th": {"align"}, "td": {"align"}, "img": {"alt"}}
_HEADINGS = {"h1": "h3", "h2": "h3", "h3": "h4", "h4": "h5", "h5": "h6", "h6": "h6"}
_ADDRESS = re.compile(r"(?:https?://[^/\\\s]|mailto:)", re.IGNORECASE)
_EXTENSIONS = ["table", "strikethrough", "autolink"]
_DEEPEST_QUOTE = 20
_QUOTES = re.compile(rf"^(?:[ \t]*>){{{_DEEPEST_QUOTE},}}", re.MULTILINE)
_WIDE_TABLE = re.compile(r"^[ \t|:-]*(?:\|[ \t:-]*){101,}$", re.MULTILINE)
_TAG_LIKE = re.compile(
    r"(?<!\\)<(?=[A-Za-z/!?])(?!(?:https?://|mailto:)[^\s<>]*>)(?![\w.+-]{1,64}@[\w.-]{1,255}>)", re.IGNORECASE
)


def markdown_html(text: str) -> Markup:
    """`text` as HTML for a page, headings set below the page's own h2."""
    return Markup("".join(block_html(run) for run in runs(markdown_tokens(text))))  # noqa: S704 - sanitised above


def markdown_tokens(text: str) -> list[Token]:
    """The sanitised tokens of `text`: tags of `TAGS`, attributes of the allow list, links with their `rel`."""
    return _without_dead_links(read(_CLEANER.clean(_cmark(text))))


def runs(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Cuts tokens into block tags (one token each), whole blocks of code, and runs of inline tokens."""
    run: list[Token] = []
    in_code_block = False
    for token in tokens:
        inline = isinstance(token, Text) or token.name in INLINE
        if isinstance(token, Start) and token.name == "pre":
            if run:
                yield run
            run = list[Token]([token])
            in_code_block = True
        elif in_code_block:
            run.append(token)
            if isinstance(token, End) and token.name == "pre":
                yield run
                run, in_code_block = [], False
        elif inline:
            run.append(token)
        else:
            if run:
                yield run
            run = []
            yield [token]
    if run:
        yield run


def block_html(run: Sequence[Token]) -> str:
    """The HTML of one run of `runs`."""
    first = run[0]
    if isinstance(first, Start) and first.name == "pre":
        return code_html("".join(token.text for token in run if isinstance(token, Text)))
    if isinstance(first, Start) and first.name not in INLINE:
        tag = Start(_HEADINGS.get(first.name, first.name), first.attrs).html()
        return '<div class="table-scroll" tabindex="0">' + tag if first.name == "table" else tag
    if isinstance(first, End):
        return f"</{_HEADINGS.get(first.name, first.name)}>" + ("</div>" if first.name == "table" else "")
    writer = InlineWriter()
    for token in run:
        write_inline(writer, token)
    return writer.html()


def write_inline(writer: InlineWriter, token: Token) -> None:
    """Hands one inline token to `writer`."""
    if isinstance(token, Text):
        writer.text(token.text)
    elif isinstance(token, Start):
        writer.start(token)
    else:
        writer.end(token.name)


def code_html(code: str) -> str:
    """A block of code; a script adds its Copy button."""
    writer = InlineWriter()
    writer.text(code)
    return f'<div class="code"><pre tabindex="0"><code>{writer.html()}</code></pre></div>'


def _without_dead_links(tokens: Sequence[Token]) -> list[Token]:
    """Drops `<a>` whose address was not allowed, keeping its text. Links don't nest."""
    kept: list[Token] = []
    dead = False
    for token in tokens:
        if isinstance(token, Start) and token.name == "a" and not token.get("href"):
            dead = True
        elif isinstance(token, End) and token.name == "a" and dead:
            dead = False
        else:
            kept.append(token)
    return kept


def _cmark(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = _QUOTES.sub(">" * _DEEPEST_QUOTE, text)  # deeper nesting costs time that grows with its square
    text = _WIDE_TABLE.sub(lambda row: row.group().replace("|", "\\|"), text)  # cmark fills every short row up
    text = _with_tags_as_text(text)
    render = cast("Callable[[str, int, list[str]], str]", cmark.markdown_to_html_with_extensions)  # pyright: ignore[reportUnknownMemberType]
    return render(text, 0, _EXTENSIONS)


def _with_tags_as_text(text: str) -> str:
    """`user@<host>` is meant to be read: outside of code, what looks like a tag becomes text."""
    if "<" not in text:
        return text
    parts: list[str] = []
    at = 0
    for start, end in code_spans(text):
        parts += [_TAG_LIKE.sub(r"\\<", text[at:start]), text[start:end]]
        at = end
    return "".join([*parts, _TAG_LIKE.sub(r"\\<", text[at:])])


def _attribute(tag: str, name: str, value: str) -> str | None:
    if name == "href":
        return value if _ADDRESS.match(value) else None
    if name == "start":
        return value if value.isascii() and value.isdigit() and len(value) < 10 else None
    if name == "align":
        return value if value in ("left", "right", "center") else None
    return value if name in ("alt", "rel", "target") else None  # left alone, it lets `title` and `lang` pass


_CLEANER = nh3.Cleaner(
    tags=set(TAGS),
    attributes=_ATTRIBUTES,
    attribute_filter=_attribute,
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
    strip_comments=True,
)
