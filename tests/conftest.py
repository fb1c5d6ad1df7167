"""What every test gets: no network but loopback, no blocking call inside the event loop, a fresh data folder."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest
from blockbuster import BlockBuster, blockbuster_ctx

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
    with blockbuster_ctx("app") as guard:
        _let_coverage_lock(guard)
        yield


def _let_coverage_lock(guard: BlockBuster) -> None:
    """Coverage's tracer takes a lock of its own inside whatever line it counts, the event loop's included."""
    current = coverage.Coverage.current()
    collector = getattr(current, "_collector", None)
    own = getattr(collector, "data_lock", None)
    if own is None:
        return
    for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
        function = guard.functions[name].deactivate()
        may_block = function.can_block_predicate
        function.can_block_predicate = lambda lock, *args, before=may_block, **kwargs: (
            lock is own or before(lock, *args, **kwargs)
        )
        function.activate()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database after every migration: running them takes a tenth of a second, a copy a thousandth."""
    path = tmp_path_factory.mktemp("migrated") / "docent.db"
    database = Database(f"sqlite:///{path}")
    migrate(database)
    database.close()
    return path


@pytest.fixture
def settings(tmp_path: Path, migrated_file: Path) -> Settings:
    """Settings of an installation that was started once and is empty, in the test's own data folder; no environment."""
    settings = Settings(_env_file=None, data_dir=tmp_path / "data")
    settings.data_dir.mkdir(mode=0o700)
    shutil.copyfile(migrated_file, settings.data_dir / "docent.db")
    return settings


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """A migrated, empty database."""
    database = Database(settings.database)
    migrate(database)
    yield database
    database.close()
