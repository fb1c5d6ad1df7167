"""The built-in answerer: answers without a model, by quoting the sentences that fit best, word for word.

A `ChatFn` like any model: it is given messages, reads passages and question back from them, and streams an answer with
markers that pass the same checks. Wired by `app.main` where no endpoint is set. Deterministic; it understands nothing,
and its first sentence says so. What is chosen is `quote_choice`'s business, how it is written `quote_markup`'s.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from anyio.lowlevel import checkpoint

from app.catalog import Catalog
from app.rag.follow_ups import queries_for
from app.rag.pieces import ChatFn, ChatMessages, ContentFilter, StreamPiece
from app.rag.prompts import parse_documents, parse_history, parse_passages, parse_question
from app.rag.quote_choice import Quote, choose
from app.rag.quote_markup import quoted, quoted_code, quoted_row


@dataclass(frozen=True, slots=True)
class QuotingTexts:
    """What the answerer says in its own words.

    `opening` stands before quotes; `deflected` takes the number of documents searched; `nothing_to_read` is for an
    empty library, `no_sentence` for passages without one, `needs_model` for a question to be answered without
    documents.
    """

    opening: str
    deflected: Callable[[int], str]
    nothing_to_read: str
    no_sentence: str
    needs_model: str


def quoting_texts(catalog: Catalog) -> QuotingTexts:
    """The texts of `frontend/messages/<language>/answer.json`."""
    return QuotingTexts(
        opening=catalog.t("answer.no_model"),
        deflected=lambda documents: catalog.t("answer.deflected", n=documents),
        nothing_to_read=catalog.t("answer.nothing_to_read"),
        no_sentence=catalog.t("answer.no_sentence"),
        needs_model=catalog.t("answer.needs_model"),
    )


def make_quoting_chat(texts: QuotingTexts) -> ChatFn:
    """The answerer as a model. It streams sentence by sentence, ends with a usage piece (finish_reason `stop`, no
    token counts) and never fails."""

    async def chat(
        messages: ChatMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        content_filter: ContentFilter | None = None,
    ) -> AsyncGenerator[StreamPiece]:
        for part in await to_thread.run_sync(lambda: list(answer_parts(messages, texts))):
            text = content_filter.feed(part) if content_filter else part
            if text:
                yield StreamPiece("content", text)
            await checkpoint()
        if content_filter and (tail := content_filter.flush()):
            yield StreamPiece("content", tail)
        yield StreamPiece("usage", data={"prompt_tokens": None, "completion_tokens": None, "finish_reason": "stop"})

    return chat


def answer_parts(messages: ChatMessages, texts: QuotingTexts) -> Iterator[str]:
    """The answer in pieces of a sentence each; joined they are its Markdown."""
    passages = parse_passages(messages)
    if not passages:
        yield _without_passages(parse_documents(messages), texts)
        return
    question = parse_question(messages)
    groups = choose(question, queries_for(question, parse_history(messages))[0], passages)
    written = [parts for group in groups if (parts := [part for quote in group for part in _written(quote)])]
    if not written:
        yield texts.no_sentence
        return
    yield texts.opening
    for parts in written:
        in_paragraph = False
        for part, is_prose in parts:
            yield (" " if is_prose and in_paragraph else "\n\n") + part
            in_paragraph = is_prose


def _without_passages(documents: int | None, texts: QuotingTexts) -> str:
    if documents is None:
        return texts.needs_model
    return texts.deflected(documents) if documents else texts.nothing_to_read


def _written(quote: Quote) -> list[tuple[str, bool]]:
    """A quote's parts, and which of them are prose: those go on in one paragraph."""
    text, marker = quote.passage.text, f"[{quote.passage.n}]"
    words: list[str] = []
    parts: list[tuple[str, bool]] = []
    for unit in quote.units:
        source = text[unit.start : unit.end]
        if unit.kind == "code":
            parts.append((quoted_code(source, text, unit.start), False))
        elif line := quoted_row(source) if unit.kind == "row" else quoted(source):
            words.append(line)
    if words:
        parts.insert(0, (f"{' '.join(words)} {marker}", quote.units[0].kind == "prose"))
    else:
        parts.append((marker, False))
    return parts
