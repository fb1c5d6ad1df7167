"""The scaffolding filter: takes an answer as it streams, gives back what the reader may see. Pure.

Owns what happens from a start token on; the formats are data in `scaffolding_formats`. Logs nothing, calls nothing:
what was removed is recorded as `Strip`s, which `app.rag.llm` drains and logs. A fresh filter serves each request.

The result depends on the characters alone, never on how they were cut into chunks, and
`sum(len(chunk)) == len(visible) + stripped_chars` holds after `flush`. Memory is flat (64 KiB at most are held), time
is linear. The visible text is matched with what was removed taken out, so a removal cannot build a new token: at most
the longest token less one character is held back for that, and where the beginning of a rebuilt token was already
sent, the rest of it is dropped.
"""

import re

from app.rag.scaffolding_call import ECHO, LONGEST_END, OpenCall
from app.rag.scaffolding_formats import REGISTRY, Entry
from app.rag.scaffolding_shapes import (
    LOOKAHEAD,
    Found,
    JsonScan,
    Shape,
    body_shape,
    is_word_after_tag,
    json_shape,
    tag_shape,
)
from app.rag.scaffolding_visible import HOLD, Source, VisibleText


def _any_of(tokens: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True)))


_ENDS = {entry.name: _any_of(entry.ends) for entry in REGISTRY if entry.ends}
_FUNCTION_ENDS = _any_of(("</function>", "</tool_call>"))


class ScaffoldingFilter(VisibleText):
    """Removes leaked tool-call scaffolding from one reply: `feed` its chunks, then `flush`."""

    def __init__(self) -> None:
        super().__init__()
        self._open: OpenCall | None = None
        self.reset()

    def reset(self) -> None:
        """Forgets held text and state, for the next attempt at the same request. Counts stay."""
        if self._open is not None and self._open.terminated:
            self._close()
        self._clear()
        self._sources: list[Source] = []
        self._state = self._visible
        self._open = None

    def feed(self, text: str) -> str:
        """Takes a chunk, gives the text that may be shown now."""
        if self._open is None and not self._sources and self._is_plain(text):
            return text
        self._sources.append(Source(text))
        return self._run()

    def flush(self) -> str:
        """Ends the stream and gives what was held. An open call is dropped; a partial start token is given back."""
        shown = [self._run()]
        while self._open is not None:
            self._end_open(self._open)
            shown.append(self._run())
        self._release_held("")
        self._strip_turn_ends()
        shown.append(self._run())
        return "".join(shown)

    def _run(self) -> str:
        while self._sources:
            source = self._sources[-1]
            if source.at >= len(source.text):
                self._sources.pop()
            else:
                self._state(source)
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _begin(self, entry: Entry, token: str) -> None:
        self._open = OpenCall(entry, token, ends=_ENDS.get(entry.name))
        if entry.kind == "span":
            self._state = self._span
        elif entry.kind == "tag":
            self._state = self._tag
        elif entry.payload:
            self._state = self._payload
        else:
            self._open.terminated = True
            self._close()

    def _close(self, give_back: str = "", dead: frozenset[str] = frozenset()) -> None:
        """Records the open call as stripped and goes back to visible text, `give_back` first."""
        call = self._open
        assert call is not None
        self._record(call.entry, len(call.token) + call.count, call.token + call.head, terminated=call.terminated)
        self._open = None
        self._state = self._visible
        self._rejoin()
        if give_back:
            self._sources.append(Source(give_back, dead=dead))

    def _look(self, call: OpenCall, source: Source, limit: int) -> None:
        """Moves text from `source` to the call's lookahead, up to `limit` characters of it."""
        piece = source.text[source.at : source.at + limit - len(call.look)]
        source.at += len(piece)
        call.look += piece
        call.dead |= source.dead

    # -- tags: stripped only when a payload follows

    def _tag(self, source: Source) -> None:
        call = self._current()
        self._look(call, source, LOOKAHEAD)
        found = tag_shape(call.entry, call.look)
        if found.shape is Shape.UNKNOWN and len(call.look) < LOOKAHEAD:
            return
        if found.shape in (Shape.JSON, Shape.CALL):
            self._accept(call, found)
            return
        self._reject(call, found.at)

    def _reject(self, call: OpenCall, at: int) -> None:
        """Shows a tag that is no call, and what shares its fate; the rest goes through the filter."""
        self._open = None
        self._state = self._visible
        self._held += call.token + call.look[:at]
        self._release_held("")
        self._sources.append(Source(call.look[at:], dead=call.dead))

    def _accept(self, call: OpenCall, found: Found) -> None:
        rest = call.look[found.at :]
        call.take(call.look[: found.at])
        call.look = ""
        self._sources.append(Source(rest, dead=call.dead))
        if found.ended:
            self._end_payload(call)
        elif found.shape is Shape.JSON:
            call.json = JsonScan(call.entry.closers)
            self._state = self._json
        else:
            if rest.startswith("<function=") or call.entry.start == "<function=":
                call.ends = _FUNCTION_ENDS
            call.tail = ""
            self._state = self._body

    def _payload(self, source: Source) -> None:
        """Behind a standalone token that may open a JSON payload."""
        call = self._current()
        self._look(call, source, LOOKAHEAD)
        rest = call.look.lstrip()
        shape = json_shape(rest)
        if shape is Shape.JSON:
            self._accept(call, Found(Shape.JSON, len(call.look) - len(rest)))
        elif shape is Shape.NONE or len(call.look) >= LOOKAHEAD:
            call.terminated = True
            self._close(call.look, call.dead)

    def _json(self, source: Source) -> None:
        call = self._current()
        assert call.json is not None
        end = call.json.feed(source.text, source.at, len(source.text))
        stop = len(source.text) if end is None else end
        call.take(source.text[source.at : stop])
        source.at = stop
        if end is not None:
            self._end_payload(call)

    def _body(self, source: Source) -> None:
        call = self._current()
        end = call.find_end(source.text, source.at, len(source.text))
        stop = len(source.text) if end is None else end
        call.take(source.text[source.at : stop])
        source.at = stop
        if end is not None:
            self._end_payload(call)

    def _end_payload(self, call: OpenCall) -> None:
        call.terminated = True
        call.look = ""
        self._state = self._closers

    def _closers(self, source: Source) -> None:
        """Behind a payload: blanks and closers go with it, blanks alone stay."""
        call = self._current()
        self._look(call, source, LOOKAHEAD)
        blanks = len(call.look) - len(call.look.lstrip())
        rest = call.look[blanks:]
        for closer in call.entry.closers:
            if rest.startswith(closer):
                call.take(call.look[: blanks + len(closer)])
                self._sources.append(Source(rest[len(closer) :], dead=call.dead))
                call.look = ""
                return
        if len(call.look) >= LOOKAHEAD or not any(closer.startswith(rest) for closer in call.entry.closers):
            self._close(call.look, call.dead)

    # -- spans: stripped to their end token

    def _span(self, source: Source) -> None:
        call = self._current()
        if call.entry.name in source.dead and call.count == 0:
            look = source.text[source.at : source.at + LOOKAHEAD]
            if body_shape(call.entry, look, at_end=False) is Shape.NONE:
                self._close()
                return
        stop = len(source.text)
        if call.shape is not Shape.CALL:
            stop = min(stop, source.at + HOLD + 1 - call.held_chars)
        if call.entry.ends_by_begin and call.count < LONGEST_END:
            call.choose_end(call.head + source.text[source.at : source.at + LONGEST_END])
        end = call.find_end(source.text, source.at, stop)
        call.dead |= source.dead
        piece = source.text[source.at : stop if end is None else end]
        source.at += len(piece)
        call.take(piece)
        if end is not None:
            self._end_span(call)
        elif call.shape is not Shape.CALL:
            self._hold_body(call, piece)

    def _hold_body(self, call: OpenCall, piece: str) -> None:
        """Keeps a body that may have to be given back: its shape is unknown or no call's, or its JSON has ended."""
        if call.json is not None and call.shape is Shape.JSON:
            end = call.json.feed(piece, 0, len(piece))
            if end is None:
                return
            call.shape = Shape.NONE
            piece = piece[end:]
        if piece:
            call.hold(piece)
        if call.shape is Shape.UNKNOWN:
            call.shape = body_shape(call.entry, call.head, at_end=False)
            if call.shape in (Shape.CALL, Shape.JSON):
                held, call.held, call.held_chars = "".join(call.held), [], 0
                if call.shape is Shape.JSON:
                    call.json = JsonScan()
                    self._hold_body(call, held)
        if call.held_chars > HOLD:
            self._give_back(call)

    def _give_back(self, call: OpenCall) -> None:
        """Drops the start token, and JSON that has ended, and sends the rest of the body through the filter."""
        held = "".join(call.held)
        call.count -= len(held)
        call.head = call.head[: max(0, call.count)]
        self._close(held, call.dead | {call.entry.name})

    def _end_span(self, call: OpenCall) -> None:
        call.terminated = True
        if not call.entry.orphans and not call.entry.echo:
            self._close()
            return
        call.look = ""
        call.echo = call.head if call.entry.echo and len(call.head) == call.count <= ECHO else ""
        self._state = self._after

    def _after(self, source: Source) -> None:
        """Directly behind a span: its echo and orphan end tokens go with it."""
        call = self._current()
        known = tuple(token for token in (call.echo, *call.entry.orphans) if token)
        self._look(call, source, max(map(len, known)))
        for token in known:
            if call.look.startswith(token):
                call.take(token)
                self._sources.append(Source(call.look[len(token) :], dead=call.dead))
                call.look = ""
                return
        if not any(token.startswith(call.look) for token in known):
            self._close(call.look, call.dead)

    def _current(self) -> OpenCall:
        assert self._open is not None
        return self._open

    def _end_open(self, call: OpenCall) -> None:
        """The stream has ended inside `call`."""
        if self._state == self._span:
            if call.shape is Shape.UNKNOWN:
                call.shape = body_shape(call.entry, call.head, at_end=True)
            if call.shape is Shape.NONE and call.held_chars:
                self._give_back(call)
            else:
                self._close()
        elif self._state == self._tag and is_word_after_tag(call.entry, call.look):
            self._reject(call, 0)
        elif self._state == self._tag or (self._state == self._payload and call.look.strip()):
            call.take(call.look)
            self._close()
        else:
            self._close(call.look)
