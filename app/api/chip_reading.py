"""The chips of a question, resolved: which of its marks name something the asker may read, and where they lead.

Owns what becomes a chip, how chips and the turn's scope combine into filters, and what has to be said about names that
led nowhere. The grammar is `app.rag.chips`', the look-ups are `app.store.naming`'s. Called by `app.api.asked`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from app.rag.chips import Chip, Mark, Reading, marks_in
from app.store import naming
from app.store.document_types import TYPE_WORDS
from app.store.engine import Session
from app.store.naming import NamedCollection, NamedDocument, NamedFolder
from app.store.scope import SearchFilters

LOOK_UPS_MAX = 16
"""Names looked up for one turn, the earlier questions' included; what is left stays text."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to say beside the answer: `notices.<code>` of the catalog."""

    code: str
    name: str = ""
    n: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What the marks of one question name."""

    chips: tuple[Chip, ...] = ()
    collections: tuple[int, ...] | None = None
    documents: tuple[NamedDocument, ...] = ()
    folders: tuple[NamedFolder, ...] = ()
    types: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    remarks: tuple[Remark, ...] = ()


class ChipReader:
    """Reads questions; looks every name up once."""

    def __init__(self, session: Session, user_id: int, scope: SearchFilters, today: date) -> None:
        self._session = session
        self._user_id = user_id
        self._scope = scope
        self._today = today
        self._look_ups = 0
        self._collections: list[NamedCollection] | None = None

    def read(self, question: str) -> Found:
        """The question's chips and what they name."""
        marks = marks_in(question, self._today)
        if not marks:
            return Found()
        gathered = _Gathered()
        # Collections first: the others' names are looked for inside of them.
        for mark in sorted(marks, key=lambda mark: mark.kind != "collection"):
            self._take(mark, question, gathered)
        gathered.chips.sort(key=lambda chip: chip.start)
        if any(chip.kind in ("document", "folder", "collection") for chip in gathered.chips):
            gathered.remarks += self._outside(gathered)
        return gathered.found()

    def filters(self, found: Found) -> SearchFilters:
        """What the chips narrow the scope to."""
        scope = self._scope
        collections = _both(scope.collections, found.collections)
        path, documents = scope.path, None
        if found.folders or found.documents:
            ids = {document.id for document in found.documents}
            if found.folders and not ids and len(found.folders) == 1 and scope.path is None:
                folder = found.folders[0]
                path, collections = folder.path or None, _both(collections, (folder.collection_id,))
            else:
                ids |= set(naming.documents_in(self._session, self._user_id, found.folders))
                documents = tuple(sorted(ids))
        types = found.types or None
        return SearchFilters(
            collections=collections,
            documents=_both(scope.documents, documents),
            path=path,
            types=types if scope.types is None else tuple(t for t in scope.types if types is None or t in types),
            since=max(filter(None, (scope.since, _midnight(found.since))), default=None),
            until=min(filter(None, (scope.until, _midnight(found.until))), default=None),
        )

    def _take(self, mark: Mark, question: str, gathered: "_Gathered") -> None:
        match mark.kind:
            case "since" | "until":
                gathered.take_day(mark)
            case "type":
                gathered.take_types(mark)
            case "collection":
                self._take_collection(mark, gathered)
            case "document":
                self._take_document(mark, gathered)
            case "folder":
                self._take_folder(mark, gathered)

    def _take_collection(self, mark: Mark, gathered: "_Gathered") -> None:
        if self._collections is None:
            self._collections = naming.readable_collections(self._session, self._user_id)
        for reading in mark.readings:
            if rows := naming.collections_called(self._collections, reading.name):
                name = rows[0].name
                gathered.chips.append(Chip("collection", name, name, mark.start, reading.end))
                gathered.collections = (*(gathered.collections or ()), *(row.id for row in rows))
                return
        if mark.is_meant:
            gathered.remarks.append(Remark("chip_no_collection", mark.name))

    def _take_document(self, mark: Mark, gathered: "_Gathered") -> None:
        for reading in self._affordable(mark):
            documents, total = self._documents(reading.name, gathered.collections)
            if not documents:
                continue
            only = total == 1
            label = documents[0].path.rpartition("/")[2] if only else reading.name
            gathered.chips.append(Chip("document", label, label, mark.start, reading.end))
            gathered.documents += [row for row in documents if row not in gathered.documents]
            if not only:
                code = "chip_many" if total == len(documents) else "chip_too_many"
                gathered.remarks.append(Remark(code, reading.name, total))
            return
        if mark.is_meant:
            gathered.remarks.append(Remark("chip_no_document", mark.name))

    def _documents(self, name: str, collections: tuple[int, ...] | None) -> tuple[list[NamedDocument], int]:
        """Inside of what is asked; else anywhere, so that it can be said that it lies outside."""
        within = _both(self._scope.collections, collections)
        found = naming.documents_called(self._session, self._user_id, name, within)
        if found[1] or within is None:
            return found
        return naming.documents_called(self._session, self._user_id, name)

    def _take_folder(self, mark: Mark, gathered: "_Gathered") -> None:
        within = _both(self._scope.collections, gathered.collections)
        for reading in self._affordable(mark):
            folders = naming.folders_called(self._session, self._user_id, reading.name, within)
            folders = folders or naming.folders_called(self._session, self._user_id, reading.name)
            if folders:
                label = folders[0].path if len(folders) == 1 and folders[0].path else reading.name
                gathered.chips.append(Chip("folder", label, label.rstrip("/"), mark.start, reading.end))
                gathered.folders += [folder for folder in folders if folder not in gathered.folders]
                return
        if mark.is_meant:
            gathered.remarks.append(Remark("chip_no_folder", mark.name))

    def _affordable(self, mark: Mark) -> Sequence[Reading]:
        left = max(0, LOOK_UPS_MAX - self._look_ups)
        self._look_ups += len(mark.readings)
        return mark.readings[:left]

    def _outside(self, gathered: "_Gathered") -> list[Remark]:
        """Says that what was named can't be found where the turn looks."""
        within = _both(self._scope.collections, gathered.collections)
        if within is None:
            return []
        places = {row.collection_id for row in (*gathered.documents, *gathered.folders)}
        return [] if within and (not places or places & set(within)) else [Remark("chip_outside")]


class _Gathered:
    """What the marks of a question have given so far."""

    def __init__(self) -> None:
        self.chips: list[Chip] = []
        self.collections: tuple[int, ...] | None = None
        self.documents: list[NamedDocument] = []
        self.folders: list[NamedFolder] = []
        self.remarks: list[Remark] = []
        self._types: list[str] = []
        self._since: date | None = None
        self._until: date | None = None

    def take_day(self, mark: Mark) -> None:
        if mark.day is None:
            return
        if mark.kind == "since":
            self._since = max(filter(None, (self._since, mark.day)))
        else:
            self._until = min(filter(None, (self._until, mark.day)))
        self.chips.append(Chip(mark.kind, mark.day.isoformat(), "", mark.start, mark.readings[0].end))

    def take_types(self, mark: Mark) -> None:
        """`type:pdf,word`; with one word that is no type all of it stays text."""
        words = [_TYPE_ALIASES.get(word, word) for word in mark.name.strip(".").split(",") if word]
        if not words or not set(words) <= set(TYPE_WORDS):
            return
        self._types += [word for word in words if word not in self._types]
        self.chips.append(Chip("type", ", ".join(words), "", mark.start, mark.readings[0].end))

    def found(self) -> Found:
        return Found(
            tuple(self.chips),
            self.collections,
            tuple(sorted(self.documents, key=lambda row: (row.path, row.id))),
            tuple(self.folders),
            tuple(self._types),
            self._since,
            self._until,
            tuple(self.remarks),
        )


_TYPE_ALIASES = {
    "md": "markdown",
    "txt": "text",
    "rst": "text",
    "htm": "html",
    "web": "html",
    "word": "docx",
    "doc": "docx",
    "excel": "xlsx",
    "xls": "xlsx",
    "sheet": "xlsx",
    "powerpoint": "pptx",
    "ppt": "pptx",
    "slides": "pptx",
    "tsv": "csv",
    "eml": "mail",
    "email": "mail",
    "book": "epub",
    "json": "config",
    "yaml": "config",
    "yml": "config",
    "toml": "config",
    "ini": "config",
    "xml": "config",
}


def _both(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The ids in both; None is all there are."""
    if one is None or other is None:
        return other if one is None else one
    return tuple(value for value in one if value in set(other))


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)
