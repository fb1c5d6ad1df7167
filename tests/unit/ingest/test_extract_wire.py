"""The child's loop and its frames, run in process; what the child refuses itself."""

import io
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.ingest.chunking import chunk
from app.ingest.extract import child, sandbox, wire
from app.ingest.extract.dispatch import SizeLimits, extract

Message = dict[str, Any]


def ask(*requests: Message, limits: SizeLimits | None = None) -> tuple[list[Message], list[float]]:
    """Feeds requests to the loop; its messages, and the CPU time it granted each."""
    replies = io.BytesIO()
    granted: list[float] = []
    child.serve(
        io.BytesIO(b"".join(map(wire.frame, requests))), replies, limits or SizeLimits(), granted.append, lambda: 0
    )
    data, messages = replies.getvalue(), []
    while data:
        size = wire.HEADER_BYTES + wire.payload_size(data[: wire.HEADER_BYTES])
        messages.append(orjson.loads(data[wire.HEADER_BYTES : size]))
        data = data[size:]
    assert [message for message in messages if "began" in message] == [{"began": True}] * len(requests)
    return [message for message in messages if "began" not in message], granted


def request(path: Path, name: str = "a.md") -> Message:
    return {"path": os.fsencode(path).hex(), "name": name, "cpu_s": 7}


def test_an_extraction_survives_the_pipe_unchanged(tmp_path: Path) -> None:
    """What the child found is what the app gets, blocks and chunks and all."""
    path = tmp_path / "a.md"
    path.write_text("# Ä\n\nText 漢字.\n\n- one\n")
    expected = extract(path, "a.md", SizeLimits())

    messages, granted = ask(request(path))

    assert wire.unpack(messages[0]) == (expected, chunk(expected))
    assert granted == [7]


def test_a_failed_document_does_not_end_the_loop(tmp_path: Path) -> None:
    """Its reason is answered, and the next one is read."""
    good = tmp_path / "a.md"
    good.write_text("x")

    messages, _ = ask(request(tmp_path / "none"), request(good))

    assert messages[0]["error"] == "vanished"
    assert messages[1]["extraction"]["text"] == "x"


def test_a_document_of_too_many_passages_is_too_long(tmp_path: Path) -> None:
    """The index is not flooded by one small file."""
    path = tmp_path / "a.md"
    path.write_text("# x\n" * 50)

    messages, _ = ask(request(path), limits=SizeLimits(max_chunks=10))

    assert messages[0]["error"] == "too_long"


@pytest.mark.parametrize(
    ("crash", "error", "last"),
    [(MemoryError(), "too_long", True), (RecursionError(), "corrupt", None), (KeyError("x"), "internal", None)],
)
def test_a_crash_is_an_answer(tmp_path: Path, crash: Exception, error: str, last: bool | None) -> None:
    """Out of memory ends the process after it said so; a bug names its place and nothing of the document."""
    path = tmp_path / "a.md"
    path.write_text("secret words")

    class Crashing(SizeLimits):
        @property
        def max_chunks(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
            raise crash

    limits = object.__new__(Crashing)
    object.__setattr__(limits, "max_bytes", 1000)
    object.__setattr__(limits, "max_chars", 1000)

    reply = child.answer(request(path), limits, lambda message: None)

    assert reply["error"] == error
    assert reply.get("last") == last
    assert "secret" not in str(reply)
    assert (error == "internal") == ("KeyError at test_extract_wire.py" in reply.get("detail", ""))


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("socket.connect", ()),
        ("socket.__new__", ()),
        ("subprocess.Popen", ()),
        ("os.remove", ()),
        ("open", ("/x", "w", os.O_WRONLY | os.O_CREAT)),
    ],
)
def test_sockets_processes_and_writes_are_refused(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook says no to what no parser has to do."""
    with pytest.raises(PermissionError):
        sandbox.refuse(event, arguments)


def test_reading_and_importing_are_not_refused() -> None:
    """Or nothing would be read at all."""
    sandbox.refuse("open", ("/x", "rb", os.O_RDONLY | os.O_CLOEXEC))
    sandbox.refuse("open", ("/x", "rb", None))
    sandbox.refuse("import", ("mammoth", None, None, None, None))
