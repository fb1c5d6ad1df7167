"""Saving a chat or an answer: a download, for its owner only, whatever the title is."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.store import chats, turns
from app.store.engine import Database
from app.store.models.setup import LOCAL_USER_ID
from tests.integration import library_rows as rows

TEXT = "The nightly backup job starts at 02:00 on every machine."


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        yield client


@pytest.fixture
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def asked(database: Database) -> turns.BegunTurn:
    document = rows.add_document(database, "notes/plan.md", TEXT, title="Plan")
    answer = "Every machine starts it at 02:00 [1]. Nothing else [8]."
    return rows.add_answer(
        database, "t1", "When does it start?", answer, [(document, rows.passages_of(database, document)[0])]
    )


def test_a_chat_is_saved_with_its_sources(client: TestClient, asked: turns.BegunTurn) -> None:
    """Question, answer and footnote; the address leads into the document."""
    reply = client.get(f"/chats/{asked.chat_id}/export.md")
    assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
    assert reply.headers["content-disposition"].startswith(
        'attachment; filename="When does it start.md"; filename*=UTF-8'
    )
    assert "## When does it start?\n\nEvery machine starts it at 02:00 [^1]. Nothing else.\n" in reply.text
    assert f"“{TEXT}” [Open in Docent](http://127.0.0.1:8642/documents/" in reply.text
    address = reply.text.rpartition("(")[2].rstrip(")\n").replace("#passage", "")
    assert "<mark>" in client.get(address).text


def test_one_answer_is_saved_under_its_question(client: TestClient, asked: turns.BegunTurn) -> None:
    """Without the chat around it."""
    text = client.get("/turns/t1/export.md").text
    assert text.startswith("# When does it start?\n\nEvery machine")
    assert text.count("\n# ") == 0


def test_the_pages_offer_it(client: TestClient, asked: turns.BegunTurn) -> None:
    """In the chat's menu and under the answer, as plain links; a copy holds no invented number."""
    page = client.get(f"/chats/{asked.chat_id}").text
    assert f'href="/chats/{asked.chat_id}/export.md" download' in page
    assert 'href="/turns/t1/export.md" download' in page
    copied = page.split('<template id="raw-t1">', 1)[1].split("</template>", 1)[0]
    assert copied.startswith("Every machine starts it at 02:00 [1]. Nothing else.\n\n[1] Plan, notes/plan.md")


def test_any_title_makes_a_header(client: TestClient, database: Database, asked: turns.BegunTurn) -> None:
    """Scripts of any kind, quotes and characters that turn text round."""
    title = 'Übersicht "№1" \u202e設定 / x'
    database.write(lambda session: chats.rename_chat(session, LOCAL_USER_ID, asked.chat_id, title))
    header = client.get(f"/chats/{asked.chat_id}/export.md").headers["content-disposition"]
    assert header.startswith('attachment; filename="_bersicht ')
    assert "filename*=UTF-8''%C3%9Cbersicht%20" in header
    assert header.isascii()


def test_an_answer_that_broke_off_says_so(client: TestClient, database: Database) -> None:
    """What arrived is there, with the page's sentence below."""
    document = rows.add_document(database, "a.md", TEXT)
    rows.add_answer(
        database,
        "t2",
        "When?",
        "At two [1].",
        [(document, rows.passages_of(database, document)[0])],
        finish_reason="length",
    )
    assert "At two [^1].\n\n*" in client.get("/turns/t2/export.md").text


def test_a_deflected_answer_names_no_source(client: TestClient, database: Database) -> None:
    """The nearest passages are none."""
    document = rows.add_document(database, "a.md", TEXT)
    given = [(document, rows.passages_of(database, document)[0])]
    rows.add_answer(database, "t3", "Who?", "Nothing there says it [1].", given, mode="deflected")
    assert client.get("/turns/t3/export.md").text == "# Who?\n\nNothing there says it.\n"


def test_nobody_elses_chat_is_saved(client: TestClient, database: Database, asked: turns.BegunTurn) -> None:
    """404, as for one that is not there."""
    other = rows.add_user(database)
    chat = database.write(lambda session: chats.create_chat(session, other, "Secret", rows.NOW))
    assert client.get(f"/chats/{chat.id}/export.md").status_code == 404
    assert client.get("/chats/9999/export.md").status_code == 404
    assert client.get("/turns/nothing/export.md").status_code == 404
    assert client.get("/chats/0/export.md").status_code == 422
