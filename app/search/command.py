"""The filters of `docent search`: its options, and what they mean in a library.

Owns the options' words. Called by `app.cli`.
"""

import argparse
from typing import Any

from app.errors import InvalidInputError
from app.search.asking import Asked, filters_of
from app.search.hits import SearchFilters
from app.store.collections import list_collections
from app.store.document_types import TYPE_WORDS
from app.store.engine import Database


def add_filters(searching: argparse.ArgumentParser) -> None:
    """The options that say where to look."""
    several: dict[str, Any] = {"action": "append", "default": None}
    searching.add_argument("--collection", metavar="NAME", help="only in this collection; may be repeated", **several)
    searching.add_argument("--path", metavar="BEGINNING", help="only documents whose path begins like this")
    types = ", ".join(TYPE_WORDS)
    searching.add_argument("--type", metavar="TYPE", help=f"only this type; may be repeated: {types}", **several)
    searching.add_argument("--since", metavar="DAY", help="only documents of this day or later: 2026-11-30")
    searching.add_argument("--until", metavar="DAY", help="only documents of this day or earlier")


def filters_from(database: Database, user_id: int, arguments: argparse.Namespace) -> SearchFilters:
    """The filters of one call.

    Raises:
        InvalidInputError: `app.search.asking`'s, or filter_collection_unknown.
    """
    ids = None
    if names := arguments.collection:
        known = database.read(lambda session: list_collections(session, user_id))
        ids = tuple(one.id for one in known if {one.slug, one.name.casefold()} & {name.casefold() for name in names})
        for name in names:
            if not any(name.casefold() in (one.slug, one.name.casefold()) for one in known):
                there = ", ".join(one.slug for one in known)
                raise InvalidInputError("filter_collection_unknown", params={"name": name, "names": there})
    asked = Asked(ids, None, arguments.path, arguments.type, arguments.since, arguments.until)
    return filters_of(asked)
