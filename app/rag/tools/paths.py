"""Which document or folder a path means. Pure.

Paths name rows of the library, `/<collection>/<path>`; nothing here touches a disk, so a path can be wrong but not
dangerous. Also understood: a path without its collection, any case, `./`, `%20`, backslashes, the end of a path where
one document has it. What is still unclear is answered with candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from app.rag.prompts import rearm
from app.rag.tools.names import one_line
from app.store.tool_reads import ShownCollection, ShownDocument

CANDIDATES = 5
_COMPARED = 20_000
"""Names that are looked at for likeness; among more, likeness is chance."""
_ALIKE = 0.2


class PathError(ValueError):
    """Nothing, or more than one thing, has that name; the text is for the model. `kind` says which for the reader."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a collection, or the whole collection (`path` empty)."""

    collection: ShownCollection
    path: str

    @property
    def address(self) -> str:
        """`/<collection>` or `/<collection>/<path>`."""
        return f"/{self.collection.slug}" + (f"/{self.path}" if self.path else "")

    def holds(self, document: ShownDocument) -> bool:
        """Whether the document lies in it, at any depth."""
        if document.collection != self.collection.slug:
            return False
        return not self.path or document.path.startswith(self.path + "/")


@dataclass(frozen=True, slots=True)
class Tree:
    """What is in scope."""

    collections: Sequence[ShownCollection]
    documents: Sequence[ShownDocument]

    def document(self, wanted: str) -> ShownDocument:
        """The one document that `wanted` names.

        Raises:
            PathError: for a folder, an unknown, ambiguous or impossible path.
        """
        place = self.place(wanted)
        if isinstance(place, ShownDocument):
            return place
        what = place.address if place is not None else "/"
        raise PathError("not_a_document", f"{one_line(what)} is a folder. See what it holds with ls.")

    def place(self, wanted: str) -> ShownDocument | Folder | None:
        """The document or folder that `wanted` names; None for everything (`/`, `.` or nothing).

        Raises:
            PathError: for an unknown, ambiguous or impossible path.
        """
        wanted = rearm(wanted)
        if "\0" in wanted:
            raise PathError("outside", "A path can't hold a NUL character. " + _HINT)
        for steps in _readings(wanted):
            if not steps:
                return None
            found = self._exact(steps) or self._folder(steps)
            if found is not None:
                return found
        steps = _readings(wanted)[-1]
        return self._by_end(steps, wanted)

    def _exact(self, steps: Sequence[str]) -> ShownDocument | None:
        """By address, or by the path alone where one document has it; in that very case first."""
        whole = "/".join(steps)
        named = {collection.slug for collection in self._named(steps[0])}
        rest = "/".join(steps[1:])
        here = [
            document
            for document in self.documents
            if _fold(document.path) == _fold(whole)
            or (document.collection in named and _fold(document.path) == _fold(rest))
        ]
        same = [document for document in here if document.path in (whole, rest)]
        by_address = [document for document in same or here if document.collection in named]
        found = _latest(by_address or same or here)
        if len(found) > 1:
            raise _ambiguous(whole, [document.address for document in found])
        return found[0] if found else None

    def _folder(self, steps: Sequence[str]) -> Folder | None:
        found: list[Folder] = []
        for collection in self._named(steps[0]):
            found += self._inside(collection, "/".join(steps[1:]))
        if not found:
            for collection in self.collections:
                found += self._inside(collection, "/".join(steps))
        if len(found) > 1:
            raise _ambiguous("/".join(steps), [folder.address for folder in found])
        return found[0] if found else None

    def _inside(self, collection: ShownCollection, path: str) -> list[Folder]:
        if not path:
            return [Folder(collection, "")]
        start, length = _fold(path) + "/", len(path)
        spelt = {
            document.path[:length]
            for document in self.documents
            if document.collection == collection.slug and _fold(document.path[: length + 1]) == start
        }
        return [Folder(collection, path if path in spelt else min(spelt))] if spelt else []

    def _by_end(self, steps: Sequence[str], wanted: str) -> ShownDocument:
        whole = _fold("/".join(steps))
        ending = [document for document in self.documents if _fold(document.path).endswith("/" + whole)]
        titled = [document for document in self.documents if document.title and _fold(document.title) == _fold(wanted)]
        found = ending or titled
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous(wanted, [document.address for document in found])
        raise self._unknown(wanted)

    def _named(self, first: str) -> list[ShownCollection]:
        """The collections of that slug, else of that name."""
        by_slug = [collection for collection in self.collections if collection.slug == first.lower()]
        return by_slug or [collection for collection in self.collections if _fold(collection.name) == _fold(first)]

    def _unknown(self, wanted: str) -> PathError:
        near = nearest(wanted, [document.address for document in self.documents[:_COMPARED]])
        text = f"There is no {one_line(wanted, 120)!r} in the library."
        if near:
            text += " Near it: " + ", ".join(map(one_line, near)) + "."
        return PathError("unknown", f"{text} {_HINT}")


_HINT = "Only documents of the library can be read. Look for a name with find, or see what there is with ls."


def nearest(wanted: str, addresses: Sequence[str]) -> list[str]:
    """The few addresses most like `wanted`, by shared groups of three letters of the last step, then of the whole."""
    asked_whole, asked_last = _trigrams(wanted), _trigrams(wanted.rstrip("/").rpartition("/")[2])
    scored: list[tuple[float, str]] = []
    for address in addresses:
        last = _likeness(asked_last, _trigrams(address.rpartition("/")[2]))
        score = max(last, 0.9 * _likeness(asked_whole, _trigrams(address)))
        if score >= _ALIKE:
            scored.append((-score, address))
    return [address for _, address in sorted(scored)[:CANDIDATES]]


def _readings(wanted: str) -> list[list[str]]:
    """As it is written, then with backslashes turned and `%20` and the like decoded.

    Raises:
        PathError: when all of them climb out of the library.
    """
    readings: list[list[str]] = []
    for text in dict.fromkeys((wanted, unquote(wanted).replace("\\", "/"))):
        if (steps := _steps(text)) is not None and steps not in readings:
            readings.append(steps)
    if not readings:
        raise PathError("outside", f"{one_line(wanted, 120)!r} lies outside the library. {_HINT}")
    return readings


def _steps(path: str) -> list[str] | None:
    steps: list[str] = []
    for step in path.strip().split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step.strip() not in ("", "."):
            steps.append(step)
    return steps


def _fold(text: str) -> str:
    """For comparing: case, and what `one_line` shows of an unprintable character, play no part."""
    return text.casefold() if text.isprintable() else one_line(text, len(text) + 1).casefold()


def _latest(documents: Sequence[ShownDocument]) -> list[ShownDocument]:
    """One document per address."""
    return list({document.address: document for document in documents}.values())


def _ambiguous(wanted: str, addresses: Sequence[str]) -> PathError:
    shown = ", ".join(map(one_line, addresses[:CANDIDATES]))
    more = f" and {len(addresses) - CANDIDATES} more" if len(addresses) > CANDIDATES else ""
    text = f"{len(addresses)} places are called {one_line(wanted, 120)!r}: {shown}{more}. Use the whole path of one."
    return PathError("ambiguous", text)


def _trigrams(text: str) -> set[str]:
    flat = text.casefold()
    return {flat[at : at + 3] for at in range(max(1, len(flat) - 2))}


def _likeness(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right)
