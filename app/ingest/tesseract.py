"""Text in a picture of a page, through the `tesseract` program where the machine has it.

Owns finding the program, running it under limits, and reading its table of words into lines with places on the page.
It draws no pages (`app.ingest.extract.page_image` does, in the extraction child) and stores nothing. Called by
`app.ingest.recognising`.

The table is tesseract's TSV output: twelve columns, of which level (5 is a word), page, block, paragraph and line
numbers, left, top, width and height in pixels from the upper left corner, confidence (0..100) and the text are read.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from app.ingest.errors import IngestError
from app.ingest.extract.pdf_lines import Cell, Line, PageImage, PageLines

_ROOT = Path(__file__).resolve().parents[2]

WALL_S = 60.0
"""A full A4 page at 200 dpi takes 1 to 3 seconds."""
MEMORY_BYTES = 1 << 30
_LEAST_CONFIDENCE = 30.0
"""Words below are what tesseract makes of stains, rules and photographs."""
_WORD_LEVEL = "5"
_COLUMNS = 12
_CELL_GAP = 1.5
"""In line heights: two words further apart are cells of a row, or columns side by side."""
_SIZE_OF_HEIGHT = 0.75
"""A line's box reaches from ascenders to descenders, somewhat more than the size of its font."""
_SAME_SIZE = 0.2
"""Heights of lines differ by the letters in them; within this share of the page's usual one they are that one."""
_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TESSDATA_PREFIX", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Word:
    """A word in pixels from the upper left corner; `line` names the line it stands in."""

    text: str
    line: tuple[str, ...]
    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The program and the languages it reads ("eng+deu")."""

    program: str
    languages: str

    def read(self, picture: PageImage) -> PageLines:
        """The lines of a page, in reading order. No lines where the picture holds no words.

        Raises:
            IngestError: timeout, or internal where the program fails.
        """
        return lines_of(words_of(self._table(picture)), picture)

    def _table(self, picture: PageImage) -> str:
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        limited = [sys.executable, "-m", "app.ingest.extract.limited", str(MEMORY_BYTES), str(round(WALL_S))]
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter; the arguments are this machine's
                [*limited, self.program, "stdin", "stdout", "-l", self.languages, "--psm", "3", "tsv"],
                input=picture.pgm,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**environment, "OMP_THREAD_LIMIT": "1", "PYTHONUTF8": "1"},
                cwd=_ROOT,
                timeout=WALL_S,
                check=True,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise IngestError("timeout") from None
        except (OSError, subprocess.CalledProcessError):
            raise IngestError("internal") from None
        return done.stdout.decode("utf-8", "replace")


@cache
def installed_languages(program: str) -> tuple[str, ...]:
    """What the program can read, sorted; empty where it can't be asked."""
    try:
        done = subprocess.run(  # noqa: S603 - a program of this machine, no user's words
            [program, "--list-langs"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    names = (line.strip() for line in done.stdout.splitlines()[1:])
    return tuple(sorted(name for name in names if name and name != "osd"))


def find_tesseract(setting: str = "off") -> Tesseract | None:
    """The program on PATH; None where it, or every language asked for, is missing.

    Args:
        setting: OCR's value; one that is neither `off` nor `on` names languages ("eng+deu"), of which those that are
            installed are read. Otherwise English, and all others where English is missing.
    """
    program = shutil.which("tesseract")
    if program is None:
        return None
    installed = installed_languages(program)
    wanted = [] if setting in ("off", "on") else setting.split("+")
    languages = [name for name in wanted if name in installed]
    if not wanted:
        languages = ["eng"] if "eng" in installed else list(installed)
    return Tesseract(program, "+".join(languages)) if languages else None


def words_of(table: str) -> list[Word]:
    """The words of a TSV table; rows that are no words, or hardly one, are left out."""
    words: list[Word] = []
    for row in table.splitlines():
        cells = row.split("\t", _COLUMNS - 1)
        if len(cells) < _COLUMNS or cells[0] != _WORD_LEVEL or not cells[11].strip():
            continue
        try:
            left, top, width, height = (int(cell) for cell in cells[6:10])
            confidence = float(cells[10])
        except ValueError:
            continue
        if confidence >= _LEAST_CONFIDENCE:
            words.append(Word(cells[11].strip(), tuple(cells[1:5]), left, top, width, height))
    return words


def lines_of(words: Sequence[Word], picture: PageImage) -> PageLines:
    """Words in lines, with places in points from the page's foot as `pdf_lines` has them."""
    by_line: dict[tuple[str, ...], list[Word]] = {}
    for word in words:
        by_line.setdefault(word.line, []).append(word)
    usual = _usual([_height(line) for line in by_line.values()])
    lines = (_line(line, picture, usual) for line in by_line.values())
    return PageLines(picture.height, tuple(lines))


def _line(words: Sequence[Word], picture: PageImage, usual: float) -> Line:
    height = _height(words)
    if abs(height - usual) <= usual * _SAME_SIZE:
        height = usual
    bottom = max(word.top + word.height for word in words)
    cells: list[list[Word]] = []
    for word in words:
        if cells and word.left - (cells[-1][-1].left + cells[-1][-1].width) <= height * _CELL_GAP:
            cells[-1].append(word)
        else:
            cells.append([word])
    y = picture.height - bottom / picture.scale
    return Line(tuple(_cell(cell, picture) for cell in cells), y, height / picture.scale * _SIZE_OF_HEIGHT)


def _cell(words: Sequence[Word], picture: PageImage) -> Cell:
    right = words[-1].left + words[-1].width
    return Cell(" ".join(word.text for word in words), words[0].left / picture.scale, right / picture.scale)


def _height(words: Sequence[Word]) -> float:
    """The tallest word's: one with ascenders and descenders, if the line has any."""
    return float(max(word.height for word in words))


def _usual(heights: Iterable[float]) -> float:
    ordered = sorted(heights)
    return ordered[len(ordered) // 2] if ordered else 0.0
