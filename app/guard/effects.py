"""What a tool does to the world, and so how often it may be called again. Pure.

A declared effect decides; where only names are known, patterns in the name do. Used by `app.guard.scan`,
`app.guard.turn_guard` and the detectors' callers; knows no tool of Docent's own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Protocol

Effect = Literal["read", "write", "external"]
"""`read` looks something up in the house, `write` changes something, `external` reaches out of the house."""


class NamedCall(Protocol):
    """A tool call as far as its class goes."""

    @property
    def name(self) -> str:
        """The tool's name, as the model spelled it."""
        ...

    @property
    def effect(self) -> Effect | None:
        """What the tool was declared to do; None where only its name is known."""
        ...


@dataclass(frozen=True, slots=True)
class BatchClass:
    """How a batch counts: an observation has the larger allowance, a costly one stays under the total ceiling."""

    observation: bool
    costly: bool


STRICT = BatchClass(observation=False, costly=False)

OBSERVATIONS: tuple[str, ...] = (
    "snapshot",
    "screenshot",
    "read_page",
    "navigate",
    "click",
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "list_dir",
    "list_files",
    "list_allowed_directories",
    "directory_tree",
    "file_search",
    "grep_search",
    "search_files",
    "semantic_search",
    "codebase_search",
    "test_search",
    "get_file_info",
    "get_errors",
    "get_changed_files",
    "get_terminal_output",
    "list_code_usages",
    "list_code_definition_names",
    "fetch_webpage",
)
"""Parts of names by which tools that only look are known."""

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_\-.\s]")
_COSTLY = frozenset({"navigate", "click"})
_IN_CODE = frozenset({"definition", "declaration", "implementation", "reference", "references", "symbol"})
"""Where an editor navigates to: no page is loaded."""
_NAME_LIMIT = 256
"""Longer names are nobody's; they are judged by their beginning, so that remembered names stay small."""


def batch_class(calls: Sequence[NamedCall], observations: tuple[str, ...] = OBSERVATIONS) -> BatchClass:
    """An observation when every call is one, costly when any is; a batch of no calls is neither."""
    kinds = [call_class(call.name, call.effect, observations) for call in calls]
    if len(kinds) < 2:
        return kinds[0] if kinds else STRICT
    return BatchClass(all(kind.observation for kind in kinds), any(kind.costly for kind in kinds))


def call_class(name: str, effect: Effect | None = None, observations: tuple[str, ...] = OBSERVATIONS) -> BatchClass:
    """The class of one call: by its declared effect, else by its name."""
    match effect:
        case "read":
            return BatchClass(observation=True, costly=False)
        case "write":
            return STRICT
        case "external":
            return BatchClass(observation=True, costly=True)
        case None:
            return _by_name(name[:_NAME_LIMIT], observations)


@lru_cache(maxsize=1024)
def _by_name(name: str, observations: tuple[str, ...]) -> BatchClass:
    segments = _SEPARATORS.split(_HUMPS.sub("_", name).lower())
    spellings = (name.lower(), "_".join(segments))
    observation = any(pattern.lower() in spelling for pattern in observations for spelling in spellings)
    fetches = any(pair == ("fetch", "webpage") for pair in pairwise(segments))
    acts = not _COSTLY.isdisjoint(segments) and _IN_CODE.isdisjoint(segments)
    return BatchClass(observation, costly=fetches or acts)
