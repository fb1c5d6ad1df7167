"""The operator's commands: `docent serve worker migrate ingest search doctor rebuild-index eval trips`.

Owns argument parsing, what is printed, and turning an error into one plain sentence; each command builds what it needs
and calls the same code as the server.
"""

import argparse
import json
import logging
import queue
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any, cast

from pydantic import ValidationError
from pydantic_settings import SettingsError

from app import __version__, logs
from app.catalog import load_catalog
from app.clock import SystemClock
from app.edge.errors import error_message
from app.errors import AppError
from app.guard.commands import trips
from app.ingest import upkeep
from app.ingest.commands import Ingest, Standing, run_worker
from app.ingest.cutting import count_tokens
from app.ingest.stored_files import StoredFiles
from app.logs import kv
from app.rag import eval_command
from app.search.command import add_filters, filters_from
from app.search.generations import Embedders
from app.search.hybrid import Searcher
from app.search.listing import as_fields, as_lines, check_query
from app.search.vectors import VectorIndex
from app.serve import address_of, is_loopback, serve
from app.settings import SECRET, Settings
from app.store import documents
from app.store.engine import Database, StoreError
from app.store.loop_guard_log import LOOP_GUARD_LOG_DEFAULT_DAYS
from app.store.loop_guard_reading import Filters
from app.store.migrate import current_revision, is_there, migrate
from app.store.models.setup import LOCAL_USER_ID

FAILED = 1
REFUSED = 2
"""Exit codes: something failed; the settings or arguments can't be used."""

Command = Callable[[Settings, argparse.Namespace], int]


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns the process's exit code."""
    arguments = _parser().parse_args(argv)
    given = {name: value for name in ("host", "port") if (value := getattr(arguments, name, None)) is not None}
    try:
        settings = Settings(**given)
    except (ValidationError, SettingsError) as error:
        return _complain(_settings_sentence(error), REFUSED)
    logs.setup(settings.log_level)
    command: Command = arguments.run
    try:
        return command(settings, arguments)
    except AppError as error:
        return _complain(error_message(load_catalog(), error), REFUSED if error.setting else FAILED)
    except StoreError as error:
        logging.getLogger(__name__).error("%s", kv("database_unusable", error=_first_line(error)))
        return _complain(load_catalog().t("errors.database_unusable", database=settings.database), FAILED)
    except (OSError, ValueError) as error:
        return _complain(_first_line(error), FAILED)
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="docent", description="Ask your own documents and get cited answers.")
    parser.add_argument("--version", action="version", version=f"docent {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    serving = commands.add_parser("serve", help="serve the pages and the API")
    serving.add_argument("--host", help="address to listen on, instead of HOST")
    serving.add_argument("--port", type=int, help="port to listen on, instead of PORT")
    serving.set_defaults(run=_serve)
    commands.add_parser("migrate", help="bring the database to this version's schema").set_defaults(run=_migrate)
    commands.add_parser("worker", help="read and embed documents, apart from the server").set_defaults(run=_worker)
    ingesting = commands.add_parser("ingest", help="add files, folders and web addresses, and wait until they are read")
    ingesting.add_argument("paths", nargs="+", metavar="PATH")
    ingesting.set_defaults(run=_ingest)
    searching = commands.add_parser("search", help="search the library, without a model")
    searching.add_argument("query", nargs="+", metavar="WORD")
    searching.add_argument("-k", type=int, default=5, help="how many passages (5)")
    searching.add_argument("--json", action="store_true", help="print JSON, as POST /api/search answers it")
    add_filters(searching)
    searching.set_defaults(run=_search)
    checking = commands.add_parser("doctor", help="look for what belongs to nothing, and repair what can be made again")
    checking.add_argument("--repair", action="store_true", help="repair it, instead of only telling")
    checking.set_defaults(run=_doctor)
    rebuilding = commands.add_parser("rebuild-index", help="build full text anew from the passages")
    rebuilding.add_argument("--vectors", action="store_true", help="have every vector made anew, too")
    rebuilding.set_defaults(run=_rebuild_index)
    evaluating = commands.add_parser("eval", help="score the library's search on questions of your own")
    eval_command.add_arguments(evaluating)
    evaluating.set_defaults(run=_eval)
    _add_trips(commands.add_parser("trips", help="show what the loop guard scanned and decided"))
    return parser


def _add_trips(reading: argparse.ArgumentParser) -> None:
    days = f"how many days, today included: 1 to 90 ({LOOP_GUARD_LOG_DEFAULT_DAYS})"
    reading.add_argument("--since", type=int, default=LOOP_GUARD_LOG_DEFAULT_DAYS, metavar="N", help=days)
    for name in ("path", "model", "mode", "env"):
        reading.add_argument(f"--{name}", help=f"only this {name}")
    shapes = reading.add_mutually_exclusive_group()
    shapes.add_argument("--json", action="store_const", const="json", dest="shape", help="print JSON, as the API does")
    shapes.add_argument("--csv", action="store_const", const="csv", dest="shape", help="print the days as CSV")
    reading.set_defaults(run=_trips, shape="table")


def _serve(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog = load_catalog()

    def announce() -> None:
        if not is_loopback(settings.host):
            print(catalog.t("errors.serve_opened", host=settings.host), file=sys.stderr)
        print(catalog.t("errors.serve_begins", url=address_of(settings)), flush=True)

    serve(settings, announce)
    return 0


def _migrate(settings: Settings, arguments: argparse.Namespace) -> int:
    database = Database(settings.database)
    try:
        before = current_revision(database)
        migrate(database)
        print(f"{settings.database}: {before or 'empty'} -> {current_revision(database)}")
    finally:
        database.close()
    return 0


def _worker(settings: Settings, arguments: argparse.Namespace) -> int:
    # Not an Event: a signal that comes while the same thread is about to wait for one would wait for itself.
    asked: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: asked.put(number))
    print(load_catalog().t("ingest.worker_begins"), flush=True)
    with _opened(settings) as database, closing(Embedders(settings)) as embedders:
        return 0 if run_worker(database, settings, embedders, asked.get) else FAILED


def _ingest(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog = load_catalog()

    def tell(standing: Standing) -> None:
        print(catalog.t("ingest.standing", **asdict(standing)), flush=True)

    with _opened(settings) as database, closing(Embedders(settings)) as embedders:
        ended = Ingest(database, settings, embedders, SystemClock()).run(arguments.paths, tell)
    for name, error in ended.refused:
        print(catalog.t("ingest.failed", name=name, reason=error_message(catalog, error)), file=sys.stderr)
    for row in ended.rows:
        if row.status == "failed":
            facts = {"size": catalog.size(row.bytes), "limit": settings.upload_max_mb}
            reason = catalog.t(f"errors.ingest_{row.error}", **facts)
            print(catalog.t("ingest.failed", name=row.path, reason=reason), file=sys.stderr)
    if ended.skipped:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(ended.skipped.items()))
        print(catalog.t("ingest.skipped", n=ended.skipped.total(), reasons=reasons))
    if ended.paused:
        print(catalog.t("ingest.paused"))
    if not ended.rows and not ended.refused:
        return _complain(catalog.t("ingest.nothing"), FAILED)
    return 0 if ended.is_clean else FAILED


def _search(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog, query = load_catalog(), " ".join(arguments.query)
    check_query(query, settings.question_max_chars)
    if not is_there(settings.database):
        return _complain(catalog.t("search.no_library", database=settings.database), FAILED)
    with _opened(settings) as database, closing(Embedders(settings)) as embedders:
        filters = filters_from(database, LOCAL_USER_ID, arguments)
        searcher = Searcher(database, embedders, VectorIndex())
        hits = searcher.search(query, user_id=LOCAL_USER_ID, k=max(1, arguments.k), filters=filters)
        counts = database.read(lambda session: documents.counts(session, LOCAL_USER_ID))
    if arguments.json:
        print(json.dumps({"hits": [as_fields(hit) for hit in hits]}, ensure_ascii=False, indent=1))
    elif hits:
        print("\n".join(as_lines(hits)))
    if hits:
        return 0
    waiting = sum(counts.by_status.get(status, 0) for status in ("queued", "parsing"))
    why = "nothing_found" if counts.passages else "still_reading" if waiting else "nothing_searchable"
    return _complain(catalog.t(f"search.{why}", n=waiting), FAILED)


def _doctor(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog, files = load_catalog(), StoredFiles(settings.data_dir)
    if not is_there(settings.database):
        return _complain(catalog.t("search.no_library", database=settings.database), FAILED)
    with _opened(settings) as database:
        found = upkeep.examine(database, files)
        print("\n".join(upkeep.as_lines(found, catalog)))
        if arguments.repair and not found.is_sound:
            found = upkeep.mend(database, files, SystemClock())
            print("\n".join([catalog.t("ingest.doctor_after"), *upkeep.as_lines(found, catalog)]))
    return 0 if found.is_sound else FAILED


def _rebuild_index(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog = load_catalog()
    if not is_there(settings.database):
        return _complain(catalog.t("search.no_library", database=settings.database), FAILED)

    def tell(left: int) -> None:
        print(catalog.t("ingest.rebuild_left", n=left), flush=True)

    with _opened(settings) as database:
        upkeep.rebuild_fulltext(database)
        print(catalog.t("ingest.rebuilt_fulltext"), flush=True)
        if arguments.vectors:
            with closing(Embedders(settings)) as embedders:
                ended = upkeep.rebuild_vectors(database, settings, embedders, SystemClock(), tell)
            print(catalog.t("ingest.rebuilt_vectors" if ended else "ingest.rebuild_goes_on"))
    return 0


def _eval(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog, runs = load_catalog(), {"now": settings}
    if changes := eval_command.changes_of(arguments.against):
        try:
            runs[" ".join(arguments.against)] = Settings(**cast("dict[str, Any]", changes))
        except ValidationError as error:
            return _complain(_settings_sentence(error), REFUSED)
    if not is_there(settings.database):
        return _complain(catalog.t("search.no_library", database=settings.database), FAILED)
    with _opened(settings) as database:
        said = eval_command.run_eval(database, runs, catalog, arguments, count_tokens)
    print(said.text)
    if said.aside:
        print(said.aside, file=sys.stderr)
    return 0


def _trips(settings: Settings, arguments: argparse.Namespace) -> int:
    catalog = load_catalog()
    if not is_there(settings.database):
        return _complain(catalog.t("search.no_library", database=settings.database), FAILED)
    filters = Filters(arguments.path, arguments.model, arguments.mode, arguments.env)
    with _opened(settings) as database:
        said = trips(database, SystemClock(), catalog, arguments.since, filters, arguments.shape)
    print(said.text)
    if said.aside:
        print(said.aside, file=sys.stderr)
    return 0


@contextmanager
def _opened(settings: Settings) -> Generator[Database]:
    """The database at this version's schema."""
    database = Database(settings.database)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


def _complain(sentence: str, code: int) -> int:
    print(f"docent: {sentence}", file=sys.stderr)
    return code


def _settings_sentence(error: ValidationError | SettingsError) -> str:
    """Which variable can't be used, why, and the value unless it is a secret."""
    if isinstance(error, SettingsError):
        return _first_line(error)
    sentences: list[str] = []
    for problem in cast("Sequence[dict[str, Any]]", error.errors()):
        names = [str(part) for part in problem["loc"] if isinstance(part, str)]
        name = names[0] if names else ""
        reason = str(problem["msg"]).removeprefix("Value error, ")
        value = "" if not name or name.lower() in SECRET else f" is {problem['input']!r}"
        sentences.append(f"{name.upper()}{value}: {reason[:1].lower()}{reason[1:]}." if name else reason)
    return " ".join(sentences)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
