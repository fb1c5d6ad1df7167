"""Streamed text on its way to the database: at most a second of an answer is lost to a kill.

One transaction writes the changed drafts of all running turns, so a hundred streams cost one write a beat. Settling
(`app.turns.settle`) writes the final text itself; a draft that comes after it changes nothing.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from app.logs import kv
from app.store import turns
from app.store.engine import Database, Session, StoreError
from app.turns.settle import Draft

BEAT_S = 0.7

_NOTHING = (0, 0, False)

_log = logging.getLogger(__name__)


class DraftWriter:
    """Writes the drafts that are kept open, once a beat.

    Args:
        beat_s: Seconds between two writes; with the write itself under one second.
    """

    def __init__(self, database: Database, *, beat_s: float = BEAT_S) -> None:
        self._database = database
        self._beat_s = beat_s
        self._open: dict[int, Draft] = {}
        self._written: dict[int, tuple[int, int, bool]] = {}

    @contextmanager
    def keeping(self, draft: Draft) -> Generator[None]:
        """Writes `draft` while the block runs, if there is a message to write to."""
        if draft.message_id is None:
            yield
            return
        self._open[draft.message_id] = draft
        try:
            yield
        finally:
            del self._open[draft.message_id]
            self._written.pop(draft.message_id, None)

    async def run(self) -> None:
        """Writes until cancelled. A write that fails is logged and tried again with the next beat."""
        while True:
            await asyncio.sleep(self._beat_s)
            try:
                await self.write()
            except StoreError as error:
                _log.error(kv("drafts_not_written", error=type(error).__name__))

    async def write(self) -> int:
        """Writes what changed since the last time; how many drafts that were. Text only grows: lengths tell."""
        states = {key: _state(draft) for key, draft in self._open.items()}
        changed = {key: self._open[key] for key, state in states.items() if self._written.get(key, _NOTHING) != state}
        texts = [(key, draft.content, draft.thinking) for key, draft in changed.items()]
        prompted = [
            (key, draft.prompted)
            for key, draft in changed.items()
            if draft.prompted is not None and not self._written.get(key, _NOTHING)[2]
        ]
        if not changed:
            return 0

        def save(session: Session) -> None:
            for message_id, marked in prompted:
                turns.mark_prompted(session, message_id, marked)
            turns.save_drafts(session, texts)

        await self._database.awrite(save)
        self._written.update({key: states[key] for key in changed if key in self._open})
        return len(changed)


def _state(draft: Draft) -> tuple[int, int, bool]:
    return len(draft.content), len(draft.thinking), draft.prompted is not None
