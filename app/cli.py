"""The operator's commands: `docent serve worker migrate ingest search`.

Owns argument parsing, what is printed, and turning an error into one plain sentence; each command builds what it needs
and calls the same code as the server.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from pydantic import ValidationError
from pydantic_settings import SettingsError

from app import __version__, logs
from app.catalog import load_catalog
from app.edge.errors import error_message
from app.errors import AppError
from app.serve import address_of, is_loopback, serve
from app.settings import SECRET, Settings
from app.store.engine import Database, StoreError
from app.store.migrate import current_revision, migrate

FAILED = 1
REFUSED = 2
"""Exit codes: something failed; the settings or arguments can't be used."""

Command = Callable[[Settings, argparse.Namespace], int]


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns the process's exit code."""
    arguments = _parser().parse_args(argv)
    try:
        settings = Settings()
    except (ValidationError, SettingsError) as error:
        return _complain(_settings_sentence(error), REFUSED)
    logs.setup(settings.log_level)
    command: Command = arguments.run
    try:
        return command(settings, arguments)
    except AppError as error:
        return _complain(error_message(load_catalog(), error), REFUSED if error.setting else FAILED)
    except (StoreError, OSError, ValueError) as error:
        return _complain(f"{type(error).__name__}: {_first_line(error)}", FAILED)
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
    return parser


def _serve(settings: Settings, arguments: argparse.Namespace) -> int:
    given = {name: getattr(arguments, name) for name in ("host", "port") if getattr(arguments, name) is not None}
    if given:
        settings = Settings(**given)
    if not is_loopback(settings.host):
        print(load_catalog().t("errors.serve_opened", host=settings.host), file=sys.stderr)
    print(load_catalog().t("errors.serve_begins", url=address_of(settings)), flush=True)
    serve(settings)
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
