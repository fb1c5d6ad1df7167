"""The evaluation of saved questions: runs in the background, what they find, the page and the API around them."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from selectolax.lexbor import LexborHTMLParser

from app.main import create_app
from app.search.hits import Hit, SearchFilters
from app.settings import Settings
from app.store import eval_questions, eval_runs
from app.store.engine import Database
from app.store.eval_questions import NewQuestion, RightPassage
from app.store.models.setup import LOCAL_USER_ID as ME
from tests.integration.search_library import NOW, add_document
from tests.scripted import ScriptedSearch, hit
from tests.waiting import until

HTMX = {"HX-Request": "true", "Origin": "http://127.0.0.1:8642"}
BORG = "Borg prunes weekly snapshots of the laptop."
RESTIC = "Restic forgets snapshots after a month."
CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus" / "questions.jsonl"


class WaitingSearch(ScriptedSearch):
    """A searcher that waits until the test lets it go on."""

    def __init__(self, *hits: Hit) -> None:
        super().__init__(*hits)
        self.asked_for, self.go_on = threading.Event(), threading.Event()

    def search(self, query: str, *, user_id: int, k: int, filters: SearchFilters) -> list[Hit]:
        self.asked_for.set()
        assert self.go_on.wait(20)
        return super().search(query, user_id=user_id, k=k, filters=filters)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642", follow_redirects=False) as client:
        yield client


@pytest.fixture
def database(client: TestClient) -> Database:
    return client.app.state.docent.database  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def questions(database: Database) -> list[int]:
    """Four saved questions on two documents: found, found elsewhere, unanswerable, and one whose document is gone."""
    database.write(lambda session: add_document(session, "borg.md", BORG))
    database.write(lambda session: add_document(session, "restic.md", RESTIC))
    slug = "library"
    asked = [
        NewQuestion(
            "When does borg prune weekly archives?",
            "question",
            passages=(RightPassage(slug, "borg.md", 0, len(BORG), BORG),),
        ),
        NewQuestion(
            "What does restic forget?", "question", passages=(RightPassage(slug, "restic.md", 0, 4, "No such words"),)
        ),
        NewQuestion("Which kopia zebra sleeps?", "unanswerable"),
        NewQuestion("Who was Ada?", "question", passages=(RightPassage(slug, "gone.md", 0, 3, "Ada"),)),
    ]
    return [database.write(lambda s, one=one: eval_questions.put_question(s, ME, one, NOW)) for one in asked]


def run(client: TestClient, **changes: Any) -> dict[str, Any]:
    """A run from begin to end."""
    reply = client.post("/api/eval/runs", json=changes)
    assert reply.status_code == 202, reply.text
    run_id = reply.json()["id"]
    until(lambda: client.get(f"/api/eval/runs/{run_id}").json()["state"] != "running", "the run ends")
    row: dict[str, Any] = client.get(f"/api/eval/runs/{run_id}").json()
    return row


def tree(html: str) -> LexborHTMLParser:
    return LexborHTMLParser(html)


@pytest.mark.usefixtures("questions")
def test_a_run_scores_what_is_saved(client: TestClient) -> None:
    """Each figure with its denominator, overall and per kind; what is gone is left out and said to be."""
    row = run(client)
    assert (row["state"], row["done"], row["total"], row["error_code"]) == ("done", 3, 3, None)
    result = row["result"]
    assert (result["left_out"], result["without_words"], result["answerer"]) == (1, 1, "builtin")
    (side,) = result["sides"]
    every = side["groups"]["all"]
    assert every["recall"] == {"total": 2, "of": 2}
    assert every["given"] == {"total": 1, "of": 1}
    assert every["deflection_recall"] == {"total": 1, "of": 1}
    assert every["valid"]["total"] == every["valid"]["of"] > 0
    assert set(side["groups"]) == {"all", "kind question", "kind unanswerable"}
    assert [one["sides"] for one in result["questions"]] == [["passage"], ["document"], ["refused"]]


@pytest.mark.usefixtures("questions")
def test_two_settings_stand_side_by_side_with_the_questions_that_differ(client: TestClient) -> None:
    """A threshold nothing reaches loses every answerable question; the page says which, with a way to search."""
    row = run(client, retrieval_min_score=1, words_only=True)
    assert (row["total"], row["changes"]) == (6, {"retrieval_min_score": 1.0, "words_only": True})
    assert row["result"]["questions"][0]["sides"] == ["passage", "deflected"]
    page = tree(client.get("/evaluation").text)
    figures = page.css_first(".eval-figures").text()
    assert "1.00 1 of 1" in " ".join(figures.split())
    assert "+0.50" in figures
    assert "−1.00" in figures
    differences = page.css(".eval-differences li")
    assert [one.css_first("bdi").text() for one in differences] == ["When does borg prune weekly archives?"]
    assert "RETRIEVAL_MIN_SCORE 1, words only" in page.css_first("#result").text()
    assert (
        page.css_first(".eval-differences a").attributes["href"] == "/library?q=When+does+borg+prune+weekly+archives%3F"
    )
    assert "left out" in page.css_first("#result").text()


def test_the_empty_page_says_how_to_fill_it(client: TestClient) -> None:
    """Three steps, and a file as another way; there is nothing to run."""
    page = tree(client.get("/evaluation").text)
    assert "No question is saved yet" in page.css_first(".eval-empty").text()
    assert page.css_first(".eval-form") is None
    assert page.css_first("input[type=file]") is not None
    refused = client.post("/ui/evaluation/run", data={}, headers=HTMX)
    assert (refused.status_code, refused.text) == (422, "There is no saved question that could be asked.")


def test_a_run_can_be_followed_cancelled_and_is_alone(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it waits for the library, a second one is refused; cancelling keeps the earlier runs."""
    search = WaitingSearch(hit(1))
    app = create_app(settings, searcher=search)
    with TestClient(app, base_url="http://127.0.0.1:8642", follow_redirects=False) as client, caplog.at_level("INFO"):
        client.post("/api/eval/questions", content='{"question": "Why?"}\n{"question": "How?"}')
        assert client.post("/ui/evaluation/run", data={"retrieval_top_k": ""}).headers["location"] == "/evaluation"
        search.asked_for.wait(20)
        assert "0 of 2" in client.get("/ui/evaluation/run").text
        assert tree(client.get("/evaluation").text).css_first("#eval-running progress") is not None
        busy = client.post("/api/eval/runs", json={})
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "eval_run_busy")
        (row,) = client.get("/api/eval/runs").json()["runs"]
        assert client.delete(f"/api/eval/runs/{row['id']}").status_code == 409
        search.go_on.set()
        assert (
            client.post(f"/ui/evaluation/run/{row['id']}/cancel", headers=HTMX).headers["hx-redirect"] == "/evaluation"
        )
        state = lambda: client.get(f"/api/eval/runs/{row['id']}").json()["state"]  # noqa: E731
        until(lambda: state() in ("cancelled", "done"), "the run ends")
        assert client.get("/ui/evaluation/run").headers["hx-redirect"] == "/evaluation"
        assert client.post(f"/api/eval/runs/{row['id']}/cancel").status_code == 204
        assert client.post(f"/ui/evaluation/run/{row['id']}/remove").status_code == 303
        assert client.get("/api/eval/runs").json() == {"runs": []}
    assert any(record.getMessage().startswith("eval_run run=1 state=") for record in caplog.records)


def test_a_run_that_fails_says_so_and_the_next_one_works(settings: Settings) -> None:
    """The library can't be searched; the page tells where to look."""
    search = ScriptedSearch(hit(1), error=OSError("disk"))
    app = create_app(settings, searcher=search)
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        client.post("/api/eval/questions", content='{"question": "Why?"}')
        assert (run(client)["state"], run(client)["error_code"]) == ("failed", "retrieval_failed")
        assert "failed, the log says why" in client.get("/evaluation").text
        search.error = ZeroDivisionError()
        assert run(client)["error_code"] == "internal"
        search.error = None
        assert run(client)["state"] == "done"


def test_what_a_kill_left_running_ends_with_the_next_start(settings: Settings, database_left: Database) -> None:
    """So that a new run can begin; the oldest rows are cleared away."""
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642") as client:
        rows = client.get("/api/eval/runs").json()["runs"]
        assert rows[0]["state"] == "interrupted"
        assert len(rows) == eval_runs.KEPT
        assert "ended with Docent" in client.get("/evaluation").text


@pytest.fixture
def database_left(settings: Settings) -> Iterator[Database]:
    """The database of a process that was killed in a run, after many others."""
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642"):
        pass
    database = Database(settings.database)

    def work(session: Any) -> None:
        for number in range(eval_runs.KEPT + 3):
            run_id = eval_runs.begin_run(session, ME, {}, 1, NOW)
            if number < eval_runs.KEPT + 2:
                eval_runs.finish_run(session, run_id, "cancelled", NOW)

    database.write(work)
    yield database
    database.close()


def test_questions_can_be_found_edited_removed_and_brought_back(client: TestClient, questions: list[int]) -> None:
    """Each with its passage; one whose document is gone says so."""
    page = tree(client.get("/evaluation").text)
    assert page.css_first("#eval-count").text().strip() == "4 saved questions · 1 can't be asked"
    assert "not in the library any more" in page.css_first(f"#question-{questions[3]}").text()
    assert "these words are not in it any more" in page.css_first(f"#question-{questions[1]}").text()
    assert page.css_first(f"#question-{questions[0]} blockquote").text() == BORG
    listed = lambda **query: [  # noqa: E731
        one.text() for one in tree(client.get("/ui/evaluation/questions", params=query).text).css("h3")
    ]
    assert listed(q="BORG") == ["When does borg prune weekly archives?"]
    assert listed(which="unanswerable") == ["Which kopia zebra sleeps?"]
    assert listed(which="gone") == ["Who was Ada?"]
    assert listed(which="answerable", shown=1) == ["What does restic forget?"]
    at = f"/ui/evaluation/questions/{questions[0]}"
    assert "When is it pruned?" in client.post(f"{at}/edit", data={"question": "When is it pruned?"}, headers=HTMX).text
    assert client.post(f"{at}/edit", data={"question": "Who was Ada?"}, headers=HTMX).status_code == 409
    assert client.post(f"{at}/edit", data={"question": "x" * 32_001}, headers=HTMX).status_code == 422
    removed = client.post(f"{at}/remove", headers=HTMX).text
    assert "3 saved questions" in removed
    assert f"{at}/restore" in removed
    assert "When is it pruned?" in client.post(f"{at}/restore", headers=HTMX).text
    assert client.post(f"{at}/remove").headers["location"] == f"/evaluation?removed={questions[0]}"
    assert f'action="{at}/restore"' in client.get(f"/evaluation?removed={questions[0]}").text
    assert client.post(f"{at}/restore").headers["location"] == f"/evaluation#question-{questions[0]}"
    assert client.post(f"{at}/edit", data={"question": "When?"}).status_code == 303
    assert client.delete(f"/api/eval/questions/{questions[0]}").status_code == 204
    assert client.delete(f"/api/eval/questions/{questions[0]}").status_code == 404


@pytest.mark.usefixtures("questions")
def test_a_file_goes_out_and_comes_back_as_it_was(client: TestClient, database: Database) -> None:
    """What is exported is imported as the same questions, and nothing is saved twice."""
    before = database.read(lambda session: eval_questions.questions_of(session, ME))
    file = client.get("/api/eval/questions")
    assert file.headers["content-disposition"] == 'attachment; filename="questions.jsonl"'
    assert client.post("/api/eval/questions", content=file.content).json() == {"added": 0, "replaced": 4}
    assert database.read(lambda session: eval_questions.questions_of(session, ME)) == before
    reply = client.post("/ui/evaluation/import", files={"file": ("q.jsonl", file.content)}, headers=HTMX)
    assert reply.headers["hx-redirect"] == "/evaluation?added=0&replaced=4"
    reply = client.post("/ui/evaluation/import", files={"file": ("q.jsonl", b'{"question": "New?"}')})
    assert reply.headers["location"] == "/evaluation?added=1&replaced=0"
    assert "1 question was added." in client.get(reply.headers["location"]).text


def test_a_file_is_taken_as_a_whole_or_not_at_all(client: TestClient) -> None:
    """The lines that are no questions are named."""
    good = json.dumps({"question": "Why?"})
    bad = client.post("/api/eval/questions", content="\n".join([good, "{}", "", "no", '{"question": " "}']))
    assert bad.status_code == 422
    assert bad.json()["error"]["message"] == "Lines 2, 4, 5 are no questions. Nothing was saved."
    for content, code in ((b"\n", "eval_file_empty"), (b"\xff\xfe\xff", "eval_file_not_text")):
        reply = client.post("/api/eval/questions", content=content)
        assert reply.json()["error"]["code"] == code
    assert client.post("/ui/evaluation/import", files={"file": ("q", b"\xff")}, headers=HTMX).status_code == 422
    assert client.get("/api/eval/questions").text == ""


def test_the_questions_of_the_corpus_can_be_imported(client: TestClient) -> None:
    """A file that `docent eval` reads is one that the page takes."""
    if not CORPUS.exists():
        pytest.skip("the shared corpus is not beside the project")
    reply = client.post("/api/eval/questions", content=CORPUS.read_bytes())
    lines = [line for line in CORPUS.read_text("utf-8").splitlines() if line.strip()]
    assert reply.json() == {"added": len(lines), "replaced": 0}


@pytest.mark.parametrize("changes", [{"retrieval_top_k": 0}, {"retrieval_min_score": 2}, {"port": 1}])
def test_settings_that_cannot_be_compared_are_refused(client: TestClient, changes: dict[str, Any]) -> None:
    """Out of bounds, or none that changes an answer."""
    assert client.post("/api/eval/runs", json=changes).status_code == 422
    left_out = client.post("/api/eval/runs", json={"retrieval_top_k": None, "retrieval_min_score": ""})
    assert left_out.json()["error"]["code"] == "eval_nothing_to_ask"
    assert client.get("/api/eval/runs/1").status_code == 404
