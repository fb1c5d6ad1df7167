"""What Docent weighs: the packages it installs, and the first page with all it loads.

    python -m tests.bench.weight [--out FILE]

Prints `name value limit`. The packages are those of `requirements.lock`, by the size of their installed files (compiled
`.pyc` included). The page is fetched from a real server, then each style sheet, script, imported module, icon and font
it names, each compressed by gzip at level 6 as a proxy would. Browsers load the same set (service workers and pictures
in answers aside).
"""

import argparse
import gzip
import json
import re
import sys
import tempfile
import urllib.parse
import urllib.request
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.server import ROOT, ServerProcess

INSTALL_LIMIT_MB = 350
PAGE_LIMIT_KB = 100

_REFERENCES = (
    re.compile(r"""<(?:script|link|img)\b[^>]*?\b(?:src|href)=["']([^"']+)["']"""),
    re.compile(r"""\b(?:from|import)\s*\(?\s*["']([^"']+\.js[^"']*)["']"""),
    re.compile(r"""(?:@import\s+|url\()\s*["']?([^"')]+)["']?"""),
)


def main() -> int:
    """Measures both; 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "data") as server:
        sizes = page_sizes(server.url)
        server.terminate()
    results = [
        ("install_mb", installed_bytes(ROOT / "requirements.lock") / 1e6, INSTALL_LIMIT_MB),
        ("first_page_gzip_kb", sum(sizes.values()) / 1e3, PAGE_LIMIT_KB),
        ("first_page_requests", len(sizes), None),
    ]
    for name, value, limit in results:
        print(name, f"{value:.1f}", "-" if limit is None else limit)
    if options.out:
        rows = [{"name": name, "value": value, "limit": limit} for name, value, limit in results]
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(limit is not None and value > limit for _, value, limit in results))


def installed_bytes(lock: Path) -> int:
    """Bytes of every file that the packages of a lock have installed here."""
    lines = re.findall(r"^[A-Za-z0-9].*==.*", lock.read_text(encoding="utf-8"), re.MULTILINE)
    wanted = [Requirement(line.rstrip(" \\")) for line in lines]
    names = [one.name for one in wanted if one.marker is None or one.marker.evaluate()]
    paths = {Path(str(file.locate())) for name in names for file in distribution(name).files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file())


def page_sizes(base: str) -> dict[str, int]:
    """Compressed bytes of the first page and of everything of this server that it leads to, by address."""
    sizes: dict[str, int] = {}
    waiting = [f"{base}/"]
    while waiting:
        url = waiting.pop()
        if url in sizes or not url.startswith(base):
            continue
        with urllib.request.urlopen(url, timeout=30) as reply:
            kind, body = reply.headers.get_content_type(), reply.read()
        sizes[url] = len(gzip.compress(body, 6))
        if kind.startswith("text/"):
            waiting += [urllib.parse.urljoin(url, name) for name in references(kind, body.decode())]
    return sizes


def references(kind: str, text: str) -> list[str]:
    """What a page, a script or a style sheet loads."""
    pattern = _REFERENCES[{"text/html": 0, "text/javascript": 1}.get(kind, 2)]
    return [name for name in pattern.findall(text) if not name.startswith(("data:", "#"))]


if __name__ == "__main__":
    sys.exit(main())
