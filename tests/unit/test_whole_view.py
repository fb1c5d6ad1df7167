"""What pages say of a turn that read a whole document or counted in the catalogue."""

from typing import Any

import pytest

from app.catalog import load_catalog
from app.web.whole_view import MoreLink, given_words, more_link, part_notices, receipt_words

CATALOG = load_catalog()
AT_ONCE = {"whole": {"document_id": 7, "title": "Plan", "passages": 3}}
SECTIONS = {"whole": {"document_id": 7, "title": "Plan", "sections": 14, "read": 14, "failed": []}}
PART = {"whole": {"document_id": 7, "title": "Plan", "sections": 63, "read": 38, "failed": [3, 9]}}
COUNTED = {"catalogue": {"words": "keep within", "total": 12, "of": 429}}
ALL = {"catalogue": {"words": "", "total": 429, "of": 429}}
NONE = {"catalogue": {"words": "x", "total": 0, "of": 429}}


@pytest.mark.parametrize(
    ("numbers", "given", "receipt"),
    [
        ({}, None, None),
        (AT_ONCE, "read whole", "The whole document was given to the model at once: Plan."),
        (SECTIONS, "14 of 14 sections read", "Read section by section: 14 of 14 sections of Plan."),
        (PART, "38 of 63 sections read", "Read section by section: 38 of 63 sections of Plan."),
        (COUNTED, "12 of 429 documents", "Counted in the catalogue: 12 of 429 documents. No model was asked."),
        (ALL, "", "Counted in the catalogue: 429 of 429 documents. No model was asked."),
        ({"outline": "Plan"}, "read whole", "An outline of the whole document, without a model: Plan."),
        (
            {"unreadable": "Plan"},
            "nothing to read",
            "The document that was asked about has no text to read. No model was asked.",
        ),
    ],
)
def test_a_turn_says_what_it_was_made_from(numbers: dict[str, Any], given: str | None, receipt: str | None) -> None:
    """Under the question and on the receipt; an ordinary turn says nothing of it."""
    assert (given_words(CATALOG, numbers), receipt_words(CATALOG, numbers)) == (given, receipt)


def test_what_was_not_read_is_said_again_after_a_reload() -> None:
    """Sections beyond the cap, and sections that failed."""
    assert part_notices(CATALOG, PART) == [
        "The document has 63 sections. The first 40 were read, the rest was not.",
        "2 of 40 sections could not be read; the answer leaves them out.",
    ]
    assert part_notices(CATALOG, SECTIONS) == part_notices(CATALOG, AT_ONCE) == part_notices(CATALOG, {}) == []


def test_a_count_leads_to_the_documents() -> None:
    """Quoted for the address; where nothing was found there is nowhere to go."""
    assert more_link(CATALOG, COUNTED) == MoreLink("/search?q=keep+within", "Show all 12 in the library")
    assert more_link(CATALOG, ALL) == MoreLink("/library", "Show the library")
    assert more_link(CATALOG, NONE) is None
    assert more_link(CATALOG, {}) is None
