"""What every test gets: no network but loopback, no blocking call inside the event loop, a fresh data folder."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import migrate

_connect = socket.socket.connect


def _loopback_only(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"a test tried to reach {address[0]}")
    _connect(self, address)


@pytest.fixture(autouse=True)
def _guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No socket leaves the machine; a blocking call in the event loop, made from app code, raises."""
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)
    with blockbuster_ctx("app"):
        yield


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a fresh installation whose data folder is the test's own; no `.env`, no environment."""
    return Settings(_env_file=None, data_dir=tmp_path / "data")


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """A migrated, empty database."""
    database = Database(settings.database)
    migrate(database)
    yield database
    database.close()
