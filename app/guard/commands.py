"""What `docent trips` says. Argument parsing and printing belong to `app.cli`.

Opens nothing itself and works whether a server runs or not: the log is in the database.
"""

import json
from dataclasses import dataclass

from app.catalog import Catalog
from app.clock import Clock
from app.guard.listing import as_csv, as_fields, as_lines, loss_lines
from app.store.engine import Database
from app.store.loop_guard_reading import Filters, read_log


@dataclass(frozen=True, slots=True)
class Said:
    """Text for standard output, and what stands beside it for standard error."""

    text: str
    aside: str = ""


def trips(database: Database, clock: Clock, catalog: Catalog, days: int, filters: Filters, shape: str) -> Said:
    """The window as `shape`: `table`, `json`, or `csv` with the losses beside it."""
    now = int(clock.now().timestamp())
    reading = database.read(lambda session: read_log(session, now, days, filters))
    if shape == "json":
        return Said(json.dumps(as_fields(reading), ensure_ascii=False, indent=1))
    if shape == "csv":
        return Said(as_csv(reading).rstrip("\n"), "\n".join(loss_lines(reading, catalog)))
    return Said("\n".join(as_lines(reading, catalog)))
