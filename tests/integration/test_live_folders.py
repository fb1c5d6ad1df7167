"""Watched folders in step with the disk: the real watcher, real files, deadlines."""

import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.ingest.notify import Notifier, WatchRefusedError, is_remote, open_notifier
from app.settings import Settings
from app.store import collections
from app.store.collections import CollectionRow
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import CountingEmbedder, fill, found, sections, watch
from tests.waiting import until

SOON_S = 10
"""A deadline on a machine that is shared; the promise of two seconds is measured in tests/bench."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def library(settings: Settings, embedder: CountingEmbedder) -> Iterator[IngestLibrary]:
    # The clock never asks for a scan: what is noticed was told by the system.
    patient = settings.model_copy(update={"watch_rescan_s": 3600})
    with IngestLibrary(patient, embedder=embedder, notifying=open_notifier).start() as library:
        yield library


def row_of(library: IngestLibrary, collection_id: int) -> CollectionRow:
    return library.database.read(lambda session: collections.get_collection(session, USER, collection_id))


def live(library: IngestLibrary, root: Path) -> int:
    """Watches a folder, and waits until the system does."""
    collection_id = watch(library, root)
    until(lambda: row_of(library, collection_id).watch is not None, "it is watched", SOON_S)
    library.settle()
    return collection_id


def test_new_edited_renamed_and_deleted_files_are_noticed(
    library: IngestLibrary, root: Path, embedder: CountingEmbedder
) -> None:
    """Without a scan being asked for; an edit embeds what changed, a rename nothing."""
    fill(root, a=sections("apples", "pears"))
    collection_id = live(library, root)
    (row,) = library.rows()
    fill(root, b=sections("plums"))
    until(lambda: found(library, "plums") != set(), "the new file is found", SOON_S)
    library.settle()
    embedded = len(embedder.texts)
    fill(root, a=sections("apples", "cherries"))
    until(lambda: found(library, "cherries") == {row.id}, "the edit is found", SOON_S)
    library.settle()
    assert len(embedder.texts) == embedded + 1
    (root / "a.md").rename(root / "renamed.md")
    until(lambda: library.paths() == ["b.md", "renamed.md"], "the rename is noticed", SOON_S)
    assert library.rows()[1].id == row.id
    (root / "b.md").unlink()
    until(lambda: library.paths() == ["renamed.md"], "the deletion is noticed", SOON_S)
    library.settle()
    assert len(embedder.texts) == embedded + 1
    changed = row_of(library, collection_id)
    assert changed.change is not None
    assert changed.change["removed"] == 1
    assert changed.changed_at is not None
    assert_sound(library)


def test_directories_that_come_later_are_watched_too(library: IngestLibrary, root: Path, tmp_path: Path) -> None:
    """Made, moved in, moved about: what is in them is noticed, and what comes into them afterwards."""
    fill(root, a=sections("apples"))
    live(library, root)
    fill(tmp_path / "elsewhere", deep__one=sections("figs"))
    (tmp_path / "elsewhere").rename(root / "moved")
    until(lambda: "moved/deep/one.md" in library.paths(), "a tree that was moved in", SOON_S)
    library.settle()
    fill(root, moved__deep__two=sections("dates"))
    until(lambda: "moved/deep/two.md" in library.paths(), "a file below it", SOON_S)
    before = {row.id for row in library.rows()}
    (root / "moved").rename(root / "attic")
    until(lambda: "attic/deep/two.md" in library.paths(), "the directory's new name", SOON_S)
    assert {row.id for row in library.rows()} == before
    library.settle()
    fill(root, attic__deep__three=sections("quinces"))
    until(lambda: "attic/deep/three.md" in library.paths(), "a file under the new name", SOON_S)
    shutil.rmtree(root / "attic")
    until(lambda: library.paths() == ["a.md"], "the tree is gone", SOON_S)


def test_a_file_that_grows_is_read_when_it_rests(library: IngestLibrary, root: Path) -> None:
    """Not torn: what is found in the end is the whole of it, and its time is the one on disk."""
    fill(root, a=sections("apples"))
    live(library, root)
    resting = threading.Event()
    with (root / "growing.md").open("w") as file:
        for number in range(12):
            file.write(f"# Part {number}\n\nThe growing text of part {number}.\n\n")
            file.flush()
            resting.wait(0.05)
        file.write("# End\n\nThe lastword stands here.\n")
    until(lambda: found(library, "lastword") != set(), "the whole file is found", SOON_S)
    library.settle()
    row = next(row for row in library.rows() if row.path == "growing.md")
    assert row.bytes == (root / "growing.md").stat().st_size
    assert_sound(library)


def test_a_folder_that_goes_and_comes_back_keeps_its_documents(library: IngestLibrary, root: Path) -> None:
    """A disk that was taken out: nothing is deleted, the row says so, and afterwards changes are noticed again."""
    fill(root, a=sections("apples"))
    collection_id = live(library, root)
    before = library.rows()
    away = root.with_name("away")
    root.rename(away)
    until(lambda: row_of(library, collection_id).watch == "missing", "it is missed", SOON_S)
    library.settle()
    assert library.rows() == before
    fill(away, b=sections("plums"))
    away.rename(root)
    until(lambda: library.paths() == ["a.md", "b.md"], "it is back", SOON_S)
    until(lambda: row_of(library, collection_id).watch == "watching", "it is watched again", SOON_S)
    library.settle()
    fill(root, c=sections("figs"))
    until(lambda: "c.md" in library.paths(), "a new file is noticed again", SOON_S)


def test_what_is_no_document_is_skipped_while_watching(library: IngestLibrary, root: Path) -> None:
    """A key that was a note goes; links in a circle, pipes, keys and tools' folders never come."""
    fill(root, a=sections("apples"), note=sections("secrets"))
    live(library, root)
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.md")
    (root / ".env").write_text("CANARY=1\n")
    fill(root / ".git", config="CANARY")
    fill(root / "node_modules", readme="CANARY")
    (root / "note.md").write_text("-----BEGIN RSA PRIVATE KEY-----\nCANARY\n")
    until(lambda: library.paths() == ["a.md"], "the key is taken out", SOON_S)
    fill(root, z=sections("figs"))
    until(lambda: library.paths() == ["a.md", "z.md"], "notes still come", SOON_S)
    assert found(library, "canary") == set()


def test_folders_are_added_and_removed_while_it_runs(library: IngestLibrary, root: Path, tmp_path: Path) -> None:
    """Each is a collection of its own; one that was removed is not looked at any more."""
    fill(root, a=sections("apples"))
    other = tmp_path / "manuals"
    fill(other, m=sections("pumps"))
    first, second = live(library, root), live(library, other)
    library.folders.remove(USER, first)
    fill(root, b=sections("plums"))
    fill(other, n=sections("valves"))
    until(lambda: library.paths() == ["m.md", "n.md"], "only the other one's are noticed", SOON_S)
    library.settle()
    assert {row.collection_id for row in library.rows()} == {second}
    assert_sound(library)


def test_a_look_at_a_part_leaves_the_rest_alone(library: IngestLibrary, root: Path) -> None:
    """Only the directory in which something changed is listed; what vanished there is looked for everywhere."""
    fill(root, a=sections("apples"), one__b=sections("plums"), two__c=sections("figs"))
    collection_id = live(library, root)
    before = {row.path: row.id for row in library.rows()}
    fill(root, one__d=sections("dates"))
    until(lambda: "one/d.md" in library.paths(), "the new file", SOON_S)
    library.settle()
    state = library.scan_state(collection_id)
    assert (state.result["added"], state.result["unchanged"]) == (1, 1)
    (root / "one" / "b.md").rename(root / "two" / "b.md")
    until(lambda: "two/b.md" in library.paths(), "the move", SOON_S)
    library.settle()
    after = {row.path: row.id for row in library.rows()}
    assert after["two/b.md"] == before["one/b.md"]
    (root / "two" / "c.md").unlink()
    until(lambda: "two/c.md" not in library.paths(), "the deletion", SOON_S)
    library.settle()
    assert library.scan_state(collection_id).result["unchanged"] == 3
    assert_sound(library)


def test_a_name_that_is_not_utf8_does_not_end_the_watch(
    library: IngestLibrary, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The watcher can't say such a name and breaks; another one takes its place, and later changes are noticed."""
    caplog.set_level("INFO", "app.ingest")
    live(library, root)
    try:
        (root / os.fsdecode(b"gr\xfc\xdfe.md")).write_text("# Old names")
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    until(lambda: "state=lost" in caplog.text, "the watch broke", SOON_S)
    library.settle()
    fill(root, a=sections("apples"))
    until(lambda: "a.md" in library.paths(), "a later file is noticed", SOON_S)
    library.settle()
    fill(root, b=sections("plums"))
    until(lambda: "b.md" in library.paths(), "and one after that", SOON_S)


def test_where_the_system_watches_no_more_the_clock_does(
    settings: Settings, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says so, the folder's row too; changes come with the periodic scan."""
    asked: list[Sequence[str]] = []

    def refuse(folders: Sequence[str]) -> Notifier:
        asked.append(folders)
        raise WatchRefusedError("OS file watch limit reached.")

    often = settings.model_copy(update={"watch_rescan_s": 1})
    with IngestLibrary(often, notifying=refuse).start() as library:
        collection_id = watch(library, root)
        until(lambda: row_of(library, collection_id).watch == "limit", "its row says so", SOON_S)
        fill(root, a=sections("apples"))
        until(lambda: library.paths() == ["a.md"], "the clock finds it", SOON_S)
        until(lambda: len(asked) > 2, "it is tried again with each scan", SOON_S)
    lines = [record.getMessage() for record in caplog.records if "folder_watch" in record.getMessage()]
    assert lines == [
        f'folder_watch collection={collection_id} state=limit folders=1 reason="OS file watch limit reached."'
    ]


def test_one_process_watches_and_another_takes_over(settings: Settings, root: Path) -> None:
    """Two workers on one library: each change is scanned by one; when that one ends the other goes on."""
    patient = settings.model_copy(update={"watch_rescan_s": 3600})
    fill(root, a=sections("apples"))
    with (
        IngestLibrary(patient, notifying=open_notifier).start() as second,
        IngestLibrary(patient, notifying=open_notifier) as first,
    ):
        live(second, root)
        first.start()
        fill(root, b=sections("plums"))
        until(lambda: second.paths() == ["a.md", "b.md"], "noticed by one", SOON_S)
        second.worker.stop()
        fill(root, c=sections("figs"))
        until(lambda: first.paths() == ["a.md", "b.md", "c.md"], "noticed by the other", SOON_S)
        first.settle()
        assert_sound(first)


def test_remote_file_systems_are_known_by_their_mount() -> None:
    """The innermost mount decides; a space in its name is written as an escape."""
    mounts = "\n".join(
        [
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw",
            "23 22 0:40 / /mnt/nas rw,relatime shared:5 - nfs4 nas:/export rw",
            "24 23 8:2 / /mnt/nas/local rw - ext4 /dev/sdb1 rw",
            "25 22 0:41 / /mnt/my\\040share rw - cifs //nas/share rw",
            "broken",
        ]
    )
    remote = {path: is_remote(Path(path), mounts) for path in ("/srv", "/mnt/nas/x", "/mnt/nas/local/y", "/mnt/nasty")}
    assert remote == {"/srv": False, "/mnt/nas/x": True, "/mnt/nas/local/y": False, "/mnt/nasty": False}
    assert is_remote(Path("/mnt/my share/z"), mounts)
    assert not is_remote(Path("/"))


def test_a_watch_says_what_changed_until_it_is_closed(root: Path) -> None:
    """The lowest layer: only the named directories, and a missing one is refused or silent."""
    notifier = open_notifier([str(root)])
    (root / "x.md").write_text("x")
    told = notifier.watch(1000, 50, 5000, threading.Event())
    assert {path for _, path in told if not isinstance(told, str)} == {str(root / "x.md")}
    began = time.monotonic()
    stop = threading.Event()
    stop.set()
    assert notifier.watch(1000, 50, 0, stop) == "stop"
    assert time.monotonic() - began < 5
    notifier.close()
