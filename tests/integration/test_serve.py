"""`docent serve` as a process: what it refuses, what it says at start, and how it ends."""

import re
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.serve import ServeError, address_of, check_address, is_loopback, listen, start_line
from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import HEAD
from tests.server import ServerProcess, free_port
from tests.sse import Decoder, Frame


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment whose data folder is the test's own."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    return monkeypatch


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("localhost", True), ("::1", True), ("[::1]", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "192.168.1.5", "docent.lan", "")],
)
def test_only_loopback_is_served_without_being_asked(settings: Settings, host: str, loopback: bool) -> None:
    """Anything else needs AUTH_MODE=none; what is no address counts as open."""
    assert is_loopback(host) is loopback
    open_settings = settings.model_copy(update={"host": host})
    if loopback:
        check_address(open_settings)
    else:
        with pytest.raises(ServeError) as caught:
            check_address(open_settings)
        assert (caught.value.code, caught.value.setting) == ("serve_open", "AUTH_MODE")
    check_address(open_settings.model_copy(update={"auth_mode": "none"}))


def test_an_open_address_is_refused_in_one_sentence(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit code 2, the setting named, nothing created."""
    environment.setenv("HOST", "0.0.0.0")
    assert cli.main(["serve"]) == cli.REFUSED
    assert "AUTH_MODE=none" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_taken_port_is_named_in_one_sentence(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback: the port, and what to set."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment.setenv("PORT", str(taken.getsockname()[1]))
        assert cli.main(["serve"]) == cli.REFUSED
        error = capsys.readouterr().err
        assert str(taken.getsockname()[1]) in error
        assert "PORT" in error
        assert "Traceback" not in error


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_of_another_machine_is_refused(settings: Settings, host: str) -> None:
    """It can't be listened on."""
    with pytest.raises(ServeError) as caught:
        listen(settings.model_copy(update={"host": host}))
    assert (caught.value.code, caught.value.setting) == ("serve_address", "HOST")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("PORT", "eighty", "eighty"),
        ("PORT", "70000", "70000"),
        ("LOG_LEVEL", "loud", "LOUD"),
        ("AUTH_MODE", "on", "on"),
    ],
)
def test_a_setting_that_can_not_be_used_is_named(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str, shown: str
) -> None:
    """One plain sentence: which variable, what it is, why not."""
    environment.setenv(name, value)
    assert cli.main(["serve"]) == cli.REFUSED
    error = capsys.readouterr().err
    assert error.startswith(f"docent: {name} is ")
    assert shown in error
    assert len(error.splitlines()) == 1


def test_a_database_that_can_not_be_opened_is_told(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No traceback either."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "docent.db").write_bytes(b"this is no database" * 100)
    assert cli.main(["migrate"]) == cli.FAILED
    error = capsys.readouterr().err
    assert "database" in error
    assert "Traceback" not in error


def test_migrate_says_from_where_to_where(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice is once."""
    assert cli.main(["migrate"]) == 0
    assert f"empty -> {HEAD}" in capsys.readouterr().out
    assert cli.main(["migrate"]) == 0
    assert f"{HEAD} -> {HEAD}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8642"), ("0.0.0.0", "http://127.0.0.1:8642"), ("::1", "http://[::1]:8642")],
)
def test_the_address_to_open_is_one_a_browser_takes(settings: Settings, host: str, url: str) -> None:
    """What is printed can be clicked."""
    assert address_of(settings.model_copy(update={"host": host})) == url


def test_the_line_at_start_holds_every_setting_and_no_secret(settings: Settings, database: Database) -> None:
    """Keys only as `set`, an address without its password."""
    changes = {"llm_api_key": "sk-canary-1", "embed_api_key": None, "llm_base_url": "http://me:canary-2@nas:1/v1"}
    line = database.read(lambda session: start_line(session, settings.model_copy(update=changes)))
    assert re.findall(r"(\w+)=", line)[:4] == ["url", "version", "sqlite", "revision"]
    assert set(Settings.model_fields) <= set(re.findall(r"(\w+)=", line))
    assert "canary" not in line
    assert "llm_api_key=set" in line
    assert "embed_api_key=- " in line
    assert "llm_base_url=http://nas:1/v1" in line


def read_stream(server: ServerProcess, key: str, frames: list[Frame], begun: threading.Event) -> None:
    body = b'{"message": "How often?", "without_documents": true, "client_key": "%s"}' % key.encode()
    request = urllib.request.Request(server.url + "/api/chat", body, {"content-type": "application/json"})
    decoder = Decoder()
    with urllib.request.urlopen(request, timeout=30) as reply:
        while data := reply.read1(65536):
            frames.extend(decoder.feed(data))
            begun.set()


def test_sigterm_ends_twenty_streams_within_five_seconds(tmp_path: Path) -> None:
    """Each reader gets `interrupted`, each turn is stored as that, and the process is gone."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with ServerProcess(tmp_path / "data", LLM_BASE_URL=address, LLM_MODEL="silent") as server:
            seen: list[list[Frame]] = [[] for _ in range(20)]
            begun = [threading.Event() for _ in range(20)]
            readers = [
                threading.Thread(target=read_stream, args=(server, f"k{n}", seen[n], begun[n])) for n in range(20)
            ]
            for reader in readers:
                reader.start()
            assert all(event.wait(20) for event in begun)
            took = server.terminate()
            for reader in readers:
                reader.join(10)
            log = server.log()
    assert took <= 5
    assert [frames[-1].data.get("code") for frames in seen] == ["interrupted"] * 20
    assert log.count("outcome=interrupted") == 20
    assert "ERROR" not in log
    assert "Traceback" not in log
    states = Database(f"sqlite:///{tmp_path / 'data' / 'docent.db'}")
    found: list[Any] = states.read(
        lambda session: session.connection().exec_driver_sql("SELECT state FROM turns").scalars().all()
    )
    states.close()
    assert found == ["interrupted"] * 20


def test_the_server_says_where_it_is_and_ends_quietly(tmp_path: Path) -> None:
    """An address to open on standard output, one line of settings in the log, nothing from the server library."""
    with ServerProcess(tmp_path / "data") as server:
        assert server.request("GET", "/readyz")[0] == 200
        assert server.terminate() < 5
        log = server.log()
    assert f"Docent is starting at {server.url}" in log
    assert log.count(" INFO app.serve serving url=") == 1
    assert "uvicorn" not in log
    assert "Traceback" not in log


def test_an_open_server_warns_loudly(tmp_path: Path) -> None:
    """In the terminal and in the log."""
    with ServerProcess(tmp_path / "data", HOST="0.0.0.0", AUTH_MODE="none") as server:
        server.terminate()
        log = server.log()
    assert "everyone who can reach this machine may read and change everything" in log
    assert "WARNING app.serve open_to_network" in log


def test_a_port_can_be_given_as_an_argument(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    """`docent serve --port N` wins over PORT, and is checked like it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment.setenv("PORT", str(free_port()))
        assert cli.main(["serve", "--port", str(taken.getsockname()[1])]) == cli.REFUSED
    assert cli.main(["serve", "--port", "70000"]) == cli.REFUSED
