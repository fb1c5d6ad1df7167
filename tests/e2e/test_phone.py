"""What a thumb has to hit: on every page, as narrow as a phone, each control is 44 px high and 24 px wide.

Links in the middle of a sentence are as high as its lines; those are left out, as WCAG 2.2 (2.5.8) does.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.citing_page import QUESTION, write_documents
from tests.e2e.library_page import LibraryPage, payload
from tests.e2e.pages import ChatPage
from tests.server import ServerProcess

HIGH, WIDE = 44, 24

MEASURE = """([high, wide]) => {
  const controls = "a[href], button, summary, select, textarea, label, input:not([type=hidden])";
  const words = (node) => node.textContent.replace(/\\s+/g, " ").trim();
  const isShown = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && box.right > 0 && box.left < innerWidth && element.checkVisibility();
  };
  const isInText = (element) => {
    const text = element.closest("p, li, dd, td, h1, h2, h3, figcaption, blockquote, small");
    return getComputedStyle(element).display === "inline" && text !== null && words(text) !== words(element);
  };
  const targetOf = (element) => {
    const after = getComputedStyle(element, "::after");
    const isStretched = after.content === '""' && after.position === "absolute" && after.inset === "0px";
    return isStretched ? element.offsetParent : element.matches("label *") ? element.closest("label") : element;
  };
  const found = new Set();
  for (const element of document.querySelectorAll(controls)) {
    const isName = element.matches("label") && element.control && !element.contains(element.control);
    if (!isShown(element) || isInText(element) || isName) continue;
    const { width, height } = targetOf(element).getBoundingClientRect();
    if (height < high - 0.5 || width < wide - 0.5)
      found.add(`${Math.round(width)} x ${Math.round(height)} ${element.localName} ${words(element) || element.name}`);
  }
  for (const panel of document.querySelectorAll(".menu-panel")) {
    const box = panel.getBoundingClientRect();
    if (isShown(panel) && (box.left < 0 || box.right > innerWidth)) found.add(`sticks out: ${words(panel)}`);
  }
  return [...found];
}"""


OPEN = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  document.querySelector(".side")?.showPopover();
}"""


@pytest.fixture(scope="module")
def phone(docent: ServerProcess, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatPage]:
    """A phone before an answer that was marked, a question without one, a file that failed and a watched folder."""
    context = browser.new_context(
        base_url=docent.url,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    context.set_default_timeout(15_000)
    chat = ChatPage(context.new_page(), docent.url)
    headers = {"Origin": docent.url}
    folder = tmp_path_factory.mktemp("notes")
    (folder / "note.md").write_text("# Note\n\nIn a folder.\n", "utf-8")
    made = chat.page.request.post("/api/collections", headers=headers, data={"path": str(folder)})
    assert made.ok, made.text()
    files = {"name": "empty.md", "mimeType": "text/markdown", "buffer": b""}
    chat.page.request.post("/api/documents", headers=headers, multipart={"files": files})
    chat.open()
    chat.upload(write_documents(tmp_path_factory.mktemp("read")))
    chat.open()
    chat.ask("Who won the regatta of 1887?")
    chat.until_settled()
    chat.open()
    chat.ask(QUESTION)
    chat.until_settled()
    chat.turn.get_by_role("button", name="Helpful", exact=True).click()
    expect(chat.turn.locator(".marks-line")).to_be_visible()
    yield chat
    context.close()


@pytest.fixture(scope="module")
def addresses(phone: ChatPage) -> dict[str, str]:
    """Every page by what it is."""
    cites = phone.answer.locator("a.cite[data-n]")
    pdf = phone.answer.locator(".claim", has_text="opened by hand").first.locator("a.cite").first
    return {
        "a chat": phone.page.url.removeprefix(phone.origin),
        "the reader at a citation": cites.first.get_attribute("href") or "",
        "a page of a PDF": (pdf.get_attribute("href") or "").replace("#", "&view=page#"),
        "a receipt": phone.turn.locator(".receipt").get_attribute("href") or "",
        "a new chat": "/",
        "the library": "/library",
        "what the library found": "/library?q=pump",
        "a folder": "/library/folders/2",
        "removing a folder": "/library/folders/2/remove",
        "search": "/search?q=cellar+pump",
        "all that mention it": "/search?q=cellar+pump&view=documents",
        "a question without an answer": "/chats/1",
        "questions": "/queries",
        "evaluation": "/evaluation",
        "settings": "/settings",
        "an error": "/nowhere",
    }


def small(page: Page) -> list[str]:
    """The targets that are too small, with their sizes."""
    return page.evaluate(MEASURE, [HIGH, WIDE])


def test_every_target_of_every_page_is_big_enough_for_a_thumb(phone: ChatPage, addresses: dict[str, str]) -> None:
    """Also in the drawer, and in menus and lists that are opened; no menu sticks out of the page."""
    found: list[str] = []
    for name, address in addresses.items():
        phone.page.goto(address)
        phone.page.wait_for_load_state("load")
        phone.page.evaluate(OPEN)
        found += [f"{name}: {target}" for target in small(phone.page)]
    assert not found, "\n".join(found)


def test_every_time_of_a_receipt_stands_on_one_line(phone: ChatPage, addresses: dict[str, str]) -> None:
    """Also the answer's, which says how fast it came."""
    phone.page.goto(addresses["a receipt"])
    times = phone.page.locator(".waterfall dd span")
    assert "tokens/s" in times.last.inner_text()
    heights = times.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert len(set(heights)) == 1, heights
    phone.has_no_sideways_scroll()


def test_the_way_back_from_a_citation_ends_in_an_ellipsis_where_it_is_cut(
    phone: ChatPage, addresses: dict[str, str]
) -> None:
    """On the narrowest phone; an ellipsis shows in a block of text only."""
    phone.page.goto(addresses["the reader at a citation"])
    back = phone.page.locator(".reader-back")
    phone.page.set_viewport_size({"width": 320, "height": 700})
    assert back.evaluate("one => one.scrollWidth > one.clientWidth")
    style = back.evaluate("one => [getComputedStyle(one).display, getComputedStyle(one).textOverflow]")
    phone.page.set_viewport_size({"width": 390, "height": 844})
    assert style == ["block", "ellipsis"]
    assert back.evaluate("one => one.getBoundingClientRect().height") == HIGH


def test_what_ends_the_box_of_a_failed_file_is_no_wider_than_its_word(phone: ChatPage) -> None:
    """It stands at the end of its line, as Pause does while files are added."""
    phone.page.goto("/library")
    LibraryPage(phone).add([payload("bare.md", "")])
    phone.page.wait_for_function("""() => {
      const hide = document.querySelector(".adding-line > button");
      const [box, line] = [hide, hide?.parentElement].map((one) => one?.getBoundingClientRect());
      return hide && box.width < 80 && Math.abs(box.right - line.right) < 1;
    }""")
