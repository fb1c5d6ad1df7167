"""Tables of pages: every value under its own header, in cells that span and in tables longer than a passage."""

import pytest

from app.ingest.cutting import count_tokens
from app.ingest.extract.html import extract_html


def text_of(html: str) -> str:
    return extract_html(html.encode()).text


def test_a_cell_that_spans_rows_is_said_in_each_of_them() -> None:
    """A row is read by itself; and what stands beside it stays in its own column."""
    html = "<table><tr><th>Host<th>Port<tr><td rowspan=2>hill<td>22<tr><td>80<tr><td>dale<td>443</table>"

    assert text_of(html) == "| Host | Port |\n| --- | --- |\n| hill | 22 |\n| hill | 80 |\n| dale | 443 |"


def test_a_cell_that_spans_columns_leaves_the_next_one_in_its_place() -> None:
    """Said once in a row; a header that spans names each of its columns."""
    html = (
        "<table><tr><th>Part<th colspan=2>Days<th>By<tr><td>a<td>1<td>2<td>Ann"
        "<tr><td>b<td colspan=2>never<td>Ben</table>"
    )

    assert text_of(html).splitlines()[2:] == ["| a | 1 | 2 | Ann |", "| b | never |  | Ben |"]
    assert text_of(html).startswith("| Part | Days | Days | By |\n")


def test_cells_hang_down_to_the_end_of_their_section_at_most() -> None:
    """As browsers have it: `rowspan=0` is all of it, and a longer one than that no more."""
    for span in ("0", "9"):
        html = (
            f"<table><thead><tr><th>A<th>B<tbody><tr><td rowspan={span}>x<td>1<tr><td>2"
            "<tbody><tr><td>y<td>3</tbody></table>"
        )
        assert text_of(html).splitlines()[2:] == ["| x | 1 |", "| x | 2 |", "| y | 3 |"]


@pytest.mark.parametrize("span", ["", "-1", "two", "1e3", "²", "99999999999999999999"])
def test_a_span_that_is_no_number_is_one(span: str) -> None:
    """Nothing a page writes there moves a value."""
    html = f'<table><tr><th>A<th>B<tr><td colspan="{span}" rowspan="{span}">x<td>1<tr><td>y<td>2</table>'

    assert text_of(html).splitlines()[2:] == ["| x | 1 |", "| y | 2 |"]


def test_each_part_of_a_long_table_says_its_columns_again() -> None:
    """No passage holds rows whose header stands in another one."""
    rows = "".join(f"<tr><td>host-{n:03}<td>10.0.0.{n}<td>rack {n}" for n in range(200))
    blocks = extract_html(f"<table><tr><th>Name<th>Address<th>Place{rows}</table>".encode()).blocks

    assert len(blocks) > 3
    assert {block.kind for block in blocks} == {"table"}
    assert all(block.text.startswith("| Name | Address | Place |\n| --- |") for block in blocks)
    assert max(count_tokens(block.text) for block in blocks) <= 480
    assert "".join(block.text for block in blocks).count("| host-") == 200


def test_what_hangs_down_is_not_said_without_end() -> None:
    """A page of a few megabytes whose cells span everything does not become one of gigabytes."""
    wide = "".join(f"<td rowspan=65534>{'x' * 1000}" for _ in range(100))
    rows = "<tr><td>y<td>z" * 5_000

    assert len(text_of(f"<table><tr><th>A<th>B<tr>{wide}{rows}</table>")) < 10_000_000


def test_a_table_of_empty_cells_is_none() -> None:
    """Nothing is left of it."""
    assert text_of("<table><tr><td><td rowspan=2></table><p>x</p>") == "x"
