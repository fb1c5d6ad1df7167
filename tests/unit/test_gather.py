"""Gathering text into frames: the first word at once, the rest in as few frames as the gap allows, nothing lost."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from app.api import frames
from app.api.gather import FrameGatherer, TextKind
from app.turns.event_log import EventLog


async def written(log: EventLog) -> list[tuple[str, str]]:
    log.close()
    return [(event.event, str(event.data.get("text", event.data.get("code")))) async for event in log.follow()]


def test_the_first_text_goes_out_at_once() -> None:
    """Also right after another frame: nobody waits for the first word."""

    async def test() -> None:
        log = EventLog()
        out = FrameGatherer(log, gap_s=60)
        out.frame(frames.notice("model_loading", "It loads."))
        out.text("delta", "Night")
        out.text("delta", "ly, ")
        out.text("delta", "at two.")
        assert log.last is not None
        assert log.last.data == {"text": "Night"}
        out.flush()
        assert await written(log) == [("notice", "model_loading"), ("delta", "Night"), ("delta", "ly, at two.")]

    asyncio.run(test())


def test_gathered_text_goes_out_when_the_gap_is_over() -> None:
    """A model that pauses leaves nothing waiting."""

    async def test() -> None:
        log = EventLog()
        out = FrameGatherer(log, gap_s=0.02)
        out.text("delta", "a")
        out.text("delta", "b")
        out.text("delta", "c")
        follow = log.follow()
        assert [(await asyncio.wait_for(anext(follow), 5)).data["text"] for _ in range(2)] == ["a", "bc"]

    asyncio.run(test())


def test_another_frame_comes_after_the_text_before_it() -> None:
    """Order is kept, between kinds of text too."""

    async def test() -> None:
        log = EventLog()
        out = FrameGatherer(log, gap_s=60)
        out.text("thinking", "hm")
        out.text("thinking", "m")
        out.text("delta", "Night")
        out.text("delta", "ly")
        out.frame(frames.notice("answer_cut", "It breaks off."))
        assert await written(log) == [
            ("thinking", "hm"),
            ("thinking", "m"),
            ("delta", "Nightly"),
            ("notice", "answer_cut"),
        ]

    asyncio.run(test())


KINDS: list[TextKind] = ["delta", "thinking"]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.text(min_size=1, max_size=5), st.booleans()), max_size=20))
def test_every_text_comes_out_once_and_in_order(steps: list[tuple[TextKind, str, bool]]) -> None:
    """Whatever the timing, each kind's frames joined are its texts joined; no frame is empty."""

    async def test() -> list[tuple[str, str]]:
        log = EventLog()
        out = FrameGatherer(log, gap_s=0.0005)
        for kind, text, pauses in steps:
            out.text(kind, text)
            if pauses:
                await asyncio.sleep(0.001)
        out.flush()
        return await written(log)

    seen = asyncio.run(test())
    for kind in KINDS:
        assert "".join(text for event, text in seen if event == kind) == "".join(t for k, t, _ in steps if k == kind)
    assert all(text for _, text in seen)
