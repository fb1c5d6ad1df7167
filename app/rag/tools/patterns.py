"""Patterns that a model may write: regular expressions for lines, globs for names.

All are run by RE2, whose time grows with the text and with nothing else: no pattern can explode. Owns how a pattern is
read; where it is looked for is the tools' business.
"""

import re
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

_RE2 = cast("Any", re2)
"""It comes without types."""
MEMORY = 8 << 20
"""Bytes that one pattern may use; RE2 refuses a pattern that needs more."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Compiled(Protocol):
    def search(self, text: bytes, pos: int, endpos: int) -> _Match | None: ...


class LinePattern:
    """What grep looks for, in UTF-8. A match never goes beyond its line; `^` and `$` are a line's ends.

    Args:
        pattern: RE2's syntax; where it has none, the text itself is looked for (`is_literal`). Of several lines each
            is looked for.
        ignore_case: None ignores case unless the pattern has capitals.
    """

    def __init__(self, pattern: str, ignore_case: bool | None) -> None:
        lines = [line for line in pattern.splitlines() if line] or [pattern]
        ignore = not re.search(r"[A-Z]", re.sub(r"\\.", "", pattern)) if ignore_case is None else ignore_case
        alternatives = "|".join(lines)
        compiled = _compile(alternatives, ignore)
        self.is_literal = compiled is None
        self._compiled = compiled or _engine("|".join(map(_quoted, lines)), ignore)

    def find(self, data: bytes, start: int, end: int) -> tuple[int, int] | None:
        """The first match in `data[start:end]`, as a span of bytes."""
        match = self._compiled.search(data, start, end)
        return match.span() if match is not None else None


class NamePattern:
    """What find looks for in paths and titles, whatever the case.

    Without `*`, `?` or `[` it is a part of the name. As a glob it has to fit the whole: `*` and `?` stay within a
    folder, `**` does not; without a slash it may fit the last step of a path, with one the end of it.
    """

    def __init__(self, pattern: str) -> None:
        self.is_glob = bool(re.search(r"[*?]|\[.+\]", pattern))
        self._part = pattern.strip("/").casefold() if not self.is_glob else ""
        self._compiled = _compile(f"^(?:.*/)?{_glob(pattern.lstrip('/'))}$", True) if self.is_glob else None
        if self.is_glob and self._compiled is None:
            self._part = pattern.casefold()

    def fits(self, name: str) -> bool:
        """Whether it fits an address or a title."""
        if self._compiled is None:
            return self._part in name.casefold()
        data = name.replace("\n", " ").encode("utf-8", "replace")
        return self._compiled.search(data, 0, len(data)) is not None


def _compile(pattern: str, ignore_case: bool) -> _Compiled | None:
    """None for what RE2 does not take."""
    try:
        # Alone first: "a)(b" must not become valid by what it is set into.
        _engine(pattern, ignore_case)
        return _engine(f"(?m:{pattern})", ignore_case)
    except _RE2.error:
        return None


def _engine(pattern: str, ignore_case: bool) -> _Compiled:
    options = _RE2.Options()
    options.never_nl, options.never_capture, options.log_errors = True, True, False
    options.case_sensitive, options.max_mem = not ignore_case, MEMORY
    return cast("_Compiled", _RE2.compile(pattern.encode(), options))


def _glob(pattern: str) -> str:
    """A glob as a regular expression."""
    parts = re.findall(r"\*\*/|\*+|\?|\[!?\]?[^\]/]*\]|.", pattern, re.DOTALL)
    return "".join(map(_glob_part, parts))


def _glob_part(part: str) -> str:
    if part == "**/":
        return "(?:.*/)?"
    if part.startswith("**"):
        return ".*"
    if part in ("*", "?"):
        return "[^/]" + part.replace("?", "")
    if len(part) > 2 and part.startswith("["):
        inner = part[1:-1]
        members = re.sub(r"([\[\]\\^])", r"\\\1", inner.removeprefix("!"))
        return f"[{'^' if inner.startswith('!') else ''}{members}]"
    return _quoted(part)


def _quoted(text: str) -> str:
    return cast("str", _RE2.escape(text))
