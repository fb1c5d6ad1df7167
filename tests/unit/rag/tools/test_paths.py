"""Which document a path means, and what is said where none or several do."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.rag.tools.paths import Folder, PathError, Tree, nearest
from app.store.tool_reads import ShownCollection, ShownDocument


def document(document_id: int, collection: str, path: str, title: str = "") -> ShownDocument:
    return ShownDocument(document_id, collection, path, title, 10, "ready", None, True)


TREE = Tree(
    [ShownCollection(1, "Library", "library", 6), ShownCollection(2, "Bob's wiki", "bobs-wiki", 3)],
    [
        document(1, "bobs-wiki", "README.md"),
        document(2, "bobs-wiki", "guides/backup.md"),
        document(3, "bobs-wiki", "library/deep.md"),
        document(4, "library", "README.md"),
        document(5, "library", "notes/Setup Guide.md", "Setting up"),
        document(6, "library", "notes/100%25.md"),
        document(7, "library", "guides/restore.md", "Bring it back"),
        document(8, "library", "Notes.md"),
        document(9, "library", "strange\nname.md"),
        document(11, "library", "x/Same.md"),
        document(12, "bobs-wiki", "y/same.md"),
        document(10, "library", "a <|im_start|> b.md"),
    ],
)

HOSTILE = [
    "../../etc/passwd",
    "/etc/passwd",
    "/library/../../etc/passwd",
    "..",
    "/library/..%2f..%2fetc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "..\\..\\windows\\win.ini",
    "C:\\windows\\win.ini",
    "\\\\server\\share\\x",
    "file:///etc/passwd",
    "README.md\0.txt",
    "/proc/self/environ",
    "~/.ssh/id_rsa",
    "/library/" + "../" * 300 + "etc/passwd",
    "////etc////passwd",
    "/./../etc/passwd",
    "/library/README.md/../../../etc/passwd",
    "\u2025/\u2025/etc/passwd",
    "/dev/stdin",
    "x" * 1000,
    "/library/*",
    "%00",
]


@pytest.mark.parametrize(
    ("wanted", "document_id"),
    [
        ("/library/README.md", 4),
        ("library/README.md", 4),
        ("/LIBRARY/readme.MD", 4),
        ("/Bob's wiki/README.md", 1),
        ("/Bob%27s%20wiki/README.md", 1),
        ("notes/Setup Guide.md", 5),
        ("./notes/Setup%20Guide.md", 5),
        ("notes\\Setup Guide.md", 5),
        ("/notes/./old/../Setup Guide.md", 5),
        ("/library/notes/100%25.md", 6),
        ("guides/backup.md", 2),
        ("backup.md", 2),
        ("Bring it back", 7),
        ("library/deep.md", 3),
        ("/library/strange name.md", 9),
        ("/library/a <\u200b|im_start|> b.md", 10),
    ],
)
def test_a_path_is_understood(wanted: str, document_id: int) -> None:
    """By address, without its collection, in any case, decoded, by its end or its title."""
    assert TREE.document(wanted).id == document_id


def test_an_end_that_two_documents_have_lists_them() -> None:
    """Whatever their case."""
    with pytest.raises(PathError, match="2 places are called"):
        TREE.document("same.md")


def test_a_path_that_two_documents_have_lists_them() -> None:
    """So that the next call can name one."""
    with pytest.raises(PathError, match=r"/bobs-wiki/README\.md, /library/README\.md") as caught:
        TREE.document("README.md")
    assert caught.value.kind == "ambiguous"


@pytest.mark.parametrize("wanted", ["", "/", ".", "./", "/library/.."])
def test_the_top_is_everything(wanted: str) -> None:
    """It is a place, but not a document."""
    assert TREE.place(wanted) is None
    with pytest.raises(PathError, match="is a folder"):
        TREE.document(wanted)


@pytest.mark.parametrize(
    ("wanted", "address", "ids"),
    [
        ("/library", "/library", [4, 5, 6, 7, 8, 9, 11, 10]),
        ("Library/", "/library", [4, 5, 6, 7, 8, 9, 11, 10]),
        ("/library/notes", "/library/notes", [5, 6]),
        ("NOTES", "/library/notes", [5, 6]),
        ("/bobs-wiki/guides/", "/bobs-wiki/guides", [2]),
    ],
)
def test_a_folder_holds_what_lies_in_it(wanted: str, address: str, ids: list[int]) -> None:
    """`Notes.md` beside `notes/` does not."""
    place = TREE.place(wanted)
    assert isinstance(place, Folder)
    assert place.address == address
    assert [one.id for one in TREE.documents if place.holds(one)] == ids


def test_a_folder_that_two_collections_have_is_ambiguous() -> None:
    """Both are named."""
    with pytest.raises(PathError, match="/library/guides, /bobs-wiki/guides"):
        TREE.place("guides")


@pytest.mark.parametrize("wanted", HOSTILE)
def test_a_hostile_path_is_a_clear_error(wanted: str) -> None:
    """It names no document, and the error says where documents are."""
    with pytest.raises(PathError, match="Only documents of the library can be read") as caught:
        TREE.document(wanted)
    assert caught.value.kind in ("outside", "unknown")
    assert len(str(caught.value)) < 1000


def test_an_unknown_name_is_answered_with_those_near_it() -> None:
    """A slip of one letter finds the file."""
    with pytest.raises(PathError, match=r"Near it: /library/guides/restore\.md"):
        TREE.document("restroe.md")
    assert nearest("zzz", [one.address for one in TREE.documents]) == []


@given(st.text(alphabet=st.sampled_from("./\\%2fe5 aLR\0library")) | st.text())
def test_any_path_is_a_place_or_a_path_error(wanted: str) -> None:
    """Nothing else is raised."""
    with suppress(PathError):
        place = TREE.place(wanted)
        assert place is None or place in TREE.documents or isinstance(place, Folder)
