"""Docent behind nginx as Debian has it: with what the operating page says to write, and with nginx's own defaults."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from app.settings import ROOT
from tests.server import ServerProcess, free_port
from tests.waiting import until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed; Debian has it as nginx-light")

FRAME = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{server}
}}
"""
NAME = "docent.lan"


def snippet() -> str:
    """What docs/operating.md tells an operator to write."""
    found = re.search(r"```nginx\n(.*?)```", (ROOT / "docs" / "operating.md").read_text("utf-8"), re.S)
    assert found
    return found[1]


@contextmanager
def nginx(folder: Path, config: str, upstream: int) -> Iterator[httpx2.Client]:
    """nginx with that server block on a free port; a client that asks it under the name."""
    assert NGINX is not None
    port = free_port()
    folder.mkdir()
    server = config.replace("listen 80;", f"listen 127.0.0.1:{port};").replace(
        "127.0.0.1:8642", f"127.0.0.1:{upstream}"
    )
    (folder / "nginx.conf").write_text(FRAME.format(folder=folder, server=server), "utf-8")
    process = subprocess.Popen([NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", "nginx.conf"])
    host = f"{NAME}:{port}"
    headers = {"host": host, "origin": f"http://{host}"}
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20) as client:
            until(lambda: (folder / "pid").exists(), "nginx serves")
            yield client
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def docent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = {"ALLOWED_HOSTS": NAME, "TRUSTED_PROXIES": "127.0.0.1"}
    with ServerProcess(tmp_path_factory.mktemp("docent"), **settings) as server:
        yield server


def test_the_operating_pages_snippet_lets_everything_through(docent: ServerProcess, tmp_path: Path) -> None:
    """A page on plain http, whose browser names its origin: an upload of some size, a question, its stream."""
    with nginx(tmp_path / "nginx", snippet(), docent.port) as client:
        text = "# Pump\n\n" + "The pump is oiled every month. " * 40_000
        added = client.post("/api/documents", files={"files": ("pump.md", text.encode())})
        assert (added.status_code, added.json()["errors"]) == (202, [])
        asked = {"message": "How often is the pump oiled?", "client_key": "k1"}
        with client.stream("POST", "/api/chat", json=asked) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert "event: done" in "".join(answer.iter_text())


def test_nginx_defaults_are_refused_with_what_to_write(docent: ServerProcess, tmp_path: Path) -> None:
    """They put the upstream's address in the browser's place: the sentence names both, and the header."""
    config = re.sub(r"\n *proxy_set_header Host .*", "", snippet())
    assert config != snippet()
    with nginx(tmp_path / "nginx", config, docent.port) as client:
        assert client.get("/").status_code == 200
        refused = client.post("/api/chat", json={"message": "Hello?", "client_key": "k2"})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (403, "origin_refused")
        assert f"The page is at {client.headers['origin']}" in error["message"]
        assert f"one for 127.0.0.1:{docent.port}" in error["message"]
        assert "proxy_set_header Host $http_host" in error["message"]


def test_an_upstreams_made_up_name_is_refused_with_what_to_write(docent: ServerProcess, tmp_path: Path) -> None:
    """A named upstream block puts its own name into every request."""
    upstream = f"upstream docent_here {{ server 127.0.0.1:{docent.port}; }}\n"
    config = re.sub(r"\n *proxy_set_header Host .*", "", snippet()).replace(
        "http://127.0.0.1:8642", "http://docent_here"
    )
    with nginx(tmp_path / "nginx", upstream + config, docent.port) as client:
        page = client.get("/api/collections")
        assert page.json()["error"]["code"] == "host_refused"
        assert "docent_here" in page.json()["error"]["message"]
        assert "pass on the Host header" in page.json()["error"]["message"]
