"""How pages and their files travel: policy, caching, weight."""

import gzip
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.static import static_url


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8642", follow_redirects=False) as client:
        yield client


def test_pages_carry_the_policy_and_are_not_stored(client: TestClient) -> None:
    """No inline code could run, and Back after a log-out shows nothing."""
    reply = client.get("/")
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    assert reply.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?![^>]* src=)|<style|style=", reply.text)


def test_static_files_are_kept_for_good_under_their_version_only(client: TestClient) -> None:
    """Another version's address still works, but is asked for again."""
    now = client.get(static_url("css/base.css"), headers={"Accept-Encoding": "gzip"})
    assert now.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert now.headers["content-encoding"] == "gzip"
    assert client.get("/static/old/css/base.css").headers["cache-control"] == "no-cache"
    assert client.get(static_url("css/none.css")).status_code == 404
    assert client.get("/static/x/../../app/main.py").status_code == 404


def test_the_first_page_weighs_little(client: TestClient) -> None:
    """Everything it names, compressed: at most 100 kB."""
    html = client.get("/").text
    names = set(re.findall(r'"(/static/[^"#]+)', html))
    modules = {static_url(f"js/{name}.js") for name in ("sse", "live-text", "live-turn")}
    bodies = [html.encode(), *(client.get(name).content for name in names | modules)]
    assert sum(len(gzip.compress(body)) for body in bodies) <= 100_000
