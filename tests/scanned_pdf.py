"""PDFs whose pages are pictures, and a program that stands for tesseract where a test must know what is recognised."""

import os
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

SIZE = (595, 842)
_HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"


def write_scan(path: Path, pages: Sequence[str | None], *, typed: str = "This page was typed and says so.") -> Path:
    """A PDF of as many pages: a picture of the words, or for None a page with real text."""
    canvas = Canvas(str(path), pagesize=SIZE)
    for words in pages:
        if words is None:
            canvas.drawString(60, 700, typed)
        else:
            canvas.drawImage(ImageReader(picture_of(words)), 0, 0, *SIZE)
        canvas.showPage()
    canvas.save()
    return path


def picture_of(words: str) -> Image.Image:
    """An A4 page at 150 dpi with these words on it."""
    image = Image.new("L", (1240, 1754), 255)
    ImageDraw.Draw(image).text((120, 200), words, fill=0, font=ImageFont.load_default(44))
    return image


def fake_tesseract(folder: Path, *words: str, body: str = "") -> Path:
    """A program that reads a picture and finds these words in it, on one line; `body` is run before it answers."""
    rows = [f"5\t1\t1\t1\t1\t{n}\t{100 + 200 * n}\t200\t150\t30\t96.0\t{word}" for n, word in enumerate(words)]
    table = folder / "table.tsv"
    table.write_text("\n".join([_HEAD, *rows]) + "\n")
    program = folder / "tesseract"
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --list-langs ]; then echo "List of available languages:"; echo eng; echo deu; echo osd; exit; fi\n'
        f"cat >/dev/null\n{body}\ncat '{table}'\n"
    )
    os.chmod(program, 0o755)
    return program
