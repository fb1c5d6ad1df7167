"""Greps over the frontend for what the content security policy and the rendering rule forbid.

Each rule is a pattern, where it is looked for, and why. Vendored files are not looked at; their checksums are checked.
"""

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "frontend"

RULES: list[tuple[str, str, str]] = [
    (r"\|\s*safe\b", "*.html", "escaping stays on; HTML comes from app.render as Markup"),
    (r"autoescape\s+false", "*.html", "escaping stays on"),
    (r"\sstyle\s*=", "*.html", "the content security policy has no inline styles"),
    (r"\son[a-z]+\s*=\s*[\"']", "*.html", "the content security policy has no inline handlers"),
    (r"<script(?![^>]*\bsrc=)", "*.html", "the content security policy has no inline scripts"),
    (r"\bhx-on|\bhx-vals\s*=\s*[\"']js:", "*.html", "htmx may not evaluate"),
    (
        r"(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write)\b",
        "*.js",
        "see app.render: HTML comes from the server",
    ),
    (r"\beval\(|new Function\(", "*.js", "nothing is evaluated"),
    (r"addEventListener\(\s*[\"']message[\"']", "*.js", "no page talks to another origin's window"),
    (r"tool_call", "*", "the page knows no scaffolding"),
    (r"(?:src|href)\s*=\s*[\"'](?:https?:)?//", "*.html", "nothing is loaded from elsewhere"),
    (r"url\(\s*[\"']?(?:https?:|//|data:)", "*.css", "nothing is loaded from elsewhere, no data addresses"),
]


def main() -> int:
    """Prints each violation; returns 1 if there is any."""
    problems = [*grep_problems(), *vendor_problems()]
    print("\n".join(problems) or "the frontend keeps its rules")
    return bool(problems)


def grep_problems() -> list[str]:
    """Lines that match a rule."""
    problems: list[str] = []
    for path in sorted(FRONTEND.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.is_dir() or "/vendor/" in name or path.suffix not in {".html", ".js", ".css", ".json", ".svg"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, glob, reason in RULES:
                if path.match(glob) and re.search(pattern, line):
                    problems.append(f"{name}:{number}: {line.strip()[:80]} ({reason})")
    return problems


def vendor_problems() -> list[str]:
    """Vendored files that the list in their README does not name with their checksum."""
    folder = FRONTEND / "static/vendor"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    return [
        f"frontend/static/vendor/{path.name}: not in README.md with its sha256"
        for path in sorted(folder.iterdir())
        if path.suffix in {".js", ".css"} and hashlib.sha256(path.read_bytes()).hexdigest() not in readme
    ]


if __name__ == "__main__":
    sys.exit(main())
