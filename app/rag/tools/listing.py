"""The tools `ls` and `find`: names of folders and documents, no text of theirs."""

from collections.abc import Sequence

from app.rag.tool_calls import ToolResult
from app.rag.tools.arguments import Call
from app.rag.tools.desk import Desk, as_list
from app.rag.tools.names import ASKED_CHARS, one_line
from app.rag.tools.paths import Folder, Tree
from app.rag.tools.patterns import NamePattern
from app.store.tool_reads import ShownCollection, ShownDocument, last_lines

SHOWN = 200
"""Entries of one result at most."""
_TITLE_CHARS = 80


def list_place(call: Call, desk: Desk) -> ToolResult:
    """What a folder holds: folders first, then documents; at the top the collections, or what the only one holds.

    Raises:
        PathError: when nothing has that path.
    """
    tree = desk.tree()
    place = tree.place(call.text("path"))
    if isinstance(place, ShownDocument):
        return ToolResult(_document_lines(desk, [place])[0], desk.texts.files(1))
    if place is None and len(tree.collections) == 1:
        place = Folder(tree.collections[0], "")
    return _collections(desk, tree) if place is None else _folder(desk, tree, place)


def find_documents(call: Call, desk: Desk) -> ToolResult:
    """The documents whose path or title fits a pattern.

    Raises:
        PathError: when `path` names nothing.
    """
    tree = desk.tree()
    asked = call.text("pattern")
    found = matching(asked, documents_in(tree, call.text("path")))
    if not found:
        text = f"No path or title fits {one_line(asked, ASKED_CHARS)!r}. Try a shorter part, or grep the texts."
        return ToolResult(text, desk.texts.say("nothing"))
    head = "1 document fits:" if len(found) == 1 else f"{len(found)} documents fit:"
    text = as_list(head, _document_lines(desk, found[:SHOWN]), len(found), desk.tokens)
    return ToolResult(text, desk.texts.files(len(found)))


def documents_in(tree: Tree, path: str) -> Sequence[ShownDocument]:
    """The documents of a folder, all of them without one; or the one that is named.

    Raises:
        PathError: when nothing has that path.
    """
    place = tree.place(path) if path else None
    if place is None:
        return tree.documents
    if isinstance(place, ShownDocument):
        return [place]
    return [document for document in tree.documents if place.holds(document)]


def matching(pattern: str, documents: Sequence[ShownDocument]) -> list[ShownDocument]:
    """Those whose address or title fits; where none does, those that hold every word of the pattern."""
    name = NamePattern(pattern)
    found = [one for one in documents if name.fits(one.address) or (one.title and name.fits(one.title))]
    if found or name.is_glob:
        return found
    words = pattern.casefold().split()
    return [one for one in documents if all(word in f"{one.address} {one.title}".casefold() for word in words)]


def _collections(desk: Desk, tree: Tree) -> ToolResult:
    if not tree.collections:
        return ToolResult("The library holds no documents.", desk.texts.entries(0))
    lines = [_collection_line(one) for one in tree.collections]
    return ToolResult(as_list("Collections:", lines, len(lines), desk.tokens), desk.texts.entries(len(lines)))


def _collection_line(collection: ShownCollection) -> str:
    name = one_line(collection.name, _TITLE_CHARS)
    called = "" if name == collection.slug else f'  "{name}"'
    return f"/{collection.slug}/  {_count(collection.documents)}{called}"


def _folder(desk: Desk, tree: Tree, folder: Folder) -> ToolResult:
    skip = len(folder.path) + 1 if folder.path else 0
    folders: dict[str, int] = {}
    documents: list[ShownDocument] = []
    for document in tree.documents:
        if not folder.holds(document):
            continue
        step, slash, _ = document.path[skip:].partition("/")
        if slash:
            folders[step] = folders.get(step, 0) + 1
        else:
            documents.append(document)
    lines = [
        f"{one_line(f'{folder.address}/{name}')}/  {_count(number)}" for name, number in sorted(folders.items())[:SHOWN]
    ]
    lines += _document_lines(desk, documents[: SHOWN - len(lines)])
    total = len(folders) + len(documents)
    if not total:
        return ToolResult(f"{one_line(folder.address)} holds no documents.", desk.texts.entries(0))
    inside = "1 folder" if len(folders) == 1 else f"{len(folders)} folders"
    head = f"{one_line(folder.address)} holds {inside} and {_count(len(documents))}:"
    return ToolResult(as_list(head, lines, total, desk.tokens), desk.texts.entries(total))


def _document_lines(desk: Desk, documents: Sequence[ShownDocument]) -> list[str]:
    ids = [document.id for document in documents]
    lengths = desk.read(lambda session: last_lines(session, desk.scope, ids))
    return [_document_line(document, lengths.get(document.id)) for document in documents]


def _document_line(document: ShownDocument, lines: int | None) -> str:
    parts = [one_line(document.address)]
    if not document.has_text or lines is None:
        parts.append("can't be read" if document.status == "failed" else "not read yet")
    else:
        parts.append("1 line" if lines == 1 else f"{lines} lines")
    if document.title:
        parts.append(f'"{one_line(document.title, _TITLE_CHARS)}"')
    return "  ".join(parts)


def _count(number: int) -> str:
    return "1 document" if number == 1 else f"{number} documents"
