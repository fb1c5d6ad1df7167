"""How well search finds: SciFact (nDCG@10) and the homelab questions (recall@5), by words alone and hybrid.

    python -m tests.bench.search_quality [--out FILE] [--curve]

Prints `name value limit`. Passages are embedded once and kept under `data/bench`; the first run takes minutes.
"""

import argparse
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from app.search.hits import Hit
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.store.engine import Database
from app.store.migrate import migrate
from tests.bench import search_library as library
from tests.bench.embedding_cache import CachedEmbedder

OFF_TOPIC = (
    "What is the capital of France?",
    "How do I bake sourdough bread?",
    "Who won the world cup in 1998?",
    "What is the best treatment for a cold?",
    "Explain quantum entanglement",
    "When does the zoo open on Sundays?",
    "purple elephants dancing",
)
"""Questions that have nothing to do with the homelab corpus."""

Search = Callable[[str], list[Hit]]
SILENT = "no such model"


class NoEmbedder(CachedEmbedder):
    """Its model is not that of the vectors, so words alone serve."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SILENT


def main() -> int:
    """Runs both sets; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--curve", action="store_true", help="print the grounded/deflected curve over the score")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    if not library.SCIFACT.is_dir() or not library.HOMELAB.is_dir():
        print("the shared document sets are not here: nothing measured", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        results += scifact(Path(folder))
        results += homelab(Path(folder), arguments.curve)
    for result in results:
        print(result["name"], f"{result['value']:.4f}", "-" if result["limit"] is None else f">= {result['limit']}")
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["limit"] is not None and result["value"] < result["limit"] for result in results))


def scifact(folder: Path) -> list[dict[str, Any]]:
    """nDCG@10 over the 300 test queries; a document counts at its best chunk."""
    relevant: dict[str, dict[str, int]] = {}
    for line in (library.SCIFACT / "qrels_test.tsv").read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        relevant.setdefault(query, {})[document] = int(grade)
    lines = (library.SCIFACT / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = {record["_id"]: record["text"] for record in map(json.loads, lines) if record["_id"] in relevant}
    hybrid, words = _searchers(folder / "scifact.db", library.scifact(), k=30)
    return [
        _result(f"scifact_ndcg10_{name}", _mean(ndcg10(search(queries[q]), relevant[q]) for q in queries), limit)
        for name, search, limit in (("hybrid", hybrid, 0.73), ("fulltext", words, 0.68))
    ]


def homelab(folder: Path, curve: bool) -> list[dict[str, Any]]:
    """Recall@5 of the answer's document and of the passage itself, over the questions that have an answer."""
    hybrid, words = _searchers(folder / "homelab.db", library.homelab(), k=12)
    questions = library.questions()
    answerable = [question for question in questions if question["answer_docs"]]
    results: list[dict[str, Any]] = []
    for name, search in (("hybrid", hybrid), ("fulltext", words)):
        found = {question["id"]: search(asked(question)) for question in questions}
        documents = [_has_document(found[question["id"]][:5], question) for question in answerable]
        passages = [_has_passage(found[question["id"]][:5], question) for question in answerable]
        results.append(_result(f"homelab_document_recall5_{name}", _mean(documents), None))
        results.append(_result(f"homelab_passage_recall5_{name}", _mean(passages), None))
        if name == "hybrid":
            top = {key: max((hit.score for hit in hits), default=0.0) for key, hits in found.items()}
            yes = sorted(top[question["id"]] for question in answerable)
            no = sorted(top[question["id"]] for question in questions if not question["answer_docs"])
            if curve:
                off = [max((hit.score for hit in search(question)), default=0.0) for question in OFF_TOPIC]
                print_curve(yes, no, off)
            for kind in sorted({question["kind"] for question in answerable}):
                of_kind = [_has_document(found[q["id"]][:5], q) for q in answerable if q["kind"] == kind]
                results.append(_result(f"homelab_document_recall5_hybrid_{kind}", _mean(of_kind), None))
    return results


def asked(question: dict[str, Any]) -> str:
    """A follow-up is searched with the question before it, as the turn does; the others as they are."""
    before = [turn["content"] for turn in question.get("history", ()) if turn["role"] == "user"]
    return " ".join([*before[-1:], question["question"]])


def print_curve(answerable: list[float], unanswerable: list[float], off_topic: list[float]) -> None:
    """For each threshold: answerable questions that would be grounded, unanswerable and off-topic ones that would be
    deflected."""
    print("threshold grounded_of_answerable deflected_of_unanswerable deflected_of_off_topic")
    for step in range(20, 101, 5):
        threshold = step / 100
        grounded = _mean(score >= threshold for score in answerable)
        deflected = _mean(score < threshold for score in unanswerable)
        print(f"{threshold:.2f} {grounded:.3f} {deflected:.3f} {_mean(score < threshold for score in off_topic):.3f}")


def ndcg10(hits: list[Hit], relevant: dict[str, int]) -> float:
    """Normalised discounted cumulative gain of the first ten distinct documents."""
    documents = list(dict.fromkeys(hit.path for hit in hits))[:10]
    gain = sum(relevant.get(path, 0) / math.log2(place + 2) for place, path in enumerate(documents))
    ideal = sorted(relevant.values(), reverse=True)[:10]
    return gain / sum(grade / math.log2(place + 2) for place, grade in enumerate(ideal))


def _searchers(path: Path, sources: Iterable[library.Source], k: int) -> tuple[Search, Search]:
    database = Database(f"sqlite:///{path}")
    migrate(database)
    embedder = CachedEmbedder()
    library.fill(database, sources, embedder)
    hybrid = Searcher(database, embedder, VectorIndex())
    words = Searcher(database, NoEmbedder(), VectorIndex())
    return (
        lambda query: hybrid.search(query, user_id=1, k=k),
        lambda query: words.search(query, user_id=1, k=k),
    )


def _has_document(hits: list[Hit], question: dict[str, Any]) -> bool:
    paths = {hit.path for hit in hits}
    wanted = set(question["answer_docs"])
    return wanted <= paths if question["kind"] == "multi_doc" else bool(wanted & paths)


def _has_passage(hits: list[Hit], question: dict[str, Any]) -> bool:
    wanted = question.get("answer_passages") or [question["answer_passage"]]
    texts = [_plain(f"{hit.heading} {hit.text}") for hit in hits]
    return all(any(_plain(passage) in text for text in texts) for passage in wanted)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[*_`]", "", text)).strip()


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _result(name: str, value: float, limit: float | None) -> dict[str, Any]:
    return {"name": name, "value": value, "limit": limit}


if __name__ == "__main__":
    raise SystemExit(main())
