"""A watched folder and an open library page: what happens on disk shows without a reload."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.library_page import LibraryPage, write
from tests.server import ServerProcess

SOON_MS = 20_000


@pytest.fixture(scope="module")
def server(start_server: StartServer) -> ServerProcess:
    """The clock never compares: what shows was told by the system."""
    return start_server(WATCH_RESCAN_S="3600")


@pytest.fixture
def library(server: ServerProcess, open_page: OpenPage) -> LibraryPage:
    page = LibraryPage(open_page(server))
    page.open()
    return page


def watch(library: LibraryPage, folder: Path) -> None:
    """Watches a folder by the form, and waits until its first scan is over."""
    library.page.get_by_label("Folder", exact=True).fill(str(folder))
    library.page.get_by_role("button", name="Watch this folder").click()
    row = library.page.locator(".folder", has_text=folder.name)
    expect(row).to_contain_text("last scan", timeout=SOON_MS)


def test_new_edited_renamed_and_deleted_files_show_while_the_page_is_open(library: LibraryPage, tmp_path: Path) -> None:
    """The list follows, the text search finds the new words, and the folder says what changed."""
    folder = tmp_path / "livenotes"
    folder.mkdir()
    write(folder, "pump.md", "# Pump\n\nThe pump is red.")
    watch(library, folder)
    library.expect_status("pump.md", "Ready")
    write(folder, "valve.md", "# Valve\n\nThe valve is blue.")
    library.expect_status("valve.md", "Ready")
    row = library.page.locator(".folder", has_text="livenotes")
    expect(row).to_contain_text("1 added", timeout=SOON_MS)
    write(folder, "pump.md", "# Pump of brass\n\nThe pump is verdigris now.")
    expect(library.row("pump.md")).to_contain_text("Pump of brass", timeout=SOON_MS)
    (folder / "valve.md").rename(folder / "tap.md")
    expect(library.row("tap.md")).to_be_visible(timeout=SOON_MS)
    expect(library.row("valve.md")).to_have_count(0)
    expect(row).to_contain_text("1 renamed", timeout=SOON_MS)
    (folder / "tap.md").unlink()
    expect(library.row("tap.md")).to_have_count(0, timeout=SOON_MS)
    expect(row).to_contain_text("1 removed", timeout=SOON_MS)
    library.search("verdigris")
    expect(library.page.locator(".text-hits")).to_contain_text("verdigris", timeout=SOON_MS)
    library.chat.is_harmless()


def test_what_is_typed_stays_while_the_folders_are_brought_anew(library: LibraryPage, tmp_path: Path) -> None:
    """A change on disk must not empty the field below the list."""
    folder = tmp_path / "typednotes"
    folder.mkdir()
    write(folder, "one.md", "# One\n\nText.")
    watch(library, folder)
    field = library.page.get_by_label("Folder", exact=True)
    field.fill("/srv/half-typed")
    write(folder, "two.md", "# Two\n\nText.")
    expect(library.row("two.md")).to_be_visible(timeout=SOON_MS)
    expect(library.page.locator(".folder", has_text="typednotes")).to_contain_text("2 documents", timeout=SOON_MS)
    expect(field).to_have_value("/srv/half-typed")


def test_patterns_are_counted_then_saved_on_the_folders_page(library: LibraryPage, tmp_path: Path) -> None:
    """The count first; saving takes out what is left out; keys were never in."""
    folder = tmp_path / "patternnotes"
    (folder / "drafts").mkdir(parents=True)
    write(folder, "kept.md", "# Kept\n\nText.")
    write(folder / "drafts", "dropped.md", "# Dropped\n\nText.")
    write(folder, ".env", "SECRET=1")
    watch(library, folder)
    library.expect_status("drafts/dropped.md", "Ready")
    library.page.get_by_role("link", name="patternnotes").click()
    expect(library.page.get_by_text("1 key or password file")).to_be_visible()
    library.page.get_by_label("Leave these out").fill("drafts/")
    library.page.get_by_role("button", name="Count first").click()
    expect(library.page.get_by_text("1 file fits. 1 document would go.")).to_be_visible(timeout=SOON_MS)
    library.page.get_by_role("button", name="Save").click()
    expect(library.page.get_by_text("Saved. The folder is being compared.")).to_be_visible(timeout=SOON_MS)
    library.open()
    expect(library.row("drafts/dropped.md")).to_have_count(0, timeout=SOON_MS)
    expect(library.row("kept.md")).to_be_visible()
    library.chat.is_harmless()


def test_a_removed_folder_goes_from_the_list_at_once(library: LibraryPage, tmp_path: Path) -> None:
    """Its documents too; the files stay."""
    folder = tmp_path / "leavingnotes"
    folder.mkdir()
    path = write(folder, "gone.md", "# Gone\n\nText.")
    watch(library, folder)
    row = library.page.locator(".folder", has_text="leavingnotes")
    row.get_by_role("link", name="Remove folder").click()
    library.page.get_by_role("dialog").get_by_role("button", name="Remove folder").click()
    expect(row.get_by_role("link", name="Remove folder")).to_have_count(0, timeout=SOON_MS)
    expect(library.row("gone.md")).to_have_count(0, timeout=SOON_MS)
    assert path.exists()
    library.chat.is_harmless()
