"""A decoder of server-sent events as the standard describes it, independent of the encoder under test."""

import json
import re
from dataclasses import dataclass
from typing import Any

_LINE_END = re.compile("\r\n|\n|\r")


@dataclass(frozen=True)
class Frame:
    """One event as a client sees it."""

    id: str
    event: str
    data: Any


class Decoder:
    """Takes bytes as they come, gives the frames that are complete; comments are counted."""

    def __init__(self) -> None:
        self._rest = b""
        self.comments = 0

    def feed(self, data: bytes) -> list[Frame]:
        self._rest += data
        frames: list[Frame] = []
        while b"\n\n" in self._rest:
            block, self._rest = self._rest.split(b"\n\n", 1)
            frame = self._read(block.decode("utf-8"))
            if frame is not None:
                frames.append(frame)
        return frames

    def _read(self, block: str) -> Frame | None:
        fields: dict[str, list[str]] = {"id": [], "event": [], "data": []}
        for line in _LINE_END.split(block):
            name, _, value = line.partition(":")
            if line.startswith(":"):
                self.comments += 1
            elif name in fields:
                fields[name].append(value.removeprefix(" "))
        if not fields["data"]:
            return None
        (event_id,), (event,) = fields["id"], fields["event"]
        return Frame(event_id, event, json.loads("\n".join(fields["data"])))


def text_of(frames: list[Frame], kind: str = "delta") -> str:
    """What the frames of a kind say together."""
    return "".join(frame.data["text"] for frame in frames if frame.event == kind)
