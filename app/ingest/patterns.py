"""Which files of a watched folder are wanted: patterns a person wrote. Pure.

A pattern without "/" is about a name at any depth (`*.log`, `drafts`), one with "/" about a path from the folder's root
(`guides/*.md`, `/archive`). `*` and `?` stay within a name, `**` crosses folders, a final "/" means folders only.
What a pattern says of a folder holds for all below it. Keys and passwords are left out before any pattern is asked
(`app.ingest.filenames`): no pattern brings them in. Called by `app.ingest.folders` and `app.ingest.watched`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from app.errors import InvalidInputError

MOST = 100
LONGEST = 300

_RE2 = cast("Any", re2)
"""It comes without types."""


class _Compiled(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


@dataclass(frozen=True)
class Patterns:
    """The two lists of a folder. No `include` means that everything is wanted which `exclude` does not name."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def are_empty(self) -> bool:
        """Whether they leave nothing out."""
        return not self.include and not self.exclude

    def leave_out(self, path: str, *, is_dir: bool) -> bool:
        """Whether an entry is left out, by its path relative to the root. Folders are asked before what is in them, so
        only `include` has to look at a file's folders."""
        if self.excludes(path, is_dir=is_dir):
            return True
        if is_dir or self._include is None:
            return False
        return not any(self._include.fullmatch(part) for part in (path, *_folders_of(path)))

    def excludes(self, path: str, *, is_dir: bool) -> bool:
        """Whether `exclude` names this very entry."""
        return self._exclude is not None and self._exclude.fullmatch(path + "/" if is_dir else path) is not None

    def excludes_below(self, path: str) -> bool:
        """Whether `exclude` names this entry or a folder that it lies in."""
        if self._exclude is None:
            return False
        return any(self._exclude.fullmatch(part) is not None for part in (path, *_folders_of(path)))

    @cached_property
    def _include(self) -> _Compiled | None:
        return _compiled(self.include)

    @cached_property
    def _exclude(self) -> _Compiled | None:
        return _compiled(self.exclude)


def parse_patterns(text: str) -> tuple[str, ...]:
    """The patterns of a text, one a line; empty lines and such as begin with "#" are none.

    Raises:
        InvalidInputError: `patterns_too_many` or `pattern_unusable`.
    """
    lines = [line.strip() for line in text.splitlines()]
    return check_patterns([line for line in lines if line and not line.startswith("#")])


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns, each once.

    Raises:
        InvalidInputError: `patterns_too_many` or `pattern_unusable`.
    """
    if len(patterns) > MOST:
        raise InvalidInputError("patterns_too_many", params={"most": MOST})
    for pattern in patterns:
        if not pattern.strip("/") or len(pattern) > LONGEST or "\0" in pattern or ".." in pattern.split("/"):
            raise InvalidInputError("pattern_unusable", params={"pattern": pattern[:80]})
    return tuple(dict.fromkeys(patterns))


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: end + 1]) + "/" for end in range(len(parts))]


def _compiled(patterns: Sequence[str]) -> _Compiled | None:
    if not patterns:
        return None
    return _RE2.compile("(?s)" + "|".join(f"(?:{_translated(pattern)})" for pattern in patterns))


def _translated(pattern: str) -> str:
    """A pattern as a regular expression over a path; a folder's ends with "/". RE2 takes time linear in the path,
    whatever stands in the pattern."""
    only_folders = pattern.endswith("/")
    body = pattern.strip("/")
    is_rooted = "/" in pattern.rstrip("/")
    parts: list[str] = [] if is_rooted else ["(?:.*/)?"]
    at = 0
    while at < len(body):
        if body.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif body.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(body[at], re.escape(body[at])))
            at += 1
    return "".join(parts) + ("/" if only_folders else "/?")
