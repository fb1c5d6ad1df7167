"""Names and titles are untrusted: no page shows a character that turns them around or that nobody sees."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient

from app.render.names import plain_name, shown_name
from app.settings import Settings
from tests.library_api import documents, serving, settle
from tests.waiting import until

HOSTILE = "\u202e\u202d\u2066\u2067\u200b\u200e\u200f\u2060\ufeff\u061c"
FOLDER, NAME, TITLE = "no\u202etes", "gift\u202efdp\u200b.html", "Pump\u2067room log"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("watched") / FOLDER
    folder.mkdir()
    page = f"<html><title>{TITLE}</title><body><p>The pump is opened by hand on Mondays.</p></body></html>"
    (folder / NAME).write_text(page, "utf-8")
    settings = Settings(_env_file=None, data_dir=tmp_path_factory.mktemp("data"))
    with serving(settings) as client:
        assert client.post("/api/collections", json={"path": str(folder)}).status_code == 202
        until(lambda: bool(documents(client)), "the folder's file is known")
        settle(client)
        yield client


def pages(client: TestClient) -> list[str]:
    """Every address on which the document is named, after a question about it."""
    reply = client.post("/api/chat", json={"message": "When is the pump opened by hand?", "client_key": str(uuid4())})
    assert reply.status_code == 200, reply.text
    assert "\\u202e" not in reply.text, "a live answer shows names as they come"
    row = documents(client)[0]
    assert (row["path"], row["title"]) == (NAME, TITLE), "what is stored and what the API answers stays as it is"
    chat, turn = (re.findall(rf'"{name}": ?"?(\w+)', reply.text)[0] for name in ("chat_id", "turn_id"))
    return [
        "/",
        "/library",
        "/library?q=pump",
        "/settings",
        f"/library/folders/{row['collection_id']}",
        f"/library/folders/{row['collection_id']}/remove",
        f"/library/remove/{row['id']}",
        f"/documents/{row['id']}",
        f"/documents/{row['id']}?turn={turn}&n=1",
        "/search?q=pump",
        "/search?q=pump&view=documents",
        f"/search?q=pump&collection={row['collection_id']}&path={quote(NAME)}",
        f"/chats/{chat}",
        f"/turns/{turn}",
        "/queries",
    ]


def test_no_page_shows_a_character_that_turns_a_name_around(client: TestClient) -> None:
    named = 0
    for address in pages(client):
        reply = client.get(address)
        assert reply.status_code == 200, address
        # The receipt's prompt is evidence and stays as it was sent; a field holds what was typed.
        shown = unescape(re.sub(r"<pre.*?</pre>|<input[^>]*>", "", reply.text, flags=re.DOTALL))
        found = [shown[max(0, match.start() - 60) : match.end() + 30] for match in re.finditer(f"[{HOSTILE}]", shown)]
        assert not found, (address, found[:4])
        named += "gift�fdp" in shown or "Pump�room" in shown
    assert named >= 10, "the document is named on the pages that were looked at"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plan.md", "plan.md"),
        ("Übersicht 2026.md", "Übersicht 2026.md"),
        ("a\u202egnp.exe", "a�gnp.exe"),
        ("in\u200bvoice.pdf", "in�voice.pdf"),
        ("in\u200cvoice.pdf", "in�voice.pdf"),
        ("می\u200cخواهم.pdf", "می\u200cخواهم.pdf"),
        ("क्\u200dष.txt", "क्\u200dष.txt"),
        ("👩\u200d🔧.txt", "👩\u200d🔧.txt"),
        ("tab\there\u2028.md", "tab�here�.md"),
    ],
)
def test_a_name_keeps_its_own_writing_and_loses_what_deceives(name: str, shown: str) -> None:
    assert plain_name(name) == shown


def test_a_long_name_keeps_both_its_ends() -> None:
    cut = shown_name("a" * 60 + "/" + "b" * 60 + ".md")
    assert len(cut) == 96
    assert cut.startswith("aaaa")
    assert cut.endswith("bbb.md")
