"""Verbs of the chat page: what a person does and sees, so that tests read as scripts.

Every wait is for something visible, never for time. The page records what must not happen: scripts that ran, requests
that left the origin, violations of the content security policy.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, Request, expect

SEARCHABLE_S = 60

_WATCH = """
window.__x = undefined;
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.__violations.push(event.violatedDirective));
window.__seen = "";
new MutationObserver(() => {
  window.__seen += [...document.querySelectorAll(".answer")].map((answer) => answer.textContent).join("\\n") + "\\n";
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


class ChatPage:
    """A browser page on Docent."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.left_origin: list[str] = []
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        page.add_init_script(_WATCH)
        page.on("request", self._watch)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))

    def _watch(self, request: Request) -> None:
        if not request.url.startswith((self.origin, "about:", "blob:")):
            self.left_origin.append(request.url)

    def open(self, path: str = "/") -> None:
        """Goes to a page."""
        self.page.goto(path)

    def upload(self, paths: Sequence[Path]) -> None:
        """Chooses files, and waits until they can be searched."""
        self.page.locator("input[data-upload]").first.set_input_files(list(paths))
        self.until_searchable(len(paths))

    def has_read(self, paths: Sequence[Path]) -> None:
        """Uploads what the library does not hold yet."""
        rows = self.page.request.get("/api/documents?limit=200").json()["documents"]
        known = {row["path"] for row in rows}
        if missing := [path for path in paths if path.name not in known]:
            self.upload(missing)

    def until_searchable(self, count: int, *, within_s: float = SEARCHABLE_S) -> None:
        """Waits until `count` documents are ready: searchable by words and by meaning."""
        deadline = time.monotonic() + within_s
        while True:
            rows: list[dict[str, Any]] = self.page.request.get("/api/documents?limit=200").json()["documents"]
            if sum(row["status"] == "ready" for row in rows) >= count:
                return
            assert time.monotonic() < deadline, f"not searchable in {within_s} s: {rows}"
            self.page.wait_for_timeout(100)

    def ask(self, question: str) -> None:
        """Types a question and presses Enter."""
        field = self.page.get_by_role("textbox", name="Your question")
        expect(field).to_be_enabled()
        field.fill(question)
        field.press("Enter")
        expect(self.page.get_by_role("heading", name=question[:60]).last).to_be_visible()

    @property
    def turn(self) -> Locator:
        """The last turn."""
        return self.page.locator(".turn").last

    @property
    def answer(self) -> Locator:
        """The last turn's answer."""
        return self.turn.locator(".answer")

    def until_settled(self) -> None:
        """Waits until the last turn has ended and stands as the server renders it."""
        expect(self.turn.get_by_role("link", name=re.compile("receipt", re.IGNORECASE)).first).to_be_visible(
            timeout=30_000
        )

    def expect_answer(self, text: str) -> None:
        """The last answer is complete and holds `text`."""
        self.until_settled()
        expect(self.answer).to_contain_text(text)

    def expect_error(self, text: str) -> None:
        """The last turn ended in an error that says `text`."""
        self.until_settled()
        expect(self.turn.get_by_role("alert")).to_contain_text(text)

    def never_shows(self, text: str) -> None:
        """No answer held `text` at any moment since the page came."""
        assert text not in self.page.evaluate("window.__seen")

    def stop(self) -> None:
        """Presses Stop."""
        self.page.get_by_role("button", name="Stop").click()

    def open_source(self, n: int) -> None:
        """Follows the last answer's numeral `n` into the reader."""
        self.answer.locator(f"a.cite[data-n='{n}']").first.click()
        expect(self.page.locator("#passage")).to_be_visible()

    def is_harmless(self) -> None:
        """Nothing ran, nothing was loaded from elsewhere, nothing was tried that the policy forbids."""
        seen = {
            "scripts": self.page.evaluate("window.__x"),
            "violations": self.page.evaluate("window.__violations"),
            "dialogs": self.dialogs,
            "requests elsewhere": self.left_origin,
            "errors": self.errors,
        }
        assert not any(seen.values()), seen

    def has_no_sideways_scroll(self) -> None:
        """The page is not wider than the window."""
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
