"""What `docent eval` does. Argument parsing and printing belong to `app.cli`.

Works beside a server: it only reads. Owns the arguments' meaning and which settings may be compared.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from app.catalog import Catalog
from app.rag.eval_report import as_fields, as_lines
from app.rag.evaluate import Asked, Names, evaluate
from app.rag.evaluation import Outcome, Question, parse_questions
from app.rag.quoting import make_quoting_chat, quoting_texts
from app.search.choice import spec_from
from app.search.generations import Embedders
from app.search.hybrid import Searcher
from app.search.vectors import VectorIndex
from app.settings import Settings
from app.store import documents, generations
from app.store.engine import Database, Session
from app.store.models.setup import LOCAL_USER_ID
from app.store.settings import effective
from app.store.vectors import ActiveGeneration, active_generation

BUDGET_TOKENS = 3_000
COMPARABLE = ("EMBED_BASE_URL", "EMBED_MODEL", "LLM_CONTEXT_TOKENS", "RETRIEVAL_MIN_SCORE", "RETRIEVAL_TOP_K")
"""Settings that change what a question gets."""


@dataclass(frozen=True, slots=True)
class Said:
    """Text for standard output, and what stands beside it for standard error."""

    text: str
    aside: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `docent eval`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="questions, a JSON object a line")
    other = f"ask again with this changed, and compare; one of {', '.join(COMPARABLE)}"
    parser.add_argument("--against", action="append", default=[], metavar="SETTING=VALUE", help=other)
    parser.add_argument("-k", type=int, default=5, help="among how many documents a right one has to be (5)")
    tokens = f"tokens of passages that count as given ({BUDGET_TOKENS})"
    parser.add_argument("--budget", type=int, default=BUDGET_TOKENS, metavar="TOKENS", help=tokens)
    parser.add_argument("--curve", action="store_true", help="print what every threshold would ground and deflect")
    parser.add_argument("--json", action="store_true", help="print JSON")


def changes_of(against: Sequence[str]) -> dict[str, str]:
    """`SETTING=VALUE` by the name of the field.

    Raises:
        ValueError: for anything else, or a setting that changes nothing here.
    """
    changes: dict[str, str] = {}
    for one in against:
        name, equals, value = one.partition("=")
        if not equals or name.upper() not in COMPARABLE:
            raise ValueError(f"--against takes SETTING=VALUE with one of {', '.join(COMPARABLE)}, not {one!r}")
        changes[name.lower()] = value
    return changes


def run_eval(
    database: Database,
    runs: dict[str, Settings],
    catalog: Catalog,
    arguments: argparse.Namespace,
    count_tokens: Callable[[str], int],
) -> Said:
    """Asks every question with each of `runs` and tells the scores.

    Raises:
        OSError: when a file can't be read.
        ValueError: when a line is no question, or there is none.
    """
    questions = _read(arguments.files)
    paths = database.read(lambda session: documents.searchable_paths(session, LOCAL_USER_ID))
    outcomes: dict[str, list[Outcome]] = {}
    for name, environment in runs.items():
        settings = database.read(lambda session, environment=environment: effective(session, environment))
        with closing(Embedders(environment)) as embedders:
            asked = Asked(
                Searcher(database, embedders, VectorIndex(), generation=_generation(environment, runs)),
                LOCAL_USER_ID,
                paths,
                make_quoting_chat(quoting_texts(catalog)),
                arguments.budget,
                count_tokens,
            )
            outcomes[name] = anyio.run(partial(evaluate, questions, asked, settings))
    unknown = Names(paths).unknown(questions)
    aside = catalog.t("search.eval_unknown", n=len(unknown), first=unknown[0]) if unknown else ""
    if arguments.json:
        fields = {"questions": len(questions), "unknown_documents": unknown, "k": arguments.k}
        fields |= {"budget_tokens": arguments.budget, "runs": as_fields(outcomes, arguments.k, arguments.curve)}
        return Said(json.dumps(fields, ensure_ascii=False, indent=1), aside)
    return Said("\n".join(as_lines(outcomes, arguments.k, arguments.curve)), aside)


def _generation(environment: Settings, runs: dict[str, Settings]) -> Callable[[Session], ActiveGeneration | None]:
    """What serves; for a run with an embedder of its own, what that one made, if it is complete: else words alone."""
    first = next(iter(runs.values()))
    chosen = spec_from(environment)
    if chosen == spec_from(first):
        return active_generation
    return partial(generations.complete_of, model=chosen.model)


def _read(files: Sequence[str]) -> list[Question]:
    questions: list[Question] = []
    for file in map(Path, files):
        try:
            questions += parse_questions(file.read_text(encoding="utf-8-sig").splitlines(), file.stem)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
    if not questions:
        raise ValueError(f"{files[0]}: no questions")
    return questions
