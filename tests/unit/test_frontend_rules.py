"""Rules that every template, script and style sheet keeps, read from the files themselves."""

import gzip
import re
from pathlib import Path

import pytest

from app.catalog import load_catalog
from app.web.templating import TEMPLATES, environment

FRONTEND = TEMPLATES.parent
ALL_TEMPLATES = sorted(TEMPLATES.rglob("*.html"))
OWN_SCRIPTS = sorted((FRONTEND / "static" / "js").glob("*.js"))
SHEETS = sorted((FRONTEND / "static" / "css").rglob("*.css"))

INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style\b|\sstyle=|\son[a-z]+=|hx-on|javascript:|data:", re.IGNORECASE)
KEYS = re.compile(r"""\bt\(\s*["']([a-z_]+\.[a-z0-9_.]+)["']\s*[,)]""")


@pytest.mark.parametrize("path", ALL_TEMPLATES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_a_template_is_short_escapes_everything_and_holds_no_inline_code(path: Path) -> None:
    """At most 80 lines, no `|safe`, nothing the content security policy would refuse, and it compiles."""
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 80
    assert "|safe" not in text.replace(" ", "")
    assert "autoescape" not in text
    assert not INLINE.search(re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL))
    environment(load_catalog()).get_template(str(path.relative_to(TEMPLATES)))


@pytest.mark.parametrize("path", ALL_TEMPLATES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_every_string_of_a_template_is_in_the_catalog(path: Path) -> None:
    """A missing key would fail only when that page is shown."""
    catalog = load_catalog()
    assert [key for key in KEYS.findall(path.read_text("utf-8")) if not catalog.has(key)] == []


def test_scripts_keep_their_budget() -> None:
    """800 own lines in all, 150 in a file."""
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in OWN_SCRIPTS}
    assert max(lengths.values()) <= 150, lengths
    assert sum(lengths.values()) <= 800, lengths


@pytest.mark.parametrize("path", OWN_SCRIPTS, ids=lambda path: path.name)
def test_a_script_builds_no_html_from_text(path: Path) -> None:
    """No sink for markup; htmx's swap style of that name is a word, not a property."""
    text = path.read_text("utf-8")
    assert not re.search(r"\.(?:innerHTML|outerHTML)\b|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert 'addEventListener("message"' not in text


@pytest.mark.parametrize("path", [sheet for sheet in SHEETS if sheet.name != "tokens.css"], ids=lambda path: path.name)
def test_colours_have_names(path: Path) -> None:
    """Only tokens.css holds colour values, so that both themes and forced colours stay whole."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", text) == []
    assert "@layer" in text


def test_the_dark_tokens_are_the_same_by_system_and_by_choice() -> None:
    """CSS needs them twice; a difference would be a bug nobody sees."""
    text = (FRONTEND / "static" / "css" / "tokens.css").read_text("utf-8")
    by_system = text.split(':root:not([data-theme="light"]) {')[1].split("}")[0]
    by_choice = text.split(':root[data-theme="dark"] {')[1].split("}")[0].replace("color-scheme: dark;", "")
    assert by_system.split() == by_choice.split()


@pytest.mark.parametrize(
    ("ground", "figure", "least"),
    [
        (ground, figure, least)
        for ground in ("paper", "paper-2", "paper-3")
        for figure, least in (("ink", 7), ("ink-2", 4.5), ("ink-3", 4.5), ("lamp", 4.5), ("fail", 4.5), ("edge", 3))
    ]
    + [("lamp", "on-lamp", 4.5), ("ink", "paper", 7), ("fail-wash", "fail", 4.5), ("lamp-wash", "ink", 7)],
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_its_ground(theme: str, ground: str, figure: str, least: float) -> None:
    """WCAG contrast of every pair that is used, in both themes."""
    text = (FRONTEND / "static" / "css" / "tokens.css").read_text("utf-8")
    block = text.split(":root {")[1].split("}")[0] if theme == "light" else text.split('[data-theme="dark"] {')[1]
    colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3,6});", block))
    lighter, darker = sorted((_luminance(colours[ground]), _luminance(colours[figure])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= least


def test_the_first_page_is_small() -> None:
    """Style sheets, scripts, icons and htmx of the first page, compressed: at most 90 kB, which leaves 10 for HTML."""
    static = FRONTEND / "static"
    files = [*SHEETS, *OWN_SCRIPTS, *(static / "icons").glob("*.svg"), *(static / "vendor").glob("*.js")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) <= 90_000


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
