"""When one watched folder is looked at next: at all of it, or at the directories in which something changed.

Owns that reckoning, with seconds of `Clock.monotonic` and nothing else; not what a look is (`app.ingest.scan`). Called
by `app.ingest.live`, which holds one for each folder.

Looks at parts and looks at the whole are counted apart, so that one edit does not wait for what a look at 20,000 files
cost. Each kind has an allowance: it may be spent at once, comes back while time passes, and a kind that has spent more
than it rests until it is there again. So a folder in which something changes all the time takes a fifth of the time,
and one in which somebody works takes no rest.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

REST_SHARE = 4
"""Seconds of rest for each second that looking took."""

ALLOWANCE_S = 2.0
"""Seconds of looking that need no rest at first: a few looks at 20,000 files."""

REST_MOST_S = 30.0

MOST_PARTS = 20
"""Directories that are looked at one by one; when more changed, the whole folder is."""


@dataclass(slots=True)
class _Kind:
    due: float | None = None
    owed_s: float = 0.0
    """What looking has taken and no time has made up for, at `owed_at`."""
    owed_at: float = 0.0

    def rests_until(self) -> float:
        """When its allowance is there again."""
        return self.owed_at + min(REST_MOST_S, max(0.0, self.owed_s - ALLOWANCE_S) * REST_SHARE)

    def ask(self, when: float) -> None:
        when = max(when, self.rests_until())
        self.due = when if self.due is None else min(self.due, when)

    def spend(self, now: float, seconds: float) -> None:
        """The cap on a rest forgives what goes beyond it: the longest look is followed by the longest rest."""
        rested = max(0.0, now - seconds - self.owed_at)
        left = max(0.0, self.owed_s - rested / REST_SHARE)
        self.owed_s = min(left + seconds, ALLOWANCE_S + REST_MOST_S / REST_SHARE)
        self.owed_at = now


@dataclass(slots=True)
class LookDue:
    """What is due for a folder."""

    _whole: _Kind = field(default_factory=_Kind)
    _part: _Kind = field(default_factory=_Kind)
    _parts: set[str] = field(default_factory=set[str])

    def ask(self, when: float, parts: AbstractSet[str] | None = None) -> None:
        """A look at these directories (None: at all) is wanted at a time; it comes then, or after the rest. One that
        is due earlier stays so."""
        if parts is not None and len(self._parts | parts) <= MOST_PARTS:
            self._parts |= parts
            self._part.ask(when)
        else:
            self._whole.ask(when)

    def spend(self, now: float, seconds: float, *, is_part: bool) -> None:
        """A look of that kind ended now and took so long. It counts as what was asked for, even where a look at a part
        raised a question that made it one at the whole."""
        (self._part if is_part else self._whole).spend(now, seconds)

    def cancel(self) -> None:
        """Nothing is due any more."""
        self._whole.due = self._part.due = None
        self._parts = set()

    def soonest(self) -> float | None:
        """When the next look is due."""
        return min((kind.due for kind in (self._whole, self._part) if kind.due is not None), default=None)

    def take(self, now: float) -> list[str] | None:
        """The directories of the look that is due now, none for one at the whole, which settles what else was asked
        for; None when nothing is due."""
        if self._whole.due is not None and self._whole.due <= now:
            self.cancel()
            return []
        if self._part.due is None or self._part.due > now:
            return None
        parts = sorted(self._parts)
        self._part.due, self._parts = None, set()
        return parts
