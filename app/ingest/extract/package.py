"""A zipped document's parts: opened after the zip guard, XML read without entities, relations followed by kind.

Called by `xlsx`, `pptx` and `epub`. Names are compared without their namespaces: strict and transitional office files
differ only there. Owns no format.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, iterparse
from xml.parsers.expat import ExpatError, ParserCreate

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from app.ingest.errors import IngestError
from app.ingest.extract.zip_guard import Source, check_zip, opened

MAX_TREE_BYTES = 32 * 1024 * 1024
"""Largest part that is read as a tree; what can be larger (sheets, strings) is streamed."""

_FAULTS = (
    *(
        ParseError,
        ExpatError,
        DefusedXmlException,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        EOFError,
        KeyError,
    ),
    *(ValueError, OSError, AttributeError, TypeError, IndexError),
)


class Relation(NamedTuple):
    """Where a relation leads: the last word of its kind ("worksheet"), the part's name, whether that is a place on the
    network."""

    kind: str
    target: str
    external: bool


class Package:
    """An open zipped document."""

    def __init__(self, archive: zipfile.ZipFile, *, document_types: bool) -> None:
        self._archive = archive
        self._document_types = document_types
        self.names = frozenset(archive.namelist())

    def data(self, name: str) -> bytes:
        """A part's bytes.

        Raises:
            KeyError: there is none of that name.
            IngestError: too_long.
        """
        if self._archive.getinfo(name).file_size > MAX_TREE_BYTES:
            raise IngestError("too_long")
        return self._archive.read(name)

    def tree(self, name: str) -> Element:
        """A part as an XML tree. Same errors, and those of a bad XML file, which `open_package` turns into corrupt."""
        return fromstring(self.data(name), forbid_dtd=not self._document_types)

    def chunks(self, name: str, size: int = 256 * 1024) -> Iterator[bytes]:
        """A part's bytes, some at a time."""
        with self._archive.open(name) as part:
            while data := part.read(size):
                yield data

    def elements(self, name: str, container: str, wanted: str) -> Iterator[Element]:
        """The elements called `wanted` directly in the one called `container`, one in memory at a time.

        With the parser in C: the one of defusedxml takes a minute over a million cells. What it would refuse can only
        stand before the first element, and is looked for there.
        """
        with self._archive.open(name) as part:
            _refuse_document_type(part)
            part.seek(0)
            events = iterparse(part, ("start", "end"))  # noqa: S314 - has no document type, so no entities
            holder = next((element for _, element in events if local(element) == container), None)
            if holder is None:
                return
            tag = holder.tag.removesuffix(container) + wanted
            for event, element in events:
                if element.tag == tag and event == "end":
                    yield element
                    holder.clear()
                elif element is holder:
                    return

    def relations(self, part: str) -> dict[str, Relation]:
        """A part's relations by id; none where it has no list of them."""
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        if path not in self.names:
            return {}
        found: dict[str, Relation] = {}
        for element in self.tree(path):
            target, external = element.get("Target", ""), element.get("TargetMode") == "External"
            if not external:
                target = resolved(folder, target)
            found[element.get("Id", "")] = Relation(element.get("Type", "").rpartition("/")[2], target, external)
        return found

    def main_part(self) -> str:
        """The office document itself.

        Raises:
            KeyError: the package names none that it holds.
        """
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and relation.target in self.names:
                return relation.target
        raise KeyError("officeDocument")

    def own_title(self) -> str:
        """The title in an office file's properties, "" where there is none."""
        part = next((found.target for found in self.relations("").values() if found.kind == "core-properties"), "")
        if part not in self.names:
            return ""
        return next((" ".join((e.text or "").split()) for e in self.tree(part) if local(e) == "title"), "")


class _FirstElementError(Exception):
    """Ends the look at what stands before the first element."""


def _refuse_document_type(part: IO[bytes]) -> None:
    """Reads up to the first element, in whatever encoding.

    Raises:
        ValueError: a document type stands before it.
    """

    def refuse(*_: object) -> None:
        raise ValueError("document type")

    def stop(*_: object) -> None:
        raise _FirstElementError

    parser = ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        while data := part.read(4096):
            parser.Parse(data)
    except _FirstElementError:
        return


@contextmanager
def open_package(source: Source, *, document_types: bool = False) -> Generator[Package]:
    """Opens a zipped document once the guard has unpacked it into nothing.

    Raises:
        IngestError: corrupt, encrypted, or too_long; whatever a broken file makes the body raise becomes corrupt.
    """
    check_zip(source, document_types=document_types)
    try:
        with opened(source) as file, zipfile.ZipFile(file) as archive:
            yield Package(archive, document_types=document_types)
    except _FAULTS as error:
        raise IngestError("corrupt") from error


def local(element: Element) -> str:
    """An element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def attribute(element: Element, name: str) -> str:
    """An attribute's value by its name without namespace, "" where there is none."""
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), "")


def reference(element: Element, name: str = "id") -> str:
    """The id of the relation an element refers to: an attribute that, unlike the element's own id, has a namespace."""
    return next((value for key, value in element.items() if key.startswith("{") and key.endswith("}" + name)), "")


def under(element: Element, name: str) -> Iterator[Element]:
    """All elements of a name in it, at any depth, in order."""
    return (found for found in element.iter() if local(found) == name)


def child(element: Element | None, *names: str) -> Element | None:
    """The element at a path of names, the first at each step; None where the path breaks off."""
    for name in names:
        if element is None:
            return None
        element = next((found for found in element if local(found) == name), None)
    return element


def resolved(folder: str, target: str) -> str:
    """A relation's or link's target as the name of a part."""
    target = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
