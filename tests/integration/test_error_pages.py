"""What people see when something is not there or failed: a page in Docent's look, or a sentence in the page."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    app = create_app(settings)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("the words of this exception")

    with TestClient(app, base_url="http://127.0.0.1:8642", raise_server_exceptions=False) as client:
        yield client


def test_an_unknown_address_is_a_page_with_ways_out(client: TestClient) -> None:
    """404 with the sentence, the wordmark and two links."""
    page = client.get("/nowhere")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "There is nothing at this address." in page.text
    assert 'href="/library"' in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]


def test_a_crash_is_a_page_without_its_words(client: TestClient) -> None:
    """500 in plain words; what the exception said stays in the log. Trying again is one click."""
    page = client.get("/broken")
    assert page.status_code == 500
    assert "Something failed" in page.text
    assert "the words of this exception" not in page.text
    assert 'href="/broken"' in page.text


def test_a_fragment_gets_one_plain_sentence(client: TestClient) -> None:
    """A script puts it where it happened; a whole page inside a page helps nobody."""
    answer = client.get("/nowhere", headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert answer.text == "There is nothing at this address."
    assert answer.headers["content-type"].startswith("text/plain")


def test_the_api_answers_in_json(client: TestClient) -> None:
    """A program never gets HTML."""
    assert client.get("/api/nowhere").json()["error"]["code"] == "not_found"


def test_an_address_that_makes_no_sense_is_a_page_too(client: TestClient) -> None:
    """A word where a number belongs is refused in the look of the rest."""
    page = client.get("/documents/abc")
    assert page.status_code == 422
    assert page.headers["content-type"].startswith("text/html")
    assert "That can&#39;t be done" in page.text


def test_a_foreign_page_is_refused_in_words(client: TestClient) -> None:
    """A form on another site changes nothing, and the person in front of it learns why."""
    foreign = {"Origin": "http://evil.example"}
    page = client.post("/ui/documents/1/retry", headers={**foreign, "Sec-Fetch-Site": "cross-site"})
    assert page.status_code == 403
    assert "another site" in page.text
    # Without the browser's word for it, it may as well be the own page behind a proxy that renames the host.
    page = client.post("/ui/documents/1/retry", headers=foreign)
    assert page.status_code == 403
    assert "The page is at http://evil.example, but the request reached Docent as one for 127.0.0.1:8642" in page.text
