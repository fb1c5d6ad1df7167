"""Log lines are one line each, in logfmt, without secrets."""

import logging

from hypothesis import given
from hypothesis import strategies as st

from app.logs import Redactor, kv
from app.rag.turn import TurnStats


def test_values_are_uniform() -> None:
    """None and empty become a dash, booleans digits, floats three decimals, spaces quotes."""
    line = kv("event", a=None, b="", c=True, d=0.5, e="two words", f='say "x"\n', g=7)

    assert line == 'event a=- b=- c=1 d=0.500 e="two words" f="say \\"x\\"\\x0a" g=7'


@given(st.text())
def test_any_value_stays_on_one_line(text: str) -> None:
    """A name with a newline must not forge a second event."""
    assert len(kv("event", name=text).splitlines()) == 1


def test_secrets_are_replaced_wherever_they_stand() -> None:
    """Known values, bearer tokens and sk- keys never reach the handler."""
    redactor = Redactor()
    redactor.add("hunter2hunter2")
    redactor.add("abc")
    record = logging.LogRecord(
        "x", logging.INFO, __file__, 1, "key %s", ("hunter2hunter2 Bearer abcdef sk-12345678",), None
    )
    redactor.filter(record)

    assert record.getMessage() == "key *** Bearer *** sk-***"
    assert redactor.clean("abc stays") == "abc stays"


def test_the_turn_line_has_every_field_in_its_order() -> None:
    """The per-turn line is a contract; its last three fields and their order are fixed."""
    line = TurnStats(turn="t1", chat=None, user=1).log_line()

    assert line == (
        "chat_turn turn=t1 chat=- user=1 mode=- outcome=- model=- top_score=0.000 chunks=0 rounds=0 tool_calls=0 "
        "read_docs=0 recovered=0 guard=none cited=0 dropped_cites=0 thinking_chars=0 answer_chars=0 prompt_tokens=- "
        "retrieval_ms=0 first_ms=0 total_ms=0 retries=0 scaffold_stripped=0"
    )
