"""Notices a generation that has run away: its text ends in four equal blocks of 80 characters or more. Pure.

Linear in the text and flat in memory; the verdict depends on the text alone, not on how it was cut into pieces. One
per reply, fed as the text comes; used by `app.guard.turn_guard`.
"""

BLOCK = 80
REPEATS = 4
SCALES = tuple(BLOCK << power for power in range(6))
"""Blocks of m to 2m − 1 characters are looked for together; the longest block found has 5,119."""
LONGEST = 2 * SCALES[-1] - 1
STEP = BLOCK // 4
"""How far apart the looks are at the smallest scale; at a larger one they are as much farther apart."""

_KEPT = REPEATS * LONGEST


class RunawayCheck:
    """Takes a reply's text piece by piece."""

    def __init__(self) -> None:
        self._tail = ""
        self._seen = 0
        self.found = False

    def feed(self, text: str) -> bool:
        """Whether the text, up to the last multiple of 20 characters, has ended in four equal blocks at a look.

        Blocks of 80 to 159 characters are looked for every 20 characters, blocks twice as long half as often, and so
        on. Once found, the answer stays.
        """
        # Detached, so that the string grows in place.
        tail, self._tail = self._tail, ""
        at = 0
        while at < len(text) and not self.found:
            part = text[at : at + STEP - self._seen % STEP]
            at += len(part)
            self._seen += len(part)
            tail += part
            if self._seen % STEP == 0:
                self.found = self._look(tail)
                if len(tail) > 2 * _KEPT:
                    tail = tail[-_KEPT:]
        self._tail = "" if self.found else tail
        return self.found

    def _look(self, tail: str) -> bool:
        looks = self._seen // STEP
        return any(
            _ends_in_blocks(tail, scale)
            for power, scale in enumerate(SCALES)
            if looks % (1 << power) == 0 and self._seen >= REPEATS * scale
        )


def _ends_in_blocks(tail: str, scale: int) -> bool:
    """Whether the text ends in four equal blocks of `scale` to 2·`scale` − 1 characters.

    Looks where the last 2·`scale` characters stood before, nearest first. They hold a whole block, so in a text of
    equal blocks they recur at multiples of its shortest period and nowhere else: the nearest place decides.
    """
    backwards = tail[-REPEATS * scale :][::-1]
    # The beginning alone is quick to look for, and prose has no second one.
    if (first := backwards.find(backwards[:STEP], scale, 2 * scale + STEP)) < 0:
        return False
    block = backwards.find(backwards[: 2 * scale], first)
    if block < 0 or len(tail) < REPEATS * block:
        return False
    return tail[-(REPEATS - 1) * block :] == tail[-REPEATS * block : -block]
