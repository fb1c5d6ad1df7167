"""Holds files and functions to their size, and modules to names that say something.

Limits: Python files 300 lines, functions 50, templates 80, own JavaScript 150 a file and 800 in all. No baseline: a
file over its limit is split, not listed.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def main() -> int:
    """Prints each violation; returns 1 if there is any."""
    problems = [*python_problems(), *template_problems(), *script_problems()]
    print("\n".join(problems) or "sizes and names are within their limits")
    return bool(problems)


def python_problems() -> list[str]:
    """Files over 300 lines, functions over 50, vague module names."""
    problems: list[str] = []
    for folder in ("app", "tests", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT)
            source = path.read_text(encoding="utf-8")
            if (lines := source.count("\n")) > 300:
                problems.append(f"{name}: {lines} lines (300 at most)")
            if path.stem in VAGUE:
                problems.append(f"{name}: the name says nothing")
            problems += [f"{name}:{line}" for line in long_functions(source)]
    return problems


def long_functions(source: str) -> list[str]:
    """`line: name is n lines` for each function over 50 lines, its docstring and decorators not counted."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = node.body[0].end_lineno if ast.get_docstring(node) is not None else node.lineno
            length = (node.end_lineno or 0) - (start or 0)
            if length > 50:
                found.append(f"{node.lineno}: {node.name} is {length} lines (50 at most)")
    return found


def template_problems() -> list[str]:
    """Templates over 80 lines."""
    return [
        f"{path.relative_to(ROOT)}: {lines} lines (80 at most)"
        for path in sorted((ROOT / "frontend/templates").rglob("*.html"))
        if (lines := path.read_text(encoding="utf-8").count("\n")) > 80
    ]


def script_problems() -> list[str]:
    """Own JavaScript over 150 lines a file or 800 in all."""
    sizes = {
        path.relative_to(ROOT): path.read_text(encoding="utf-8").count("\n")
        for path in sorted((ROOT / "frontend/static/js").rglob("*.js"))
    }
    problems = [f"{name}: {lines} lines (150 at most)" for name, lines in sizes.items() if lines > 150]
    if (total := sum(sizes.values())) > 800:
        problems.append(f"frontend/static/js: {total} lines in all (800 at most)")
    return problems


if __name__ == "__main__":
    sys.exit(main())
