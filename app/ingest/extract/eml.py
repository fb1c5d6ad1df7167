"""Mail: subject, people and date, then what was written, then each attachment's text under its name.

Called by `dispatch` in the extraction child, which gives it the way to read an attachment. Attached messages are read
like attachments. What could not be read is named at the end with the reason, so that nobody takes it for read.
"""

import binascii
import email
import email.policy
import re
from collections.abc import Callable, Iterator
from email.message import Message
from email.utils import parsedate_to_datetime

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.decode import decode, normalise
from app.ingest.extract.found import Found, assembled, heading
from app.ingest.extract.html import content_of
from app.ingest.extract.plain import extract_plain

MIME = "message/rfc822"
MAX_BYTES = 100 * 1024 * 1024
MAX_PARTS = 2_000
MAX_ATTACHMENTS = 100
MAX_DEPTH = 4
"""Messages within messages that are still read."""

ReadPart = Callable[[bytes, str], Extraction]
"""Reads an attachment's bytes under its name. Raises IngestError."""

_MAX_NAMED = 200
_SHOWN = ("From", "To", "Cc", "Date")
_REASONS = {
    "unsupported": "not a kind that is read",
    "encrypted": "needs a password",
    "empty": "empty",
    "no_text": "no text in it",
    "too_long": "too long",
}
_LOCKED = frozenset({"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"})
_SILENT = frozenset({"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"})
"""Parts that no reader of mail shows."""
_ENCODED = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_BETWEEN = re.compile(r"(\?=)\s+(?==\?)")
"""White space between two encoded words is none of the text."""
_FULLER = 4
"""How many times more text the HTML part has when the plain one is only a notice to look at it."""


def extract_eml(data: bytes, read_part: ReadPart) -> Extraction:
    """Reads a message. Title: its subject.

    Raises:
        IngestError: encrypted, no_text, corrupt, or too_long for more than `MAX_BYTES` or `MAX_PARTS` parts.
    """
    if len(data) > MAX_BYTES:
        raise IngestError("too_long")
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    mail = _Mail(read_part)
    found = list(mail.message(message, 1))
    if mail.unread:
        lines = [f"- {line}" for line in mail.unread[:_MAX_NAMED]]
        if len(mail.unread) > _MAX_NAMED:
            lines.append(f"- and {len(mail.unread) - _MAX_NAMED} more")
        found += [heading(2, "Not read"), Found("list", 0, "\n".join(lines))]
    if not any(block.kind != "heading" for block in found):
        raise IngestError("no_text")
    text, blocks = assembled(found)
    return Extraction(text, _subject(message), MIME, mail.encoding, None, None, blocks)


class _Mail:
    """One file of mail while it is read: what is left of its limits, and what was left out."""

    def __init__(self, read_part: ReadPart) -> None:
        self._read_part = read_part
        self._parts_left = MAX_PARTS
        self._attachments_left = MAX_ATTACHMENTS
        self.unread: list[str] = []
        self.encoding: str | None = None

    def message(self, message: Message, depth: int) -> Iterator[Found]:
        """A message's blocks; its subject is a heading of level `depth`."""
        subject = _subject(message)
        if subject:
            yield heading(depth, subject)
        people = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
        if people:
            yield Found("paragraph", 0, "\n".join(people))
        bodies, attached = self._sorted(message)
        if message.get_content_type() in _LOCKED and not bodies:
            raise IngestError("encrypted")
        for body in bodies:
            yield from body
        for part in attached:
            yield from self._attachment(part, depth)

    def _sorted(self, message: Message) -> tuple[list[list[Found]], list[Message]]:
        """What is to be read as the message itself, and what hangs on it. No recursion: parts nest as they like."""
        bodies: list[list[Found]] = []
        attached: list[Message] = []
        stack = [message]
        while stack:
            part = stack.pop()
            self._parts_left -= 1
            if self._parts_left < 0:
                raise IngestError("too_long")
            kind = part.get_content_type()
            if kind == "multipart/alternative":
                chosen, others = self._alternative(part)
                bodies.append(chosen)
                stack.extend(reversed(others))
            elif part.is_multipart() and kind != MIME:
                stack.extend(reversed(_children(part)))
            elif _is_body(part):
                bodies.append(self._body(part))
            elif kind not in _SILENT:
                attached.append(part)
        return bodies, attached

    def _alternative(self, part: Message) -> tuple[list[Found], list[Message]]:
        """The fuller one of plain text and HTML, the plain one where both say the same; and the parts beside them."""
        versions: dict[str, list[Found]] = {}
        others: list[Message] = []
        for inner in _children(part):
            kind = inner.get_content_type()
            if kind == "multipart/related" and _children(inner):
                first, *rest = _children(inner)
                inner, kind = first, first.get_content_type()
                others.extend(rest)
            if _is_body(inner) and kind not in versions:
                versions[kind] = self._body(inner)
            else:
                others.append(inner)
        plain, html = versions.get("text/plain", []), versions.get("text/html", [])
        return (html if _size(html) > _FULLER * _size(plain) else plain), others

    def _body(self, part: Message) -> list[Found]:
        text, encoding = decode(_payload(part), part.get_content_charset())
        self.encoding = self.encoding or encoding
        if part.get_content_type() == "text/html":
            return content_of(text)[1]
        return [Found(block.kind, 0, block.text) for block in extract_plain(text, encoding, "body.log").blocks]

    def _attachment(self, part: Message, depth: int) -> Iterator[Found]:
        name = _name(part)
        is_message = part.get_content_type() == MIME
        if not is_message and part.get("Content-ID") and part.get_content_maintype() == "image":
            return
        self._attachments_left -= 1
        if self._attachments_left < 0 or (is_message and depth >= MAX_DEPTH):
            self.unread.append(f"{name}: one too many")
            return
        if is_message:
            yield from self._nested(part, name, depth)
            return
        try:
            extraction = self._read_part(_payload(part), name)
        except IngestError as error:
            self.unread.append(f"{name}: {_REASONS.get(error.reason, 'damaged')}")
            return
        yield heading(depth + 1, name)
        yield from _lowered(extraction, depth + 1)

    def _nested(self, part: Message, name: str, depth: int) -> Iterator[Found]:
        inner = _children(part)
        if not inner:
            self.unread.append(f"{name}: empty")
            return
        try:
            blocks = list(self.message(inner[0], depth + 1))
        except IngestError as error:
            if error.reason != "encrypted":
                raise
            self.unread.append(f"{name}: {_REASONS['encrypted']}")
            return
        if blocks and blocks[0].kind != "heading":
            yield heading(depth + 1, name)
        yield from blocks


def _is_body(part: Message) -> bool:
    is_text = part.get_content_type() in ("text/plain", "text/html")
    return is_text and part.get_content_disposition() != "attachment" and part.get_filename() is None


def _children(part: Message) -> list[Message]:
    payload = part.get_payload() if part.is_multipart() else []
    return [inner for inner in payload if isinstance(inner, Message)]


def _payload(part: Message) -> bytes:
    try:
        data: object = part.get_payload(decode=True)
    except (ValueError, LookupError):
        data = None
    return data if isinstance(data, bytes) else b""


def _name(part: Message) -> str:
    """What an attachment is called, on one line; a message without a name by its subject."""
    name = part.get_filename()
    if not name and part.get_content_type() == MIME:
        inner = _children(part)
        name = _subject(inner[0]) if inner else ""
    return _decoded(name or "") or f"attachment ({part.get_content_type()})"


def _subject(message: Message) -> str:
    return _header(message, "Subject")


def _header(message: Message, name: str) -> str:
    """A header as text on one line; a date as day, time and offset."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    text = _decoded(str(raw))
    if name == "Date":
        try:
            return parsedate_to_datetime(text).strftime("%Y-%m-%d %H:%M %z").strip()
        except (ValueError, TypeError, OverflowError):
            return text
    return text


def _decoded(raw: str) -> str:
    """A header's words: encoded ones decoded, raw bytes guessed. Never raises."""
    text, _ = decode(raw.encode("utf-8", "surrogateescape"))
    parts = _ENCODED.split(_BETWEEN.sub(r"\1", text))
    words = [parts[0]]
    for charset, how, coded, behind in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
        words += [_word(charset, how, coded), behind]
    return " ".join(normalise("".join(words)).split())


def _word(charset: str, how: str, coded: str) -> str:
    try:
        if how in "bB":
            data = binascii.a2b_base64(coded + "=" * (-len(coded) % 4))
        else:
            data = binascii.a2b_qp(coded, header=True)
    except ValueError:
        return coded
    for codec in (charset.partition("*")[0], "utf-8"):
        try:
            return data.decode(codec)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("cp1252", "replace")


def _size(blocks: list[Found]) -> int:
    return sum(len(block.text) for block in blocks)


def _lowered(extraction: Extraction, level: int) -> Iterator[Found]:
    """An attachment's blocks below its name; fences are taken off, since writing puts them on."""
    for block in extraction.blocks:
        if block.kind == "heading":
            yield heading(level + block.level, block.label or block.text)
        elif block.kind == "code" and block.text.startswith("```"):
            yield Found("code", 0, block.text.partition("\n")[2].rpartition("\n")[0])
        else:
            yield Found(block.kind, 0, block.text)
