"""Which pages and which host names Docent answers: the tables of what browsers and attackers send."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse

from app.catalog import load_catalog
from app.edge.errors import ErrorResponses
from app.edge.origin import OriginCheck, host_name

BASE = "http://127.0.0.1:8642"


async def anything(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse("through")(scope, receive, send)


CHECKED = TestClient(OriginCheck(anything, ["docent.lan"], ErrorResponses(load_catalog())), base_url=BASE)


OWN, OTHER = BASE, "http://evil.example"


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": ""}, False),
        ({"sec-fetch-site": "Same-Origin"}, False),
        ({"sec-fetch-site": "cross-site", "origin": OWN}, False),
        ({"sec-fetch-site": "same-origin", "origin": OTHER}, True),
        ({"origin": OWN}, True),
        ({"origin": OWN.upper()}, True),
        ({"origin": "https://127.0.0.1:8642"}, True),
        ({"origin": OTHER}, False),
        ({"origin": "null"}, False),
        ({"origin": ""}, False),
        ({"origin": "http://127.0.0.1"}, False),
        ({"origin": "http://127.0.0.1:8643"}, False),
        ({"origin": "http://127.0.0.1:8642.evil.example"}, False),
        ({"origin": "http://evil.example/127.0.0.1:8642"}, False),
        ({"origin": "file://127.0.0.1:8642"}, False),
        ({"origin": "127.0.0.1:8642"}, False),
        ({"origin": "http://docent.lan", "host": "docent.lan"}, True),
        ({"origin": "http://docent.lan", "host": "docent.lan:80"}, True),
        ({"origin": "http://docent.lan:80", "host": "docent.lan"}, True),
        ({"origin": "https://docent.lan", "host": "docent.lan"}, True),
        ({"origin": "https://docent.lan:443", "host": "docent.lan"}, True),
        ({"origin": "https://docent.lan:80", "host": "docent.lan"}, False),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"])
def test_only_own_pages_and_tools_may_change_things(method: str, headers: dict[str, str], allowed: bool) -> None:
    """The whole table of what browsers send, for every method that is not safe. Reading is never refused."""
    answer = CHECKED.request(method, "/api/chats/1", headers=headers)
    assert answer.status_code == (200 if allowed else 403)
    if not allowed:
        assert answer.json()["error"]["code"] == "origin_refused"
    assert CHECKED.get("/healthz", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8642", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("localhost.:8642", True),
        ("[::1]:8642", True),
        ("192.168.1.5", True),
        ("docent.lan", True),
        ("Docent.LAN.:8642", True),
        ("evil.example", False),
        ("docent.lan.evil.example", False),
        ("evil-docent.lan", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.1", False),
        ("0x7f000001", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1/x", False),
        ("127.0.0.1:port", False),
        ("127.0.0.1, evil.example", False),
        ("[::1", False),
        ("[::1].evil.example", False),
        ("[::1]x:8642", False),
        ("[fe80::1%25evil.example]", False),
        ("%6cocalhost", False),
        ("", False),
        ("testserver", False),
    ],
)
def test_only_own_names_and_addresses_are_answered(host: str, allowed: bool) -> None:
    """A name that somebody else points at this machine is refused, whatever is asked; forwarded names count nothing."""
    for extra in ({}, {"x-forwarded-host": "docent.lan", "forwarded": "host=docent.lan"}):
        answer = CHECKED.get("/api/nowhere", headers={"host": host, **extra})
        assert answer.status_code == (200 if allowed else 400)
        if not allowed:
            assert answer.json()["error"]["code"] == "host_refused"
            assert answer.json()["error"]["setting"] == "ALLOWED_HOSTS"


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({"origin": "http://docent.lan", "host": "127.0.0.1:8642"}, True),
        ({"origin": "http://docent.lan:8080", "host": "docent.lan"}, True),
        ({"origin": "https://192.168.1.5", "host": "127.0.0.1:8642"}, True),
        ({"origin": "http://docent.lan", "sec-fetch-site": "cross-site"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://docent.lan/<b>"}, False),
        ({"origin": f"http://{'a' * 300}"}, False),
    ],
)
def test_a_page_of_another_host_is_told_what_a_proxy_has_to_pass_on(
    headers: dict[str, str], hint: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Both addresses are named, to the reader and in the log, unless the browser itself calls the page foreign."""
    sentence = CHECKED.post("/api/chats/1", headers=headers).json()["error"]["message"]
    assert ("proxy_set_header Host $http_host" in sentence) is hint
    assert (headers["origin"] in sentence) is hint
    assert (f"origin={headers['origin']}" in caplog.text) is hint
    assert (headers.get("host", "-") in sentence) is hint


@given(st.text(max_size=40))
def test_any_host_header_is_read_without_failing(host: str) -> None:
    """A name or None, never an error."""
    name = host_name(host)
    assert name is None or ("/" not in name and "@" not in name)


@pytest.mark.parametrize("name", ["sec-fetch-site", "origin"])
@pytest.mark.parametrize("foreign_first", [False, True])
def test_a_header_sent_twice_counts_as_its_worse_half(name: str, foreign_first: bool) -> None:
    """One good value does not cover for a foreign one beside it, in either order."""
    pair = [(name, "same-origin"), (name, "cross-site")] if name != "origin" else [(name, OWN), (name, OTHER)]
    answer = CHECKED.post("/api/chats/1", headers=pair[::-1] if foreign_first else pair)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_refused")
