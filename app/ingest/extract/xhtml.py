"""XHTML as HTML: what is written the way of XML, as an HTML parser understands it. Pure.

Called by `html` before it parses; owns no tree. An HTML parser takes `<title/>` for a tag that is left open, and the
page behind it for the title (HTML Standard, section 13.2.5.40, Self-closing start tag state).
"""

import html
import re

_HEAD = 2_000
_XML = re.compile(r"<\?xml\s|<(?:\w+:)?html\s[^>]{0,1000}?xmlns(?::\w+)?\s*=", re.IGNORECASE)
_CLOSED = re.compile(r"""<([A-Za-z][\w.:-]*+)((?:[^<>"'/]|/(?!>)|"[^"]*+"|'[^']*+')*+)/>""")
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
"""Elements that have no end tag in HTML either."""


def is_xml(markup: str) -> bool:
    """Whether a page says near its beginning that it is XML."""
    return _XML.search(markup[:_HEAD]) is not None


def as_html(markup: str) -> str:
    """The same page with an end tag for each element that XML closes in place, and CDATA as text."""
    return _CLOSED.sub(_with_end, _with_plain_text(markup))


def _with_plain_text(markup: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := markup.find(_CDATA, at)) >= 0 and (end := markup.find(_CDATA_END, start)) >= 0:
        text = markup[start + len(_CDATA) : end]
        parts += [markup[at:start], html.escape(text, quote=False)]
        at = end + len(_CDATA_END)
    return "".join([*parts, markup[at:]])


def _with_end(match: re.Match[str]) -> str:
    tag = match[1]
    return match[0] if tag.lower() in _VOID else f"<{tag}{match[2]}></{tag}>"
