"""Documents that the citation suites ask about, and a page that has an answer over all of them."""

from pathlib import Path

from playwright.sync_api import expect
from reportlab.pdfgen.canvas import Canvas

from tests.e2e.conftest import OpenPage
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

QUESTION = "How is the cellar pump started? e2e-cite"
VALVE = "The valve of the cellar pump has to be opened by hand before it is started again."
FILLER = [f"Line {n} tells more of what this cellar pump was made for in those years." for n in range(24)]
MAIL = (
    "From: a@example.org\nTo: b@example.org\nSubject: Cellar pump\nDate: Mon, 3 Nov 2025 10:00:00 +0000\n"
    "MIME-Version: 1.0\nContent-Type: text/plain\n\n"
    "The cellar pump is started with the green key that hangs upstairs.\n"
)
NOTE = "# Cellar pump\n\nThe cellar pump was started for the first time in March. It waits for a float switch.\n"


def write_documents(folder: Path) -> list[Path]:
    """A note, a mail and a PDF of two pages about one thing; the pages are neighbours, and given as one passage."""
    (folder / "pump.md").write_text(NOTE, "utf-8")
    (folder / "pump.eml").write_text(MAIL, "utf-8")
    canvas = Canvas(str(folder / "pump.pdf"))
    for heading, lines in (("About the cellar pump", FILLER), ("Starting the cellar pump", [VALVE, *FILLER[:4]])):
        canvas.setFont("Helvetica", 20)
        canvas.drawString(60, 740, heading)
        canvas.setFont("Helvetica", 11)
        for number, line in enumerate(lines):
            canvas.drawString(60, 700 - 20 * number, line)
        canvas.showPage()
    canvas.save()
    return sorted(folder.iterdir())


def answered(
    server: ServerProcess, open_page: OpenPage, documents: list[Path], *, width: int = 1280, height: int = 800
) -> ChatPage:
    """A page with a settled answer that cites the documents."""
    chat = open_page(server, width=width, height=height)
    chat.open()
    chat.has_read(documents)
    chat.open()
    chat.ask(QUESTION)
    chat.until_settled()
    expect(chat.answer).to_contain_text("opened by hand")
    return chat


def numeral_of(chat: ChatPage, words: str) -> int:
    """The number at the sentence that holds these words."""
    claim = chat.answer.locator(".claim", has_text=words).first
    return int(claim.locator("a.cite").first.inner_text())
