"""The batches of tool calls in a conversation, by the place of their message. Pure.

Signatures, results and earlier occurrences are read when they are asked for, and nothing is kept: most batches of a
long conversation come once. Used by `app.guard.scan`.
"""

from collections.abc import Sequence

from app.guard.answers import AnswersKey, answers_key
from app.guard.signature import batch_signature, call_signature
from app.guard.transcript import Message, SentCall, answers_of, calls_of, role_of


class Batches:
    """The batches of `messages`; `masked` says how their answers are compared."""

    def __init__(self, messages: list[Message], masked: bool) -> None:
        self._messages = messages
        self._masked = masked

    def calls(self, at: int) -> list[SentCall]:
        """The calls of the message at a place."""
        return calls_of(self._messages[at])

    def key(self, at: int, made: list[str] | None = None, *, masked: bool | None = None) -> AnswersKey | None:
        """What the batch at a place was answered; None when that can't be told. `made` are its signatures, if known."""
        calls = self.calls(at)
        end = at + 1
        while end < len(self._messages) and self._messages[end].get("role") == "tool":
            end += 1
        if (answers := answers_of(calls, self._messages[at + 1 : end])) is None:
            return None
        return answers_key(made or signatures(calls), answers, masked=self._masked if masked is None else masked)

    def last_before(self, at: int, newest: int) -> int | None:
        """Where the batch at `newest` last stood before the place `at`.

        Names are compared first: they are there, signatures have to be made.
        """
        calls = self.calls(newest)
        names, wanted = sorted(call.name for call in calls), signature(calls)
        for earlier in range(at - 1, -1, -1):
            if role_of(self._messages[earlier]) != "assistant" or not (found := self.calls(earlier)):
                continue
            if sorted(call.name for call in found) == names and signature(found) == wanted:
                return earlier
        return None


def signature(calls: Sequence[SentCall]) -> str:
    """The signature of a batch."""
    return batch_signature(signatures(calls))


def signatures(calls: Sequence[SentCall]) -> list[str]:
    """The signature of each call."""
    return [call_signature(call.name, call.arguments) for call in calls]
