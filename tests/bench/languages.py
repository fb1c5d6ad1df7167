"""How well questions in one language find passages in another.

    python -m tests.bench.languages [--out FILE] [--questions N]

XQuAD's English paragraphs, each a document, asked its questions in German and in English through the app's own search,
with the built-in English embedder and with the multilingual one (`scripts/setup --multilingual`): how often the right
paragraph comes first, how often the question would be answered from the documents at all, and the floor that the rule
finds for the embedder, whose texts are its own. Prints `name value limit`; without the extra or the set it says so and
fails.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.ingest.chunking import chunk
from app.ingest.extract.plain import extract_plain
from app.search import multilingual
from app.search.builtin import BuiltinEmbedder
from app.search.embeddings import Embedder
from app.search.floor import measure
from app.search.hybrid import Searcher
from app.search.multilingual import MultilingualEmbedder
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store.engine import Database
from app.store.migrate import migrate
from tests.bench import search_library as library

XQUAD = library.SHARED / "ir" / "xquad"
SETTINGS = Settings(_env_file=None)
QUESTIONS = 595
"""Every second one: an hour of one core for the multilingual model to embed all is not worth the third digit."""


def main() -> int:
    """Runs all; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    arguments = parser.parse_args()
    if not XQUAD.is_dir() or not multilingual.is_installed():
        print("XQuAD or the multilingual embedder is not here: nothing measured", file=sys.stderr)
        return 1
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, embedder in (("english", BuiltinEmbedder()), ("multilingual", MultilingualEmbedder())):
            for result in measured(Path(folder), name, embedder, arguments.questions):
                limit = "-" if result["limit"] is None else f">= {result['limit']}"
                print(result["name"], f"{result['value']:.4f}", limit, flush=True)
                results.append(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["limit"] is not None and result["value"] < result["limit"] for result in results))


def measured(folder: Path, name: str, embedder: Embedder, most: int) -> Iterator[dict[str, Any]]:
    """The right paragraph first, by language of the question; every so-many-th question where not all are asked."""
    database = Database(f"sqlite:///{folder / name}.db")
    migrate(database)
    library.fill(database, paragraphs(), embedder)
    searcher = Searcher(database, embedder, VectorIndex())
    found_floor = measure(embedder, lambda: True)
    if found_floor is not None and found_floor.floor is not None:
        yield {"name": f"floor_{name}", "value": found_floor.floor, "limit": None}
    for language in ("en", "de"):
        asked = questions(language)
        asked = asked[:: max(1, len(asked) // most)]
        found = [searcher.search(question, user_id=1, k=SETTINGS.retrieval_top_k) for question, _ in asked]
        right = sum(bool(hits) and hits[0].path == path for hits, (_, path) in zip(found, asked, strict=True))
        limit = 0.8 if (name, language) == ("multilingual", "de") else None
        yield {"name": f"xquad_{language}_en_recall1_{name}", "value": right / len(asked), "limit": limit}
        grounded = sum(any(hit.score >= SETTINGS.retrieval_min_score for hit in hits) for hits in found)
        yield {"name": f"xquad_{language}_en_grounded_{name}", "value": grounded / len(asked), "limit": None}
    database.close()
    embedder.close()


def paragraphs() -> Iterator[library.Source]:
    """The English ones, in order; a path is its place."""
    for place, paragraph in enumerate(_all("en")):
        path = f"{place}.txt"
        yield library.Source(path, path, chunk(extract_plain(paragraph["context"], "utf-8", path)))


def questions(language: str) -> list[tuple[str, str]]:
    """Question and the path of its paragraph; the translations are in the same order."""
    return [
        (qa["question"], f"{place}.txt") for place, paragraph in enumerate(_all(language)) for qa in paragraph["qas"]
    ]


def _all(language: str) -> Iterator[dict[str, Any]]:
    data = json.loads((XQUAD / f"xquad.{language}.json").read_text(encoding="utf-8"))["data"]
    return (paragraph for article in data for paragraph in article["paragraphs"])


if __name__ == "__main__":
    sys.exit(main())
