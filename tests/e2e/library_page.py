"""Verbs of the library page, on top of `ChatPage`, whose watches for harm it keeps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.e2e.pages import ChatPage

READ_MS = 60_000


class LibraryPage:
    """The library in a browser page."""

    def __init__(self, chat: ChatPage) -> None:
        self.chat = chat
        self.page: Page = chat.page

    def open(self) -> None:
        """Goes to the library."""
        self.page.goto("/library")
        expect(self.page.get_by_role("heading", name="Library", exact=True)).to_be_visible()

    def add(self, files: Sequence[Path | Any]) -> None:
        """Chooses files with Add files."""
        self.page.locator("#add input[data-upload]").set_input_files(list(files))

    def drop(self, paths: Sequence[Path]) -> None:
        """Drops files on the page, as a file manager does."""
        devtools = self.page.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 600, "y": 300, "data": data})

    def row(self, name: str) -> Locator:
        """The row of a file, by the name it shows."""
        return self.page.locator(".file", has=self.page.get_by_role("link", name=name, exact=True))

    def expect_status(self, name: str, words: str) -> None:
        """The file's row says so, sooner or later, without a reload."""
        expect(self.row(name).locator(".status")).to_have_text(words, timeout=READ_MS)

    def expect_reason(self, name: str, sentence: str) -> None:
        """The file failed and its row says why."""
        self.expect_status(name, "Failed")
        expect(self.row(name).locator(".file-reason")).to_contain_text(sentence)

    def search(self, words: str) -> None:
        """Types into the search field."""
        self.page.get_by_role("searchbox", name="Search names and text").fill(words)

    def choose(self, name: str, action: str) -> None:
        """Opens a row's menu and takes an action."""
        self.row(name).locator("summary").click()
        panel = self.row(name).locator(".menu-panel")
        panel.get_by_text(action, exact=True).click()

    def counts(self) -> str:
        """The line under the title."""
        return self.page.locator("#library-counts").inner_text()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def pdf(path: Path, *pages: str, password: str | None = None) -> Path:
    """A PDF with a line of text on each page."""
    canvas = Canvas(str(path), encrypt=StandardEncryption(password) if password else None)
    for text in pages:
        canvas.drawString(72, 720, text)
        canvas.showPage()
    canvas.save()
    return path


def payload(name: str, text: str) -> Any:
    """A file that exists in the browser only, so that it may have any name."""
    return {"name": name, "mimeType": "text/markdown", "buffer": text.encode()}
