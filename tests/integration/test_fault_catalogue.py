"""Every named fault, in the first, a middle and the last round of a turn: the documented end, and the next turn works.

A whole turn over `POST /api/chat`, a model server on a real socket. `DOCENT_LONG=1` plays the families of alike faults
in all rounds, too, and everything in twenty orders.
"""

import os
import random

import pytest

from app.catalog import load_catalog
from app.settings import Settings
from tests.fault_catalogue import CASES, FAMILIES, Case
from tests.integration.fault_ends import LIMIT_S, play_all
from tests.integration.fault_rounds import ROUNDS, Round

LONG = bool(os.environ.get("DOCENT_LONG"))
ORDERS = range(20 if LONG else 1)


def lot(round_: Round) -> list[tuple[str, Case]]:
    """The faults to play in a round."""
    families = [pair for number, pair in enumerate(FAMILIES.items()) if LONG or ROUNDS[number % 3] == round_]
    return [*CASES.items(), *families]


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("round_", ROUNDS)
def test_every_fault_ends_as_documented_and_the_next_turn_works(
    settings: Settings, caplog: pytest.LogCaptureFixture, round_: Round, order: int
) -> None:
    """Terminal frame, turn, answer and line agree; the text stays; the limit holds; nothing goes unhandled."""
    named = lot(round_)
    if order:
        random.Random(order).shuffle(named)
    assert play_all(settings, caplog, named, round_) == []


def test_the_catalogue_is_as_large_as_promised() -> None:
    """At least sixty names in all three rounds; every end that is no success has a sentence."""
    assert len(CASES) >= 60
    assert len(CASES) + len(FAMILIES) >= 140
    catalog = load_catalog()
    for name, case in {**CASES, **FAMILIES}.items():
        assert case.end == "ok" or catalog.has(f"errors.{case.end}") or case.end == "llm_incomplete.cut", name
