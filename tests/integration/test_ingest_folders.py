"""Watched folders: what a scan takes, leaves, notices; nothing outside the root is ever read."""

import os
import socket
from pathlib import Path
from typing import get_args

import pytest

from app.catalog import load_catalog
from app.clock import SystemClock
from app.errors import NotFoundError
from app.ingest import folders
from app.ingest.errors import IngestError
from app.ingest.filenames import SkipReason
from app.settings import Settings
from app.store import intake
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import CountingEmbedder, fill, found, sections, watch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def test_a_folder_is_read_once_and_a_second_scan_changes_nothing(settings: Settings, root: Path) -> None:
    """Paths are relative, every file is ready, the second scan says unchanged for all."""
    fill(root, raid=sections("disks"), garden__roses=sections("roses"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        assert library.scan_state(collection_id).result["added"] == 2
        before = library.rows()
        assert library.paths() == ["garden/roses.md", "raid.md"]
        assert {row.status for row in before} == {"ready"}
        again = library.scan(collection_id)
        assert again.result == {
            "added": 0, "changed": 0, "renamed": 0, "removed": 0, "unchanged": 2, "moving": 0, "skipped": {}
        }  # fmt: skip
        assert library.rows() == before
        assert_sound(library)


def test_edits_new_files_and_vanished_ones_are_noticed(settings: Settings, root: Path) -> None:
    """Only the passage that changed is embedded; what is gone leaves nothing."""
    fill(root, a=sections("apples", "pears"), b=sections("plums"))
    embedder = CountingEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        collection_id = watch(library, root)
        embedded = len(embedder.texts)
        fill(root, a=sections("apples", "cherries"), c=sections("figs"))
        (root / "b.md").unlink()
        result = library.scan(collection_id).result
        assert (result["added"], result["changed"], result["removed"]) == (1, 1, 1)
        assert library.paths() == ["a.md", "c.md"]
        assert len(embedder.texts) - embedded == 2
        assert found(library, "plums") == found(library, "pears") == set()
        assert_sound(library)


def test_a_renamed_file_keeps_its_row_and_is_found_by_its_new_name(settings: Settings, root: Path) -> None:
    """Moved to another folder: same id, no reading, no embedding."""
    fill(root, oldname=sections("apples"))
    embedder = CountingEmbedder()
    with IngestLibrary(settings, embedder=embedder).start() as library:
        collection_id = watch(library, root)
        (row,) = library.rows()
        embedded = len(embedder.texts)
        (root / "attic").mkdir()
        (root / "oldname.md").rename(root / "attic" / "newname.md")
        assert library.scan(collection_id).result["renamed"] == 1
        (moved,) = library.rows()
        assert (moved.id, moved.path, moved.status) == (row.id, "attic/newname.md", "ready")
        assert len(embedder.texts) == embedded
        assert found(library, "newname") == {row.id}
        assert found(library, "oldname") == set()
        assert_sound(library)


def test_a_file_renamed_to_another_ending_is_read_as_what_it_is_called_now(settings: Settings, root: Path) -> None:
    """The same row and bytes, another text: a table under a name for plain text, a note called .pdf by mistake."""
    (root / "prices.txt").write_text("fruit,price\napples,3\npears,4\n")
    (root / "note.pdf").write_text("Plums keep for a week.\n")
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        ids = {row.path: row.id for row in library.rows()}
        assert {row.path: row.error for row in library.rows()} == {"prices.txt": None, "note.pdf": "corrupt"}
        (root / "prices.txt").rename(root / "prices.csv")
        (root / "note.pdf").rename(root / "note.TXT")
        assert library.scan(collection_id).result["renamed"] == 2
        library.settle()
        now = {row.path: row for row in library.rows()}
        assert {path: (row.id, row.status) for path, row in now.items()} == {
            "prices.csv": (ids["prices.txt"], "ready"),
            "note.TXT": (ids["note.pdf"], "ready"),
        }
        assert now["prices.csv"].mime == "text/csv"
        assert "| apples | 3 |" in (library.detail(now["prices.csv"].id).text or "")
        assert found(library, "plums") == {ids["note.pdf"]}
        assert_sound(library)


@pytest.mark.parametrize("name", ["a.md", "b.md"])
@pytest.mark.parametrize("reason", ["vanished", "unreadable"])
def test_a_file_that_was_away_when_it_was_to_be_read_is_read_once_it_is_back(
    settings: Settings, root: Path, name: str, reason: str
) -> None:
    """With the size and time it had, under its old name or another one; a file that is damaged is not tried again."""
    fill(root, a=sections("apples"))
    (root / "broken.pdf").write_text("no pdf")
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        rows = {row.path: row for row in library.rows()}
        missed = rows["a.md"].id
        library.database.write(lambda session: intake.mark_failed(session, missed, reason, SystemClock().now()))
        (root / "a.md").rename(root / name)
        library.scan(collection_id)
        library.settle()
        after = {row.path: row for row in library.rows()}
        assert (after[name].id, after[name].status, after[name].error) == (missed, "ready", None)
        assert found(library, "apples") == {missed}
        assert after["broken.pdf"] == rows["broken.pdf"]
        assert library.scan(collection_id).result["unchanged"] == 2
        assert_sound(library)


def test_a_touched_file_of_the_same_content_is_not_read_again(settings: Settings, root: Path) -> None:
    """Its time is noted, so that it is not hashed the next time either."""
    fill(root, a=sections("apples"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        (before,) = library.rows()
        os.utime(root / "a.md", ns=(10**18, 10**18))
        assert library.scan(collection_id).result["changed"] == 0
        assert library.rows() == [before]


def test_an_edit_that_keeps_size_and_time_is_noticed(settings: Settings, root: Path) -> None:
    """As by programs that set the time back, or on disks that know whole seconds only; rights alone have nothing read
    again."""
    fill(root, a=sections("apples"), b=sections("plums"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        before = {row.path: row for row in library.rows()}
        info = (root / "a.md").stat()
        (root / "a.md").write_text(sections("quince"))
        os.utime(root / "a.md", ns=(info.st_atime_ns, info.st_mtime_ns))
        (root / "b.md").chmod(0o600)
        assert (root / "a.md").stat().st_size == info.st_size
        result = library.scan(collection_id).result
        assert (result["changed"], result["unchanged"]) == (1, 1)
        assert found(library, "quince") == {before["a.md"].id}
        assert next(row for row in library.rows() if row.path == "b.md") == before["b.md"]
        assert library.scan(collection_id).result["unchanged"] == 2
        assert_sound(library)


def test_a_document_taken_out_stays_out_until_its_file_changes(settings: Settings, root: Path) -> None:
    """The file stays on disk; a rename does not bring it back, an edit does."""
    fill(root, a=sections("apples"), b=sections("plums"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        taken = next(row.id for row in library.rows() if row.path == "a.md")
        library.sources.delete_document(USER, taken)
        assert library.paths() == ["b.md"]
        assert found(library, "apples") == set()
        assert_sound(library)
        with pytest.raises(NotFoundError):
            library.detail(taken)
        assert (root / "a.md").exists()
        (root / "a.md").rename(root / "renamed.md")
        library.scan(collection_id)
        assert library.paths() == ["b.md"]
        fill(root, renamed=sections("quinces"))
        library.scan(collection_id)
        assert library.paths() == ["b.md", "renamed.md"]
        assert found(library, "quinces") == {taken}
        assert_sound(library)


def test_secrets_tools_and_binaries_are_passed_over_and_counted(settings: Settings, root: Path) -> None:
    """Nothing of them becomes a row; office formats nobody reads yet do, since a person would look for them."""
    fill(root, a=sections("apples"))
    for name in (".env", "id_rsa", "vault.kdbx", "server.key", "prod.env", ".ssh/config", ".git/HEAD", "~$a.docx"):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("CANARY secret")
    for name in ("node_modules/x/readme.md", "venv/lib/notes.txt"):
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_text("CANARY package")
    (root / "deploy.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n")
    (root / "photo.jpg").write_bytes(b"\xff\xd8\xff" + bytes(500))
    (root / "core").write_bytes(bytes(range(256)) * 8)
    (root / "plan.ppt").write_bytes(b"PK\x03\x04" + bytes(range(256)) * 8)
    with IngestLibrary(settings).start() as library:
        skipped = library.scan_state(watch(library, root)).result["skipped"]
        assert library.paths() == ["a.md", "plan.ppt"]
        assert skipped == {"hidden": 2, "secret": 7, "tooling": 2, "unsupported": 2}
        assert next(row.error for row in library.rows() if row.path == "plan.ppt") == "unsupported"
        assert found(library, "canary") == set()


def test_links_and_special_files_are_never_followed(settings: Settings, root: Path, tmp_path: Path) -> None:
    """Links out, links in a circle, pipes and sockets: counted, not opened."""
    outside = tmp_path / "outside"
    fill(outside, canary=sections("canary"))
    fill(root, a=sections("apples"))
    (root / "out").symlink_to(outside)
    (root / "out.md").symlink_to(outside / "canary.md")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server, IngestLibrary(settings).start() as library:
        here = os.getcwd()
        os.chdir(root)
        try:
            server.bind("s.md")
        finally:
            os.chdir(here)
        skipped = library.scan_state(watch(library, root)).result["skipped"]
        assert library.paths() == ["a.md"]
        assert skipped == {"link": 3, "special": 2}


def test_a_name_that_is_no_text_and_a_folder_too_deep_are_counted_as_what_they_are(
    settings: Settings, root: Path
) -> None:
    """Neither is read, and the folder's line says so: a name in another encoding, what lies below 64 folders."""
    fill(root, a=sections("apples"))
    Path(os.fsdecode(bytes(root) + b"/caf\xe9.md")).write_text("plums")
    here = os.getcwd()
    os.chdir(root)
    try:
        for _ in range(folders.MAX_DEPTH + 1):
            os.mkdir("d")
            os.chdir("d")
        Path("b.md").write_text("pears")
    finally:
        os.chdir(here)
    with IngestLibrary(settings).start() as library:
        skipped = library.scan_state(watch(library, root)).result["skipped"]
        assert library.paths() == ["a.md"]
        assert skipped == {"name": 1, "deep": 1}
        catalog = load_catalog()
        assert all(catalog.has(f"library.skipped_{reason}") for reason in get_args(SkipReason))


def test_a_file_swapped_for_a_link_after_the_walk_is_not_read(root: Path, tmp_path: Path) -> None:
    """Each step of the path is opened without following links, whatever stood there a moment ago."""
    fill(tmp_path / "outside", sub__canary=sections("canary"))
    fill(root, sub__canary=sections("apples"))
    assert set(folders.walk(root).files) == {"sub/canary.md"}
    (root / "sub" / "canary.md").unlink()
    (root / "sub" / "canary.md").symlink_to(tmp_path / "outside" / "sub" / "canary.md")
    with pytest.raises(IngestError) as caught, folders.open_file(root, "sub/canary.md"):
        raise AssertionError("a link was followed")
    assert caught.value.reason == "vanished"
    (root / "sub" / "canary.md").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(tmp_path / "outside" / "sub")
    with pytest.raises(IngestError), folders.open_file(root, "sub/canary.md"):
        raise AssertionError("a link was followed")


def test_what_lies_below_an_unreadable_directory_is_kept(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that cannot be listed says nothing about its files."""
    fill(root, closed__a=sections("apples"), b=sections("plums"))
    listdir = os.listdir

    def refuse(handle: int) -> list[str]:
        if os.readlink(f"/proc/self/fd/{handle}").endswith("/closed"):
            raise PermissionError(13, "closed")
        return listdir(handle)

    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        monkeypatch.setattr(os, "listdir", refuse)
        assert library.scan(collection_id).result["removed"] == 0
        assert library.paths() == ["b.md", "closed/a.md"]


def test_a_file_over_the_limit_is_listed_with_its_reason(settings: Settings, root: Path) -> None:
    """Not read, not hashed, but not silently ignored either."""
    with (root / "huge.log").open("wb") as file:
        file.truncate(2 * 1024 * 1024)
    with IngestLibrary(settings.model_copy(update={"upload_max_mb": 1})).start() as library:
        collection_id = watch(library, root)
        (row,) = library.rows()
        assert (row.status, row.error) == ("failed", "too_large")
        assert library.scan(collection_id).result["changed"] == 0
