"""How well passages fit what answers a question: ours beside fixed windows and the recursive splitter.

    python -m tests.bench.chunking_evaluation [--out FILE] [--corpora] [--words]

Five texts and 472 questions, each with the very spans that answer it (`tests.bench.span_scores` has the measures; all
are means over the questions). The five best passages of all five texts are held against the spans of each question:
by words (BM25, with the tokenizer and the stop words of the app) and, as published, by the vectors of the built-in
embedder; `--words` leaves those out, which take minutes. Our passages are found as in the app, below their title and
headings. Sizes are estimated tokens (`app.ingest.cutting`); `same_size` baselines have the mean size that ours have on
these texts, and `_se` is the standard error of a difference. `--corpora` adds the means of each text. Prints
`name value limit`.
"""

import argparse
import csv
import json
import sqlite3
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.ingest.chunking import chunk, embedded_text
from app.ingest.extract.dispatch import SizeLimits, extract
from app.search.words import Words
from tests.bench import plain_chunkers as plain
from tests.bench.embedding_cache import CachedEmbedder
from tests.bench.search_library import SHARED
from tests.bench.span_scores import Passage, Question, omega, overlap

FOLDER = SHARED / "ir" / "chunking_evaluation"
FOUND = 5
SCORES = ("recall", "precision", "iou", "omega")
RIVALS = ("fixed_same_size", "recursive_same_size")

Scores = npt.NDArray[np.float64]
"""A row of `SCORES` for each question."""

Ranking = Callable[[Sequence[Passage]], Iterator[list[Passage]]]
"""For each question the passages that are found."""


def main() -> int:
    """Measures all; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--corpora", action="store_true")
    parser.add_argument("--words", action="store_true")
    arguments = parser.parse_args()
    if not FOLDER.is_dir():
        print("the chunking evaluation is not here: nothing measured", file=sys.stderr)
        return 1
    results: list[dict[str, Any]] = []
    for result in measured(arguments.words, arguments.corpora):
        limit = "-" if result["limit"] is None else f">= {result['limit']}"
        print(result["name"], f"{result['value']:.4f}", limit, flush=True)
        results.append(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["limit"] is not None and result["value"] < result["limit"] for result in results))


def measured(only_words: bool, with_corpora: bool) -> Iterator[dict[str, Any]]:
    """The sizes of all, then what each way of finding makes of them."""
    texts, asked = corpora(), questions()
    ours = our_passages(texts)
    size = mean_size(texts, ours)
    cut = {"ours": ours, **dict(baselines(texts, size))}
    for name, passages in cut.items():
        yield _result(f"{name}_passages", len(passages))
        yield _result(f"{name}_tokens", mean_size(texts, passages))
    yield from _compared("words", by_words(asked), asked, cut, with_corpora)
    if only_words:
        return
    embedder = CachedEmbedder()
    yield from _compared("vectors", by_vectors(asked, embedder), asked, cut, with_corpora)
    embedder.close()


def corpora() -> dict[str, str]:
    """The texts by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}


def questions() -> list[Question]:
    """The questions, in order."""
    with open(FOLDER / "questions_df.csv", encoding="utf-8", newline="") as file:
        rows = [(row["question"], row["corpus_id"], json.loads(row["references"])) for row in csv.DictReader(file)]
    return [
        Question(text, corpus, tuple((int(one["start_index"]), int(one["end_index"])) for one in references))
        for text, corpus, references in rows
    ]


def our_passages(texts: dict[str, str]) -> list[Passage]:
    """What the app makes of the files, in places of the texts as they are."""
    passages: list[Passage] = []
    for corpus, text in texts.items():
        extraction = extract(FOLDER / f"{corpus}.md", f"{corpus}.md", SizeLimits())
        places = _Places(text, extraction.text)
        passages += [
            Passage(
                corpus,
                (places.of(draft.char_start), places.of(draft.char_end)),
                embedded_text(extraction.title, draft.heading, draft.text),
            )
            for draft in chunk(extraction)
        ]
    return passages


def baselines(texts: dict[str, str], size: float) -> Iterator[tuple[str, list[Passage]]]:
    """Those that are known by their size, and those of the same mean size as ours."""
    for tokens in (400, 800):
        yield f"fixed_{tokens}", _cut(texts, plain.fixed(tokens))
        yield f"recursive_{tokens}", _cut(texts, plain.recursive(tokens))
    yield "fixed_same_size", _cut(texts, plain.fixed(round(size)))
    yield "recursive_same_size", _recursive_of_mean(texts, size)


def _recursive_of_mean(texts: dict[str, str], size: float) -> list[Passage]:
    """The recursive splitter with the limit that brings its mean nearest to `size`: the mean grows with the limit."""
    low, high = round(size), round(size * 2)
    tried: list[list[Passage]] = []
    while low <= high:
        middle = (low + high) // 2
        tried.append(_cut(texts, plain.recursive(middle)))
        if mean_size(texts, tried[-1]) < size:
            low = middle + 1
        else:
            high = middle - 1
    return min(tried, key=lambda passages: abs(mean_size(texts, passages) - size))


def mean_size(texts: dict[str, str], passages: Sequence[Passage]) -> float:
    """The mean of the passages' estimated tokens."""
    sums = [
        plain.total_tokens(text, [passage.span for passage in passages if passage.corpus == corpus])
        for corpus, text in texts.items()
    ]
    return sum(sums) / len(passages)


def by_words(asked: Sequence[Question]) -> Ranking:
    """The best by BM25 of any of a question's words."""
    words = Words()
    any_of = [" OR ".join(f'"{term.word}"' for term in words.question_terms(one.text)) for one in asked]

    def found(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
        index = sqlite3.connect(":memory:")
        index.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')")
        index.executemany("INSERT INTO t(rowid, text) VALUES (?, ?)", enumerate(one.text for one in passages))
        query = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t), rowid LIMIT ?"
        for expression in any_of:
            yield [passages[row] for (row,) in index.execute(query, (expression, FOUND))] if expression else []
        index.close()

    return found


def by_vectors(asked: Sequence[Question], embedder: CachedEmbedder) -> Ranking:
    """The nearest by cosine."""
    vectors = np.stack([embedder.embed_query(question.text) for question in asked])

    def found(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
        matrix = embedder.embed_passages([passage.text for passage in passages])
        for row in np.argsort(-(vectors @ matrix.T), axis=1, kind="stable")[:, :FOUND]:
            yield [passages[place] for place in row]

    return found


def scored(asked: Sequence[Question], passages: Sequence[Passage], ranking: Ranking) -> Scores:
    """The scores of a way of cutting by a way of finding."""
    rows = zip(asked, ranking(passages), strict=True)
    return np.array([[*overlap(question, found), omega(question, passages)] for question, found in rows])


def _compared(
    way: str, ranking: Ranking, asked: Sequence[Question], cut: dict[str, list[Passage]], with_corpora: bool
) -> Iterator[dict[str, Any]]:
    """The means of all by one way of finding, and by how much ours are better than those of the same size."""
    scores: dict[str, Scores] = {}
    for name, passages in cut.items():
        scores[name] = scored(asked, passages, ranking)
        yield from _means(f"{way}_{name}", scores[name])
        for corpus in sorted({question.corpus for question in asked}) if with_corpora else ():
            rows = [question.corpus == corpus for question in asked]
            yield from _means(f"{way}_{name}_{corpus}", scores[name][rows])
    for name in RIVALS:
        gain = (scores["ours"] - scores[name])[:, SCORES.index("iou")]
        yield _result(f"{way}_ours_iou_above_{name}", gain.mean(), 0)
        yield _result(f"{way}_ours_iou_above_{name}_se", gain.std(ddof=1) / len(gain) ** 0.5)


def _means(name: str, scores: Scores) -> Iterator[dict[str, Any]]:
    for score, value in zip(SCORES, scores.mean(axis=0), strict=True):
        yield _result(f"{name}_{score}", value)


def _cut(texts: dict[str, str], cutter: plain.Cutter) -> list[Passage]:
    return [
        Passage(corpus, (start, end), text[start:end]) for corpus, text in texts.items() for start, end in cutter(text)
    ]


class _Places:
    """From the canonical text, whose lines lost only white space at their ends, back to the text."""

    def __init__(self, text: str, canonical: str) -> None:
        lines, kept = text.split("\n"), canonical.split("\n")
        if any(line.rstrip() != other.rstrip() for line, other in zip(lines, kept, strict=True)):
            raise ValueError("extraction changed more than the ends of lines")
        self._lines = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._kept = list(accumulate((len(line) + 1 for line in kept), initial=0))

    def of(self, place: int) -> int:
        """Where a character of the canonical text stands in the text."""
        line = bisect_right(self._kept, place) - 1
        return self._lines[line] + place - self._kept[line]


def _result(name: str, value: float, limit: float | None = None) -> dict[str, Any]:
    return {"name": name, "value": float(value), "limit": limit}


if __name__ == "__main__":
    sys.exit(main())
