"""What answer and reader HTML may hold, said a second time and read by another parser than the one that wrote it."""

from selectolax.lexbor import LexborHTMLParser

TAGS = frozenset(
    {"a", "bdi", "blockquote", "br", "code", "del", "div", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "mark"}
    | {"ol", "p", "pre", "section", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
ATTRIBUTES = {
    "a": {"href", "rel", "target", "class", "id", "data-n", "aria-label"},
    "div": {"class", "tabindex"},
    "ol": {"start"},
    "p": {"class"},
    "pre": {"tabindex"},
    "section": {"class", "id", "tabindex"},
    "span": {"class", "role", "title"},
    "td": {"align"},
    "th": {"align"},
}
CLASSES = frozenset(
    {"cite", "claim", "code", "flow", "host", "item", "item-mark", "lines", "locator", "note", "note-title", "noted"}
    | {"passage", "quote", "said", "table-scroll", "unbacked", *(f"depth-{depth}" for depth in range(5))}
)


def violations(html: str, own_links: str = "/documents/") -> list[str]:
    """Everything in `html` that is not on the lists; links lead to http, https, mailto or under `own_links`."""
    found: list[str] = []
    body = LexborHTMLParser(f"<!doctype html><body>{html}</body>").body
    assert body is not None
    for node in body.traverse(include_text=False):
        if node.tag in ("body", "-comment"):
            found += ["comment"] if node.tag == "-comment" else []
            continue
        if node.tag not in TAGS:
            found.append(f"<{node.tag}>")
        for name, value in node.attributes.items():
            if name not in ATTRIBUTES.get(node.tag or "", set()):
                found.append(f"{node.tag}[{name}]")
            if name == "class" and not set((value or "").split()) <= CLASSES:
                found.append(f"class {value}")
            if name == "href" and not (value or "").lower().startswith(("http://", "https://", "mailto:", own_links)):
                found.append(f"href {value}")
    return found
