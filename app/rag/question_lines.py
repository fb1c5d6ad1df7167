"""Saved questions as lines of a questions file and back: the format of `docent eval`. Pure.

A line holds what `docent eval` reads (question, kind, answer_docs, answer_passage or answer_passages with `needs`,
history) and, in `passages`, what is lost there: collections and places. Called by the API and the evaluation page.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.errors import InvalidInputError
from app.rag.evaluate import Names
from app.rag.evaluation import Question, parse_questions
from app.rag.pieces import storable
from app.store.eval_questions import EvalQuestion, NewQuestion, PastQuestion, RightPassage

_SHOWN_LINES = 5
_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
"""Characters that JSON lets stand and that readers of lines take for an end."""


def as_line(question: EvalQuestion) -> str:
    """One line, without its end."""
    quotes = [passage.quote for passage in question.passages if passage.quote]
    fields: dict[str, Any] = {
        "id": f"saved-{question.id}",
        "question": question.question,
        "kind": question.kind,
        "answer_docs": list(dict.fromkeys(passage.path for passage in question.passages)),
    }
    if len(quotes) > 1:
        fields |= {"answer_passages": quotes, "needs": "all" if question.needs_all else "any"}
    elif quotes:
        fields["answer_passage"] = quotes[0]
    if question.history:
        fields["history"] = [
            {"role": role, "content": text}
            for past in question.history
            for role, text in (("user", past.question), ("assistant", past.answer))
        ]
    if question.passages:
        fields["passages"] = [
            {
                "collection": passage.collection,
                "path": passage.path,
                "char_start": passage.char_start,
                "char_end": passage.char_end,
                "quote": passage.quote,
            }
            for passage in question.passages
        ]
    return json.dumps(fields, ensure_ascii=False).translate(_LINE_ENDS)


def parse_lines(text: str, paths: Sequence[str], max_chars: int) -> list[NewQuestion]:
    """The questions of a file, blank lines left out; documents under the library's own paths where they are in it.

    Args:
        paths: Those of the library's documents.
        max_chars: The longest question that can be asked.

    Raises:
        InvalidInputError: `eval_file_empty`, or `eval_lines_invalid` with the numbers of all lines that are no
            questions.
    """
    names = Names(paths)
    found: list[NewQuestion] = []
    wrong: list[int] = []
    for number, line in enumerate(storable(text).removeprefix("\ufeff").splitlines(), 1):
        if not line.strip():
            continue
        try:
            (question,) = parse_questions([line], "saved")
            new = _new(question, json.loads(line), names)
            if len(new.question) > max_chars:
                raise ValueError("too long")
            found.append(new)
        except (ValueError, KeyError, TypeError, AttributeError):
            wrong.append(number)
    if wrong:
        shown = ", ".join(map(str, wrong[:_SHOWN_LINES])) + (" …" if len(wrong) > _SHOWN_LINES else "")
        raise InvalidInputError("eval_lines_invalid", params={"lines": shown, "n": len(wrong)})
    if not found:
        raise InvalidInputError("eval_file_empty")
    return found


def _new(question: Question, fields: Mapping[str, Any], names: Names) -> NewQuestion:
    listed: list[Mapping[str, Any]] = list(fields.get("passages") or ())
    exact = tuple(_exact(passage) for passage in listed)
    return NewQuestion(
        question=question.text,
        kind=question.kind,
        history=tuple(PastQuestion(past.question, past.answer) for past in question.history),
        passages=exact or _named(question, names),
        needs_all=question.needs_all,
    )


def _named(question: Question, names: Names) -> tuple[RightPassage, ...]:
    """What a line names by paths: with `needs_all` a passage in each, else one in the first document, or anywhere."""
    paths = [names.path_of(name) or name for name in question.documents]
    if question.needs_all and len(paths) == len(question.passages):
        pairs = zip(paths, question.passages, strict=True)
        return tuple(RightPassage(None, path, quote=quote) for path, quote in pairs)
    if not paths:
        return ()
    quoted = [RightPassage(None, paths[0], quote=quote) for quote in question.passages]
    return (*quoted, *(RightPassage(None, path) for path in paths[1 if quoted else 0 :]))


def _exact(fields: Mapping[str, Any]) -> RightPassage:
    start, end = fields.get("char_start"), fields.get("char_end")
    placed = isinstance(start, int) and isinstance(end, int) and 0 <= start < end
    collection = fields.get("collection")
    return RightPassage(
        collection=None if collection is None else str(collection),
        path=str(fields["path"]),
        char_start=start if placed else None,
        char_end=end if placed else None,
        quote=str(fields.get("quote") or ""),
    )
