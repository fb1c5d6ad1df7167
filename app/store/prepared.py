"""Statements that are compiled once, for the path of a search.

Owns the short way past the ORM: an ordinary `select` is turned into text when it is defined, and each run hands the
driver that text and the values. Run as usual, a statement costs 0.4 ms more than SQLite needs for it, and a search has
eight. Errors are those of the engine (`StoreError`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Row
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement


class Prepared:
    """One statement.

    Args:
        statement: With a `bindparam` for each value that changes; lists are one JSON parameter (`app.store.among`).
            Only for columns whose values SQLite knows itself: text, numbers, blobs.
    """

    def __init__(self, statement: ClauseElement) -> None:
        compiled = cast("SQLCompiler", statement.compile(dialect=sqlite.dialect(paramstyle="qmark")))
        self._sql = str(compiled)
        self._values = cast("dict[str, Any]", compiled.params)
        self._order = tuple(compiled.positiontup or ())

    def rows(self, session: Session, parameters: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """Every row, in the order of the statement."""
        values = {**self._values, **parameters}
        return session.connection().exec_driver_sql(self._sql, tuple(values[name] for name in self._order)).all()
