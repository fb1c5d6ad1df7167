"""The library in a real browser: files in, states, reasons, search, reader, retry, removal, folders, the manual."""

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from app.catalog import load_catalog
from tests.e2e.conftest import OpenPage, StartServer
from tests.e2e.library_page import READ_MS, LibraryPage, payload, pdf, write
from tests.server import ServerProcess

SENTENCES = load_catalog()


@pytest.fixture(scope="module")
def server(start_server: StartServer) -> ServerProcess:
    """One Docent for the suite; each test brings names of its own. The limit is small, to meet it cheaply."""
    return start_server(UPLOAD_MAX_MB="1")


@pytest.fixture
def library(server: ServerProcess, open_page: OpenPage) -> LibraryPage:
    page = LibraryPage(open_page(server))
    page.open()
    return page


def test_several_files_become_ready_and_the_box_goes(library: LibraryPage, tmp_path: Path) -> None:
    """Chosen together, watched without a reload: the progress box counts, the rows change, then the box goes."""
    files = [write(tmp_path, f"several-{n}.md", f"# Part {n}\n\nThe valve number {n} is blue.") for n in range(3)]
    files.append(pdf(tmp_path / "several.pdf", "The boiler is in the cellar.", "It is green."))
    library.add(files)
    box = library.page.locator("section.adding")
    expect(box).to_contain_text(re.compile(r"\d files? add|Adding \d files?"))
    for name in ("several-0.md", "several-1.md", "several-2.md", "several.pdf"):
        library.expect_status(name, "Ready")
    expect(library.row("several-1.md")).to_contain_text("Part 1")
    expect(box).to_have_count(0, timeout=READ_MS)
    assert re.search(r"\d+ documents · \d+ passages", library.counts())
    library.chat.is_harmless()


def test_the_box_survives_a_reload(library: LibraryPage, tmp_path: Path) -> None:
    """Progress is the server's, not the page's."""
    text = "\n\n".join(f"Paragraph {n} speaks of gears, belts and bearings number {n}. " * 12 for n in range(60))
    library.add([write(tmp_path, "reloaded.md", text)])
    expect(library.row("reloaded.md")).to_be_visible()
    library.page.reload()
    expect(library.page.locator("section.adding")).to_contain_text("passages embedded")
    library.expect_status("reloaded.md", "Ready")


def test_files_and_folders_are_dropped_on_the_page(library: LibraryPage, tmp_path: Path) -> None:
    """A real drop of a file and a folder; the folder's name stays in the path."""
    folder = tmp_path / "dropped"
    folder.mkdir()
    write(folder, "inner.md", "# Inner\n\nInside of a folder.")
    library.drop([write(tmp_path, "dropped-alone.md", "# Alone\n\nJust one."), folder])
    library.expect_status("dropped-alone.md", "Ready")
    library.expect_status("dropped/inner.md", "Ready")


def test_each_file_that_can_not_be_read_says_why(library: LibraryPage, tmp_path: Path) -> None:
    """Locked, cut off, empty, blank, in disguise, of an unknown kind: each its own sentence and another try."""
    whole = pdf(tmp_path / "whole.pdf", "Some words.").read_bytes()
    bad = {
        "locked.pdf": ("encrypted", pdf(tmp_path / "l.pdf", "Secret.", password="secret").read_bytes()),
        "cut-off.pdf": ("corrupt", whole[:400]),
        "empty.md": ("empty", b""),
        "blank.md": ("empty", b" \n\t\n "),
        "disguised.docx": ("corrupt", b"PK\x03\x04 this is no archive"),
        "firmware.bin": ("unsupported", bytes(range(256)) * 20),
    }
    folder = tmp_path / "bad"
    folder.mkdir()
    for name, (_, content) in bad.items():
        (folder / name).write_bytes(content)
    with zipfile.ZipFile(folder / "zipped.docx", "w") as archive:
        archive.writestr("readme.txt", "An archive, but no document.")
    library.add(sorted(folder.iterdir()))
    for name, (reason, _) in bad.items():
        library.expect_reason(name, SENTENCES.t(f"errors.ingest_{reason}"))
        expect(library.row(name).locator(".file-reason").get_by_role("button", name="Try again")).to_be_visible()
    library.expect_status("zipped.docx", "Failed")
    expect(library.page.locator("#library-counts")).to_contain_text("need a look")
    expect(library.page.locator("section.adding")).to_contain_text("failed")
    library.page.get_by_role("button", name="Hide").click()
    expect(library.page.locator("section.adding")).to_have_count(0)
    library.chat.is_harmless()


def test_a_file_over_the_limit_is_refused_and_its_neighbour_is_kept(library: LibraryPage, tmp_path: Path) -> None:
    """The sentence names the file, the limit and the setting; nothing of it is stored."""
    big = write(tmp_path, "too-big.md", "x" * 1_100_000)
    library.add([big, write(tmp_path, "beside-it.md", "# Beside\n\nSmall enough.")])
    said = library.page.locator("[data-upload-say]")
    expect(said).to_contain_text("too-big.md: It is over the limit of 1 MB (UPLOAD_MAX_MB).")
    library.expect_status("beside-it.md", "Ready")
    expect(library.row("too-big.md")).to_have_count(0)


def test_hostile_names_are_only_names(library: LibraryPage) -> None:
    """A path upwards, a line end, a direction override, markup: kept as a harmless name."""
    library.add(
        [
            payload("../../climbing.md", "# Up\n\nNowhere."),
            payload("line\nbreak.md", "# Line\n\nBroken."),
            payload("in\u202evoice-dm.md", "# Turned\n\nAround."),
            payload("<img src=x onerror=window.__x=1>.md", "# Markup\n\nNone."),
        ]
    )
    for name in ("climbing.md", "linebreak.md", "invoice-dm.md", "<img src=x onerror=window.__x=1>.md"):
        library.expect_status(name, "Ready")
    library.row("invoice-dm.md").get_by_role("link").first.click()
    expect(library.page.get_by_text("Around.")).to_be_visible()
    library.chat.is_harmless()


def test_names_and_text_are_searched_and_open_in_the_reader(library: LibraryPage, tmp_path: Path) -> None:
    """One field: files by name, passages by their words, each passage one click from its place."""
    paragraphs = [f"Paragraph {n} is about shelves and their screws." for n in range(40)]
    paragraphs.insert(30, "The quince jelly stands behind the marmalade in the pantry.")
    library.add([write(tmp_path, "pantry.md", "# Pantry\n\n" + "\n\n".join(paragraphs))])
    library.add([write(tmp_path, "quince-list.txt", "Just names.")])
    library.expect_status("pantry.md", "Ready")
    library.expect_status("quince-list.txt", "Ready")
    library.search("quince")
    expect(library.row("quince-list.txt")).to_be_visible()
    expect(library.row("pantry.md")).to_have_count(0)
    hit = library.page.locator(".text-hits li").filter(has_text="jelly").first
    expect(hit.locator("mark").first).to_have_text("quince")
    hit.get_by_role("link").click()
    expect(library.page.locator("#passage")).to_contain_text("quince jelly")
    expect(library.page.locator("#passage")).to_be_in_viewport()
    library.page.keyboard.press("Escape")
    expect(library.page).to_have_url(re.compile("/library$"))


def test_the_list_is_narrowed_by_state_and_collection(library: LibraryPage, tmp_path: Path) -> None:
    """Two selects, no button."""
    library.add([write(tmp_path, "narrow.md", "# Narrow\n\nWords."), write(tmp_path, "narrow-empty.md", "")])
    library.expect_status("narrow.md", "Ready")
    library.expect_status("narrow-empty.md", "Failed")
    library.page.get_by_label("Status", exact=True).select_option("failed")
    expect(library.row("narrow.md")).to_have_count(0)
    expect(library.row("narrow-empty.md")).to_be_visible()
    library.page.get_by_label("Status", exact=True).select_option("")
    library.page.get_by_label("Collection", exact=True).select_option("Library")
    expect(library.row("narrow.md")).to_be_visible()


def test_a_failed_file_is_tried_again(library: LibraryPage, tmp_path: Path) -> None:
    """From the row and from the reader; a file that is still bad fails again, with the same reason."""
    library.add([write(tmp_path, "again.md", "")])
    library.expect_reason("again.md", SENTENCES.t("errors.ingest_empty"))
    with library.page.expect_response(re.compile("/retry$")) as answer:
        library.row("again.md").locator(".file-reason").get_by_role("button", name="Try again").click()
    assert answer.value.status == 200
    library.expect_reason("again.md", SENTENCES.t("errors.ingest_empty"))
    library.row("again.md").get_by_role("link", name="again.md").click()
    expect(library.page.get_by_text(SENTENCES.t("errors.ingest_empty"))).to_be_visible()
    library.page.get_by_role("button", name="Try again").click()
    expect(library.page.get_by_text(SENTENCES.t("errors.ingest_empty"))).to_be_visible(timeout=READ_MS)


def test_removal_asks_names_the_loss_and_can_be_cancelled(library: LibraryPage, tmp_path: Path) -> None:
    """Cancel and Esc keep the file; Remove document takes it, says so, and it stays gone."""
    library.add([write(tmp_path, "goes.md", "# Goes\n\nOne passage.")])
    library.expect_status("goes.md", "Ready")
    dialog = library.page.get_by_role("dialog", name="Remove goes.md?")
    library.choose("goes.md", "Remove")
    expect(dialog).to_contain_text("Its 1 passage goes with it; answers that cite it keep their quotes.")
    dialog.get_by_text("Cancel").click()
    expect(dialog).to_have_count(0)
    library.choose("goes.md", "Remove")
    expect(dialog).to_be_visible()
    library.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    library.choose("goes.md", "Remove")
    dialog.get_by_role("button", name="Remove document").click()
    expect(library.row("goes.md")).to_have_count(0)
    expect(dialog).to_have_count(0)
    expect(library.page.locator("#toasts")).to_contain_text("goes.md removed")
    library.page.reload()
    expect(library.row("goes.md")).to_have_count(0)
    library.chat.is_harmless()


def test_the_original_is_downloaded_and_never_shown(library: LibraryPage, tmp_path: Path) -> None:
    """A page among the documents is a download, byte for byte."""
    content = "<!doctype html><title>T</title><p>Words.</p><script>window.__x=1</script>"
    library.add([write(tmp_path, "page.html", content)])
    library.expect_status("page.html", "Ready")
    library.open()
    library.row("page.html").locator("summary").click()
    with library.page.expect_download() as download:
        library.row("page.html").get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_text("utf-8") == content
    library.chat.is_harmless()


def test_a_folder_is_watched_scanned_again_and_removed(library: LibraryPage, tmp_path: Path) -> None:
    """Files appear by themselves, new ones after Scan now; removing it leaves the disk as it was."""
    folder = tmp_path / "watched-notes"
    folder.mkdir()
    write(folder, "first.md", "# First\n\nIn the folder.")
    (folder / ".env").write_text("PASSWORD=x", "utf-8")
    page = library.page
    page.locator(".page-head").get_by_role("link", name="Watch a folder").click()
    expect(page.get_by_label("Folder", exact=True)).to_be_focused()
    page.get_by_label("Folder", exact=True).fill("watched-notes")
    page.get_by_role("button", name="Watch this folder").click()
    expect(page.locator("#folder-hint")).to_have_text(SENTENCES.t("errors.folder_not_absolute"))
    page.get_by_label("Folder", exact=True).fill(str(folder))
    page.get_by_role("button", name="Watch this folder").click()
    line = page.locator(".folder", has_text=str(folder))
    expect(line).to_contain_text("1 document · last scan", timeout=READ_MS)
    expect(line).to_contain_text("1 key or password file")
    library.expect_status("first.md", "Ready")
    write(folder, "second.md", "# Second\n\nCame later.")
    line.get_by_role("button", name="Scan watched-notes now").click()
    library.expect_status("second.md", "Ready")
    line.get_by_role("link", name="Remove folder").click()
    dialog = page.get_by_role("dialog", name="Stop watching watched-notes?")
    expect(dialog).to_contain_text("Its 2 documents go from the library; the files on disk stay.")
    dialog.get_by_role("button", name="Remove folder").click()
    expect(line).to_have_count(0)
    expect(library.row("first.md")).to_have_count(0)
    assert sorted(path.name for path in folder.iterdir()) == [".env", "first.md", "second.md"]


def test_the_manual_is_one_click_to_add_and_one_to_remove(library: LibraryPage) -> None:
    """Docent's own manual as a collection, from the library and gone again. A library that holds nothing offers it in
    the list's place, any other one below the folders."""
    page = library.page
    page.get_by_role("button", name="Try it with Docent's own manual").click()
    library.expect_status("docs/operating.md", "Ready")
    manual = page.locator(".folder", has_text="Docent's own manual")
    expect(manual).to_contain_text("last scan")
    manual.get_by_role("link", name="Remove the manual").click()
    dialog = page.get_by_role("dialog", name="Remove Docent's own manual?")
    dialog.get_by_role("button", name="Remove the manual").click()
    expect(manual).to_have_count(0)
    expect(library.row("docs/operating.md")).to_have_count(0)
    library.chat.is_harmless()


def test_the_library_fits_a_phone(server: ServerProcess, open_page: OpenPage, tmp_path: Path) -> None:
    """At 390 and 320 nothing scrolls sideways and every target is big enough for a thumb."""
    for width in (390, 320):
        library = LibraryPage(open_page(server, width=width, height=800))
        library.open()
        name = f"phone-{width}-with-a-long-name-that-has-to-wrap-somewhere.md"
        library.add([payload(name, "# Phone\n\nSmall screen."), payload(f"phone-{width}-empty.md", "")])
        library.expect_status(name, "Ready")
        library.expect_status(f"phone-{width}-empty.md", "Failed")
        library.chat.has_no_sideways_scroll()
        row = library.row(f"phone-{width}-empty.md")
        targets = [row.locator("summary"), row.locator(".file-reason button"), library.page.locator("#add label")]
        for target in targets:
            box = target.bounding_box()
            assert box is not None
            assert box["height"] >= 44, target


def test_a_page_without_script_does_the_same(server: ServerProcess, browser: Any, tmp_path: Path) -> None:
    """Add, see, search, remove: plain forms and links."""
    context = browser.new_context(base_url=server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/library")
    page.locator("#add input[type=file]").set_input_files([payload("plain.md", "# Plain\n\nNo script.")])
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("link", name="plain.md")).to_be_visible()
    page.goto("/library?q=plain.md")
    expect(page.get_by_role("link", name="plain.md", exact=True)).to_be_visible()
    page.locator(".file", has_text="plain.md").locator("summary").click()
    page.locator(".file", has_text="plain.md").get_by_role("link", name="Remove").click()
    expect(page.get_by_role("heading", name="Remove plain.md?")).to_be_visible()
    page.get_by_role("button", name="Remove document").click()
    expect(page).to_have_url(f"{server.url}/library")
    page.goto("/library?q=plain.md")
    expect(page.get_by_role("link", name="plain.md", exact=True)).to_have_count(0)
    context.close()
