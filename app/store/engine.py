"""Access to the database: one writing connection with a queue in front, readers that never wait.

Owns connections, transactions and SQLite's pragmas. Repositories are plain functions of a `Session`; they never open
one. Callers hand a function to `read` or `write` (or `aread`, `awrite` from async code) and get its result. Only what
the function returns leaves the transaction, so no session can span a model call.

SQLite: WAL, `synchronous=NORMAL`, foreign keys on, every write in `BEGIN IMMEDIATE` on one thread, which is also the
only one that commits and so the only one that checkpoints (SQLite before 3.51.3 can lose commits when two connections
race there).

What async code writes goes before what threads have queued: someone waits for the one, and the other is background work
but for a page that saves something, which is used to waiting.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool, SingletonThreadPool

from app.store.writer_queue import WriterQueue

T = TypeVar("T")

StoreError = SQLAlchemyError
"""What any statement may raise, for callers that go on without the database; they need not know SQLAlchemy."""

BUSY_TIMEOUT_MS = 5000
READERS = 16


class Database:
    """One SQLite database.

    Args:
        url: An SQLAlchemy URL, `sqlite:///path`.

    Raises:
        ValueError: for a URL of another kind; PostgreSQL comes later behind this same interface.
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
            raise ValueError("DATABASE_URL must be a sqlite file: sqlite:///path/to/docent.db")
        self.url = url
        self.writes = 0
        """How many transactions were committed here; what was read before another one may have changed since."""
        self.path = Path(parsed.database)
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._writer = create_engine(url, poolclass=SingletonThreadPool)
        self._readers = create_engine(url, poolclass=QueuePool, pool_size=READERS, max_overflow=0)
        _configure(
            self._writer,
            "BEGIN IMMEDIATE",
            ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL"),
        )
        _configure(self._readers, "BEGIN", ("PRAGMA query_only=ON",))
        self._queue = WriterQueue("docent-writer")

    def read(self, work: Callable[[Session], T]) -> T:
        """Runs `work` in one read transaction (one snapshot) on the calling thread."""
        with Session(self._readers, expire_on_commit=False) as session:
            return work(session)

    def write(self, work: Callable[[Session], T]) -> T:
        """Runs `work` in one write transaction on the writer thread, after those queued before it and after every
        `awrite`, and waits.

        Commits when `work` returns, rolls back when it raises, and raises the same error here.

        Raises:
            RuntimeError: when called from inside another write, which could only wait for itself.
        """
        return self._submit(work).result()

    async def aread(self, work: Callable[[Session], T]) -> T:
        """`read` on a worker thread."""
        return await anyio.to_thread.run_sync(self.read, work)

    async def awrite(self, work: Callable[[Session], T]) -> T:
        """`write` without blocking the event loop, before all that `write` has queued. Once begun, the write is
        finished even if the caller is cancelled; a caller that must know uses `asyncio.shield`."""
        return await asyncio.wrap_future(self._submit(work, goes_first=True))

    def writer_connection(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` with the raw writing connection, outside any transaction: migrations only."""

        def run() -> T:
            with self._writer.connect() as connection:
                return work(connection)

        return self._queue.submit(run).result()

    def close(self) -> None:
        """Finishes queued writes and closes every connection. Safe to call twice."""
        self._queue.close()
        self._readers.dispose()
        self._writer.dispose()

    def _submit(self, work: Callable[[Session], T], *, goes_first: bool = False) -> Future[T]:
        if self._queue.is_current:
            raise RuntimeError("a write was started inside a write")
        return self._queue.submit(partial(self._transact, work), goes_first=goes_first)

    def _transact(self, work: Callable[[Session], T]) -> T:
        try:
            with Session(self._writer, expire_on_commit=False) as session, session.begin():
                return work(session)
        finally:
            self.writes += 1


def _configure(engine: Engine, begin: str, pragmas: tuple[str, ...]) -> None:
    """Sets per-connection pragmas and takes over BEGIN from the driver, whose own would be deferred and late."""

    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        for pragma in (
            f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
            "PRAGMA foreign_keys=ON",
            *pragmas,
        ):
            connection.execute(pragma).close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
