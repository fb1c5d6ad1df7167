"""reStructuredText inside a line: roles, links and escapes as a reader would say them. Pure.

Called by `rst`. Line breaks are kept, so that line numbers stay those of the file.
"""

import re

_MARKUP = re.compile(
    r"(?P<literal>``.+?``)"
    r"|(?<![\w:])(?::[A-Za-z][\w.+-]*)+:`(?P<role>[^`]+)`"
    r"|`(?P<link>[^`<]+?)\s*<(?P<target>[^`>]+)>`__?"
    r"|(?<![\w`])`(?P<ref>[^`\s](?:[^`]*[^`\s])?)`__?(?!\w)"
    r"|\\(?P<escaped>[*_`\\|<>.:~-])",
    re.DOTALL,
)
_ROLE_TARGET = re.compile(r"(.+?)\s*<[^<>]*>$", re.DOTALL)


def readable(text: str) -> str:
    """`:ref:`the guide <x>`` → "the guide"; `` `Docker <https://docker.com>`_ `` → "Docker (https://docker.com)"."""
    if "`" not in text and "\\" not in text:
        return text
    return _MARKUP.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "literal":
        return match[0]
    if kind == "escaped":
        return match["escaped"]
    if kind == "role":
        said = _role_text(match["role"])
    elif kind == "target":
        said = _link_text(match["link"].rstrip(), match["target"])
    else:
        said = match["ref"]
    lost = "\n" * (match[0].count("\n") - said.count("\n"))
    if not lost:
        return said
    before, space, last_word = said.rpartition(" ")
    return f"{before}{lost}{last_word}" if space else said + lost


def _role_text(content: str) -> str:
    titled = _ROLE_TARGET.match(content)
    return titled[1] if titled else content.lstrip("~!")


def _link_text(text: str, target: str) -> str:
    address = "".join(target.split())
    return f"{text} ({address})" if "://" in address and address != text else text
