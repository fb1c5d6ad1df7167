"""Which folders are watched: adding, refusing, removing; the environment's; the sample; the clock."""

import os
import re
from pathlib import Path

import pytest

from app.errors import AppError, ConflictError, NotFoundError
from app.settings import ROOT, Settings
from app.store import intake
from tests.ingest_library import USER, IngestLibrary, assert_sound
from tests.ingest_parts import fill, found, sections, watch
from tests.waiting import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("notes", "folder_not_absolute"),
        ("/no/such/folder", "folder_missing"),
        ("/", "folder_forbidden"),
        ("/proc/self", "folder_forbidden"),
        ("/dev", "folder_forbidden"),
        ("/srv\0/x", "folder_not_absolute"),
    ],
)
def test_a_folder_that_cannot_be_watched_is_refused(settings: Settings, path: str, code: str) -> None:
    """Each with a sentence of its own; nothing is stored."""
    with IngestLibrary(settings) as library:
        with pytest.raises(AppError) as caught:
            library.folders.add_folder(USER, path)
        assert caught.value.code == code
        with pytest.raises(AppError):
            library.folders.add_folder(USER, str(settings.data_dir / "files"))


def test_a_folder_is_watched_once_and_not_inside_another(settings: Settings, root: Path) -> None:
    """Neither itself, nor a folder in it, nor one around it, nor by way of a link."""
    (root / "sub").mkdir()
    with IngestLibrary(settings) as library:
        library.folders.add_folder(USER, str(root))
        (root.parent / "link").symlink_to(root)
        for other in (root, root / "sub", root.parent, root.parent / "link"):
            with pytest.raises(ConflictError):
                library.folders.add_folder(USER, str(other))


def test_removing_a_folder_takes_its_documents_and_touches_no_file(settings: Settings, root: Path) -> None:
    """Uploads stay; vectors shared with them stay too."""
    fill(root, a=sections("apples"), b=sections("plums"))
    with IngestLibrary(settings).start() as library:
        upload = library.add("mine.md", sections("apples"))
        collection_id = watch(library, root)
        library.folders.remove(USER, collection_id)
        assert [row.id for row in library.rows()] == [upload]
        library.settle()
        assert found(library, "apples") == {upload}
        assert sorted(os.listdir(root)) == ["a.md", "b.md"]
        assert_sound(library)
        with pytest.raises(NotFoundError):
            library.folders.request_scan(USER, collection_id)


def test_folders_of_the_environment_are_watched_and_locked(settings: Settings, root: Path, tmp_path: Path) -> None:
    """Made at start, once; one that is missing is warned about; none can be removed in the page."""
    fill(root, a=sections("apples"))
    named = settings.model_copy(update={"watch_dirs": (root, tmp_path / "missing")})
    for _ in range(2):
        with IngestLibrary(named) as library:
            library.folders.ensure_environment()
            library.start()
            library.settle()
            assert library.paths() == ["a.md"]
            with pytest.raises(ConflictError) as caught:
                library.folders.remove(USER, library.rows()[0].collection_id)
            assert caught.value.code == "folder_locked"


def test_folders_are_scanned_again_by_the_clock(settings: Settings, root: Path) -> None:
    """Every WATCH_RESCAN_S, without being asked."""
    with IngestLibrary(settings.model_copy(update={"watch_rescan_s": 1})).start() as library:
        watch(library, root)
        fill(root, late=sections("apples"))
        until(lambda: library.paths() == ["late.md"], "the new file is noticed")


def pages_for_users() -> set[str]:
    """The pages of docs/ that README names outside its section for developers."""
    readme = (ROOT / "README.md").read_text("utf-8")
    for_developers = re.search(r"^## For developers.*?(?=^## |\Z)", readme, re.M | re.S)
    assert for_developers
    return set(re.findall(r"\]\((docs/[\w/.-]+\.md)\)", readme.replace(for_developers[0], "")))


def test_a_manual_that_was_added_before_loses_what_is_for_developers(settings: Settings) -> None:
    """By itself at the next start; what stays is not read again."""
    with IngestLibrary(settings) as library:
        collection_id = library.folders.add_sample(USER)
        new = [
            intake.NewDocument(collection_id, "folder", path, "0" * 64, 1, 1)
            for path in ("README.md", "docs/architecture.md", "docs/decisions/README.md", "docs/changelog.d/README.md")
        ]
        library.database.write(lambda session: intake.add_documents(session, new, library.clock.now()))
        library.start()
        library.settle(60)
        assert library.paths() == sorted({"README.md", *pages_for_users()})
        assert_sound(library)


def test_the_manual_is_added_and_removed_as_a_sample(settings: Settings) -> None:
    """What README leads its users to, nothing else of the project; adding it twice makes one."""
    with IngestLibrary(settings).start() as library:
        collection_id = library.folders.add_sample(USER)
        assert library.folders.add_sample(USER) == collection_id
        library.settle(60)
        assert library.paths() == sorted({"README.md", *pages_for_users()})
        library.folders.remove(USER, collection_id)
        assert library.rows() == []
        library.settle()
        assert_sound(library)
