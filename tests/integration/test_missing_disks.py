"""A watched folder whose disk is not there keeps its documents, until a person says otherwise."""

import shutil
from pathlib import Path

import pytest

from app.settings import Settings
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import fill, found, sections, watch
from tests.waiting import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("accident", ["gone", "emptied", "a file instead"])
def test_a_folder_that_is_not_there_deletes_nothing(settings: Settings, root: Path, accident: str) -> None:
    """A disk that is not mounted looks like this: the scan fails and says so."""
    fill(root, a=sections("apples"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        before = library.rows()
        (root / "a.md").unlink()
        if accident != "emptied":
            root.rmdir()
        if accident == "a file instead":
            root.write_text("no folder")
        state = library.scan(collection_id)
        assert (state.state, state.error) == ("failed", "folder_empty" if accident == "emptied" else "folder_missing")
        assert library.rows() == before
        assert found(library, "apples")


@pytest.mark.parametrize("mount_point", ["missing", "empty", "with what systems leave there"])
def test_a_disk_that_comes_back_finds_its_documents_as_they_were(
    settings: Settings, root: Path, tmp_path: Path, mount_point: str
) -> None:
    """However often the clock looked meanwhile: the same rows, nothing read again, and the alarm is over."""
    fill(root, a=sections("apples"), sub__b=sections("pears"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        before = library.rows()
        root.rename(tmp_path / "away")
        if mount_point != "missing":
            root.mkdir()
        if mount_point.startswith("with"):
            (root / ".unmounted").touch()
            (root / "lost+found").mkdir()
        for _ in range(3):
            library.scan(collection_id)
            # Who watches the folder may have asked for a look of its own meanwhile.
            until(lambda: library.scan_state(collection_id).state == "failed", "the look has failed")
        assert found(library, "apples")
        assert library.rows() == before
        if mount_point != "missing":
            shutil.rmtree(root)
        (tmp_path / "away").rename(root)
        state = library.scan(collection_id)
        assert (state.state, state.error, state.result["removed"], state.result["added"]) == ("done", None, 0, 0)
        assert library.rows() == before
        assert_sound(library)


def test_a_folder_that_is_said_to_be_empty_loses_its_documents(settings: Settings, root: Path) -> None:
    """Only then, and for that scan alone; the folder stays watched."""
    fill(root, a=sections("apples"))
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        (root / "a.md").unlink()
        assert library.scan(collection_id).error == "folder_empty"
        library.folders.request_scan(USER, collection_id, may_be_empty=True)
        library.settle()
        state = library.scan_state(collection_id)
        assert (state.state, state.error, state.result["removed"]) == ("done", None, 1)
        assert library.rows() == []
        assert_sound(library)
        fill(root, a=sections("apples"))
        library.scan(collection_id)
        (root / "a.md").unlink()
        assert library.scan(collection_id).error == "folder_empty"


@pytest.fixture
def many(root: Path) -> Path:
    """A folder with enough documents to miss them."""
    fill(root, **{f"sub__{number}" if number % 2 else f"n{number}": sections(f"apples{number}") for number in range(6)})
    return root


def test_a_stray_file_in_a_bare_mount_point_deletes_nothing(settings: Settings, many: Path, tmp_path: Path) -> None:
    """It is not taken in either, however often and from wherever the look comes; the disk finds all as it was."""
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, many)
        before = library.rows()
        many.rename(tmp_path / "away")
        fill(many, left_here=sections("pears"), sub__too=sections("quinces"))
        for _ in range(3):
            library.scan(collection_id)
            until(lambda: library.scan_state(collection_id).state == "failed", "the look has failed")
            assert library.scan_state(collection_id).error == "folder_replaced"
        library.folders.request_scan(USER, collection_id)
        library.settle()
        assert library.rows() == before
        assert found(library, "apples1")
        shutil.rmtree(many)
        (tmp_path / "away").rename(many)
        state = library.scan(collection_id)
        assert (state.state, state.error, state.result["removed"], state.result["added"]) == ("done", None, 0, 0)
        assert library.rows() == before
        assert_sound(library)


def test_other_files_take_the_place_of_those_that_are_said_to_be_gone(settings: Settings, many: Path) -> None:
    """As a person said; the next look is an ordinary one again."""
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, many)
        for path in list(many.rglob("*.md")):
            path.unlink()
        fill(many, other=sections("pears"))
        assert library.scan(collection_id).error == "folder_replaced"
        library.folders.request_scan(USER, collection_id, may_be_empty=True)
        library.settle()
        assert library.paths() == ["other.md"]
        assert (library.scan(collection_id).state, library.paths()) == ("done", ["other.md"])
        assert_sound(library)


def test_a_folder_whose_files_all_moved_is_no_missing_disk(settings: Settings, many: Path) -> None:
    """One that is known again says that the rest may be believed."""
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, many)
        kept = {row.id for row in library.rows()}
        (many / "deep").mkdir()
        for path in list(many.rglob("*.md"))[1:]:
            path.rename(many / "deep" / path.name)
        next(path for path in many.rglob("*.md") if path.parent != many / "deep").unlink()
        fill(many, other=sections("pears"))
        state = library.scan(collection_id)
        assert (state.state, state.error) == ("done", None)
        assert len(library.paths()) == 6
        assert len(kept & {row.id for row in library.rows()}) == 5
        assert_sound(library)


def test_a_few_files_that_are_replaced_are_no_missing_disk(settings: Settings, root: Path) -> None:
    """Someone who keeps four notes may well exchange them."""
    fill(root, **{f"n{number}": sections(f"apples{number}") for number in range(4)})
    with IngestLibrary(settings).start() as library:
        collection_id = watch(library, root)
        for path in list(root.glob("*.md")):
            path.unlink()
        fill(root, other=sections("pears"))
        assert library.scan(collection_id).error is None
        assert library.paths() == ["other.md"]
