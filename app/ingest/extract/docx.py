"""Word documents: mammoth turns them into HTML, and the HTML path does the rest.

Called by `dispatch` in the extraction child. Pictures are left out unread.
"""

from typing import Any, cast
from xml.parsers.expat import ExpatError

import mammoth  # pyright: ignore[reportMissingTypeStubs]

from app.ingest.blocks import Extraction
from app.ingest.errors import IngestError
from app.ingest.extract.html import from_markup
from app.ingest.extract.zip_guard import Source, check_zip, opened

MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_CODE_STYLES = ("Code", "HTML Preformatted", "Preformatted Text", "Source Code")
"""By the names that Word, LibreOffice and converters give them."""

_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        "p[style-name='Subtitle'] => p:fresh",
        *(f"p[style-name='{name}'] => pre:separator('\\n')" for name in _CODE_STYLES),
    ]
)
_mammoth = cast(Any, mammoth)


def extract_docx(source: Source) -> Extraction:
    """Reads a Word document: headings, lists, tables, notes. Title: its first level-one heading.

    Raises:
        IngestError: corrupt, encrypted, no_text, or too_long for a zip bomb.
    """
    check_zip(source)
    no_pictures = _mammoth.images.img_element(_no_picture)
    try:
        with opened(source) as file:
            html = _mammoth.convert_to_html(file, convert_image=no_pictures, style_map=_STYLES).value
    except (KeyError, AttributeError, ValueError, OSError, ExpatError, IndexError, TypeError) as error:
        raise IngestError("corrupt") from error
    return from_markup(str(html), MIME, None)


def _no_picture(_image: object) -> dict[str, str]:
    return {}
