"""Which one document a question means: named by a chip or a filter, called by its title or its file's name, or the one
that was talked about.

Owns how sure one has to be: exactly one document has to fit, by its whole name or, for names of two words and more, as
the only one whose title holds them. What fits none or several is no document; of how many documents a name is the name
is told, so that it can be said. Called by `app.api.turn_whole` and `app.api.asked`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.rag.intents import WholeDocument
from app.store import chats, naming
from app.store.engine import Session
from app.store.scope import Scope

_ARTICLES = re.compile(
    r"(?:the|a|an|my|our|this|that|der|die|das|den|dem|des|el|la|los|las|le|les|l'|un|une|mein|meine|mi|mon|ma)\s+",
    re.IGNORECASE,
)
_KINDS = r"(?:document|doc|file|page|note|pdf|dokument|datei|documento|archivo|fichier|文档|文件)"
_KIND_BEFORE = re.compile(rf"{_KINDS}\s+(?:called\s+|named\s+)?", re.IGNORECASE)
_KIND_AFTER = re.compile(rf"\s+{_KINDS}$", re.IGNORECASE)
_QUOTES = "\"'“”„«»‘’`"


@dataclass(frozen=True, slots=True)
class Meant:
    """The document, and whether the question asks for the whole of it: a part of a document that is fixed otherwise
    ("summarise the part on backups") does not."""

    document_id: int
    whole: bool


def document_meant(
    session: Session, scope: Scope, intent: WholeDocument | None, fixed: Sequence[int], chat: tuple[int, int] | None
) -> Meant | None:
    """The document that a question means, None where none or several fit.

    Args:
        fixed: The documents that chips or filters name.
        chat: The chat and the message before which "it" was talked about.
    """
    if len(fixed) == 1:
        return Meant(fixed[0], intent is not None and _is_about(session, scope, intent, fixed[0]))
    if intent is None or fixed:
        return None
    if intent.names:
        found = next((one for name in intent.names if (one := _called(session, scope, name)) is not None), None)
    else:
        found = _talked_about(session, scope.user_id, chat) if intent.is_bare and chat is not None else None
    return None if found is None else Meant(found, whole=True)


def name_of_several(session: Session, scope: Scope, intent: WholeDocument) -> tuple[str, int] | None:
    """The name that a question calls its document by and how many documents have it, None unless there are several."""
    if any(_called(session, scope, name) is not None for name in intent.names):
        return None
    for variant in (variant for name in intent.names for variant in _variants(name)):
        _, total = naming.documents_called(session, scope.user_id, variant, scope.filters.collections)
        if total:
            return (variant, total) if total > 1 else None
    return None


def _is_about(session: Session, scope: Scope, intent: WholeDocument, document_id: int) -> bool:
    return not intent.names or any(_called(session, scope, name) == document_id for name in intent.names)


def _called(session: Session, scope: Scope, name: str) -> int | None:
    within = scope.filters.collections
    for variant in _variants(name):
        found, total = naming.documents_called(session, scope.user_id, variant, within)
        if total:
            return found[0].id if total == 1 else None
    words = _without_article(name)
    if len(re.findall(r"\w{3,}", words)) < 2:
        return None
    titled = naming.titled(session, scope.user_id, within, f'"{naming.phrase_of(words)}"')
    return titled[0][0] if len(titled) == 1 else None


def _variants(name: str) -> Iterator[str]:
    """The name as it stands, without article and kind ("the file …"), and as file names join words."""
    bare = _without_article(name)
    kindless = _KIND_AFTER.sub("", _KIND_BEFORE.sub("", bare, count=1)).strip(_QUOTES)
    for text in dict.fromkeys((name, bare, kindless)):
        if not text:
            continue
        yield text
        if " " in text:
            yield text.replace(" ", "-")
            yield text.replace(" ", "_")


def _without_article(name: str) -> str:
    return _ARTICLES.sub("", name, count=1).strip(_QUOTES) if _ARTICLES.match(name) else name.strip(_QUOTES)


def _talked_about(session: Session, user_id: int, chat: tuple[int, int] | None) -> int | None:
    """The one document that the last answer cites, or, where it cites none, the one it was given."""
    if chat is None:
        return None
    messages = chats.earlier_messages(session, user_id, chat[0], before_id=chat[1])
    last = next((message for message in reversed(messages) if message.role == "assistant"), None)
    if last is None:
        return None
    cited = _documents(row for row in last.sources if row.get("cited"))
    found = cited or _documents(last.sources)
    return next(iter(found)) if len(found) == 1 else None


def _documents(rows: Iterable[Mapping[str, Any]]) -> set[int]:
    return {int(row["document_id"]) for row in rows}
