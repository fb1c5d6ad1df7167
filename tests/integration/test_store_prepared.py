"""Statements compiled once."""

import json

import pytest
from sqlalchemy import Integer, bindparam, literal, select, text

from app.store.among import values_of
from app.store.engine import Database, StoreError
from app.store.prepared import Prepared


def test_values_reach_their_places_also_when_one_stands_twice(database: Database) -> None:
    """What changes is named, what doesn't keeps its value, whatever their order in the text."""
    twice = bindparam("twice", type_=Integer)
    statement = Prepared(select(twice, literal("fixed"), bindparam("other", type_=Integer), twice + 1))

    rows = database.read(lambda session: statement.rows(session, {"other": 5, "twice": 2}))

    assert [tuple(row) for row in rows] == [(2, "fixed", 5, 3)]


def test_a_list_is_one_value_and_may_be_empty(database: Database) -> None:
    """No statement is made anew for another number of values."""
    statement = Prepared(select(literal(1)).where(literal("b").in_(values_of("names"))))

    found = [
        len(database.read(lambda session, names=names: statement.rows(session, {"names": json.dumps(names)})))
        for names in (["a", "b"], ["a"], [])
    ]

    assert found == [1, 0, 0]


def test_a_statement_that_sqlite_refuses_raises_what_callers_expect(database: Database) -> None:
    """The gate knows `StoreError` only, not the driver's own."""
    with pytest.raises(StoreError):
        database.read(lambda session: Prepared(text("SELECT nothing FROM nowhere")).rows(session, {}))
