"""What a question asks and where: the texts and filters that its turn goes by.

Owns which chips of an earlier question still hold, and how chips are told to frames, numbers and pages. Resolving them
is `chip_reading.py`'s. Called once per turn by `app.api.turn_start`, for chats and for `/v1` alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from app.api.chip_reading import ChipReader, Found, Remark
from app.api.document_meant import name_of_several
from app.catalog import Catalog
from app.rag.chips import Chip, in_words, searched_text
from app.rag.follow_ups import leans
from app.rag.intents import WholeDocument, read_intent
from app.rag.prompts import PastTurn
from app.store import naming
from app.store.engine import Session
from app.store.naming import NamedDocument
from app.store.scope import Scope, SearchFilters


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as its turn reads it.

    `question_plain` is what the model is asked, `history` the talk before it in the same words; `query` is what is
    searched for, `past` the talk as the search reads it. `named_documents` are those of `@name` chips or else of the
    request, by path.
    """

    question_plain: str
    query: str
    filters: SearchFilters
    named_documents: tuple[NamedDocument, ...] = ()
    chips: tuple[Chip, ...] = ()
    history: tuple[PastTurn, ...] = ()
    past: tuple[PastTurn, ...] = ()
    remarks: tuple[Remark, ...] = ()


def read_asked(
    session: Session, user_id: int, question: str, scope: SearchFilters, history: Sequence[PastTurn], today: date
) -> Asked:
    """Reads the question's marks.

    Chips narrow `scope`. Those of one kind add up (two documents: either), kinds narrow each other. A question that
    leans on the talk and has no chip of its own is asked of what the question it leans on was asked of.
    """
    reader = ChipReader(session, user_id, scope, today)
    own = reader.read(question)
    earlier = [reader.read(turn.question) for turn in reversed(history)][::-1]
    found = own
    if not own.chips and not own.remarks and leans(question):
        found = _carried(history, earlier)
    requested = naming.documents_of(session, user_id, (scope.documents or ())[: naming.NAMED_MAX])
    plain, filters = in_words(question, own.chips), reader.filters(found)
    named = found.documents or tuple(requested)
    return Asked(
        question_plain=plain,
        query=searched_text(question, own.chips),
        filters=filters,
        named_documents=named,
        chips=found.chips,
        past=_talk(history, earlier, searched_text),
        history=_talk(history, earlier, in_words),
        remarks=(
            *found.remarks,
            *(_not_ready(named) if named else _ambiguous(session, Scope(user_id, filters), plain)),
        ),
    )


def chip_rows(catalog: Catalog, chips: Sequence[Chip]) -> list[dict[str, Any]]:
    """The chips as frames, numbers and pages have them: `kind`, `label` in words, `carried`."""
    rows: list[dict[str, Any]] = []
    for chip in chips:
        key = f"chat.chip_{chip.kind}"
        label = catalog.t(key, name=chip.label) if catalog.has(key) else chip.label
        rows.append({"kind": chip.kind, "label": label, "carried": chip.carried})
    return rows


def remark_words(catalog: Catalog, remark: Remark) -> str:
    """The sentence of a remark."""
    return catalog.t(f"notices.{remark.code}", name=remark.name, n=remark.n)


def asked_facts(catalog: Catalog, asked: Asked) -> Mapping[str, Any]:
    """What the turn's numbers keep: what it was asked of, in words and as filters, and what was said about it."""
    remarks = [{"code": remark.code, "name": remark.name, "n": remark.n} for remark in asked.remarks]
    return {"chips": chip_rows(catalog, asked.chips), "filters": filter_facts(asked.filters), "remarks": remarks}


def filter_facts(filters: SearchFilters) -> Mapping[str, Any]:
    """What was in effect, for the turn's numbers: only the filters that were set."""
    set_ones = {
        "collections": filters.collections,
        "documents": filters.documents,
        "path": filters.path,
        "types": filters.types,
        "since": filters.since.isoformat() if filters.since else None,
        "until": filters.until.isoformat() if filters.until else None,
    }
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in set_ones.items()
        if value is not None
    }


def _carried(history: Sequence[PastTurn], earlier: Sequence[Found]) -> Found:
    """The chips of the newest question that has any, as far back as each question leans on the one before it."""
    for turn, found in zip(reversed(history), reversed(earlier), strict=True):
        if found.chips:
            return replace(found, chips=tuple(replace(chip, start=0, end=0, carried=True) for chip in found.chips))
        if not leans(turn.question):
            break
    return Found()


def _talk(
    history: Sequence[PastTurn], earlier: Sequence[Found], text_of: Callable[[str, Sequence[Chip]], str]
) -> tuple[PastTurn, ...]:
    return tuple(
        PastTurn(text_of(turn.question, found.chips), turn.answer) for turn, found in zip(history, earlier, strict=True)
    )


def _ambiguous(session: Session, scope: Scope, question: str) -> list[Remark]:
    """Says that what a question wants the whole of is the name of several documents, so that it is none of them."""
    intent = read_intent(question)
    found = name_of_several(session, scope, intent) if isinstance(intent, WholeDocument) else None
    return [] if found is None else [Remark("name_of_several", *found)]


def _not_ready(documents: Sequence[NamedDocument]) -> list[Remark]:
    """Says which named documents can't be searched."""
    remarks: list[Remark] = []
    for row in documents:
        if row.status == "failed":
            remarks.append(Remark("chip_failed", row.path))
        elif not row.chars and row.status in ("queued", "parsing"):
            remarks.append(Remark("chip_waiting", row.path))
    return remarks
