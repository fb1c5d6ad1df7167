"""What the library says of a watched folder: files, last scan, last change, what was passed over. Pure.

No database and no request here; every string comes from the catalog that is passed in. Used by `app.web.folders` and
`app.web.folder_page`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.catalog import Catalog
from app.render.names import shown_name
from app.store.collections import CollectionRow
from app.store.jobs import LIVE
from app.store.removals import Removal
from app.store.scan_jobs import ScanState


@dataclass(frozen=True, slots=True)
class Folder:
    """A watched folder, or the sample (`root` empty)."""

    id: int
    name: str
    root: str
    facts: str
    change: str
    passed: str
    watch: str
    problem: str
    emptied: bool
    locked: bool
    scanning: bool
    sample: bool


@dataclass(frozen=True, slots=True)
class Leaving:
    """A collection that is being removed; `done` of `total` drives the bar."""

    words: str
    done: int
    total: int


def folder(row: CollectionRow, scan: ScanState | None, catalog: Catalog, now: datetime, *, locked: bool) -> Folder:
    """A folder's row. What Docent's own folder holds besides the manual is nobody's concern."""
    is_sample = row.kind == "sample"
    scanning = scan is not None and scan.state in LIVE
    passed = "" if scan is None or is_sample else _passed_words(scan.result, catalog)
    return Folder(
        id=row.id,
        name=shown_name(row.name),
        root="" if is_sample else shown_name(row.root or ""),
        facts=_facts(row, catalog, now, scanning=scanning),
        change=_change_words(row, catalog, now),
        passed=passed,
        watch=catalog.t(f"library.watch_{row.watch}") if row.watch in ("remote", "limit") else "",
        problem=_problem(row, scan, catalog),
        emptied=scan is not None and scan.error in ("folder_empty", "folder_replaced"),
        locked=locked,
        scanning=scanning,
        sample=is_sample,
    )


def leaving(removal: Removal, catalog: Catalog) -> Leaving:
    """How far a removal is."""
    done = removal.documents - removal.left
    facts = {"name": shown_name(removal.name), "done": done, "total": removal.documents}
    return Leaving(catalog.t("library.folder_leaving", **facts), done, max(1, removal.documents))


def _facts(row: CollectionRow, catalog: Catalog, now: datetime, *, scanning: bool) -> str:
    words = [catalog.t("library.folder_files", n=row.documents)]
    if scanning:
        words.append(catalog.t("library.folder_scanning"))
    elif row.scanned_at is None:
        words.append(catalog.t("library.folder_never"))
    else:
        words.append(catalog.t("library.folder_scanned", when=catalog.when(row.scanned_at, now)))
    return " · ".join(words)


def _change_words(row: CollectionRow, catalog: Catalog, now: datetime) -> str:
    """What the newest scan that found a difference did, and when; empty before the first."""
    if row.changed_at is None or not row.change:
        return ""
    parts = [
        catalog.t(f"library.change_{name}", n=row.change[name])
        for name in ("added", "changed", "renamed", "removed")
        if row.change.get(name)
    ]
    return catalog.t("library.folder_changed", when=catalog.when(row.changed_at, now), what=", ".join(parts))


def _problem(row: CollectionRow, scan: ScanState | None, catalog: Catalog) -> str:
    if scan is not None and scan.error:
        key = f"errors.{scan.error}"
        return catalog.t(key, path=row.root) if catalog.has(key) else catalog.t("library.folder_missing")
    return catalog.t("library.folder_missing") if row.watch == "missing" else ""


def _passed_words(result: Mapping[str, Any], catalog: Catalog) -> str:
    """How many entries the last scan passed over, and why, commonest first."""
    skipped: Mapping[str, int] = result.get("skipped") or {}
    commonest = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    parts = [
        catalog.t(f"library.skipped_{reason}", n=count)
        for reason, count in commonest
        if count and catalog.has(f"library.skipped_{reason}")
    ]
    return catalog.t("library.skipped", reasons=", ".join(parts)) if parts else ""
