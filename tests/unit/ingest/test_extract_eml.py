"""Mail: what a reader of mail sees, and the text of what hangs on it."""

import email.policy
import os
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from app.ingest.blocks import Extraction
from app.ingest.extract.dispatch import SizeLimits
from tests.unit.ingest.files import put, read, reason_of
from tests.unit.ingest.office import rows, workbook

Taken = Callable[[EmailMessage], Extraction]


def mail(body: str = "Hello Mara,\n\nsee below.\n", subject: str = "Pump", **headers: str) -> EmailMessage:
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"], message["To"] = "Jörg Müller <jm@example.org>", "mara@example.org"
    message["Date"], message["Message-ID"] = "Fri, 14 Feb 2025 08:15:00 +0100", "<1@example.org>"
    message["Subject"] = subject
    for name, value in headers.items():
        message[name] = value
    message.set_content(body)
    return message


HEAD = "From: Jörg Müller <jm@example.org>\nTo: mara@example.org\nDate: 2025-02-14 08:15 +0100"


@pytest.fixture
def taken(tmp_path: Path) -> Taken:
    return lambda message: read(put(tmp_path, "mail", message.as_bytes()), "stored")


def test_a_message_is_its_subject_people_date_and_text(taken: Taken) -> None:
    """Encoded words and transfer encodings are undone; found by its headers, whatever it is called."""
    extraction = taken(mail("Grüße aus der Küche, " * 12, "Wärmepumpe: " * 9, Cc="a@example.org"))

    assert extraction.title == ("Wärmepumpe: " * 9).strip()
    assert extraction.text.startswith(f"# {extraction.title}\n\nFrom: Jörg Müller <jm@example.org>\n")
    assert "\nCc: a@example.org\nDate: 2025-02-14 08:15 +0100\n\nGrüße aus" in extraction.text
    assert (extraction.mime, extraction.encoding) == ("message/rfc822", "utf-8")


def test_of_two_versions_the_plain_one_is_read_unless_it_is_a_notice(taken: Taken) -> None:
    """HTML only where it says much more; a message of HTML alone is read as a page."""
    both = mail("The pump leaks.")
    both.add_alternative("<p>The <b>pump</b> leaks.</p>", subtype="html")
    notice = mail("See HTML.")
    notice.add_alternative(f"<h2>News</h2><p>{'The pump was repaired. ' * 9}</p>", subtype="html")
    notice.get_payload()[1].add_related(b"GIF8", "image", "gif", cid="<logo>", filename="logo.gif")
    alone = mail()
    alone.set_content("<table><tr><td>a</td><td>b</td></tr></table><p>c</p>", subtype="html")

    assert taken(both).text == f"# Pump\n\n{HEAD}\n\nThe pump leaks."
    assert "## News\n\nThe pump was" in taken(notice).text
    assert "See HTML" not in taken(notice).text
    assert "logo" not in taken(notice).text
    assert taken(alone).text.endswith("| a | b |\n| --- | --- |\n\nc")


def test_attachments_are_sections_and_what_cannot_be_read_is_named(taken: Taken, tmp_path: Path) -> None:
    """Each by its own true type; headings go below the attachment's name, code keeps one fence."""
    message = mail()
    message.add_attachment("# Plan\n\nDig.\n\n```sh\nrun\n```\n", filename="plän.md")
    message.add_attachment(
        workbook(tmp_path / "w", rows("A b|C d", "x|1")).read_bytes(), "application", "x", filename="w.bin"
    )
    message.add_attachment(b"\x89PNG\r\n\x1a\n" + bytes(60), "image", "png", filename="photo.png")
    message.add_attachment(b"%PDF-1.7\nbroken", "application", "pdf", filename="offer.pdf")
    message.add_attachment(b"", "text", "plain", filename="none.txt")
    message.add_attachment(b"\x00\x01\x02\x03" * 9, "application", "octet-stream")

    assert taken(message).text.partition("see below.\n\n")[2] == (
        "## plän.md\n\n### Plan\n\nDig.\n\n```\nrun\n```\n\n"
        "## w.bin\n\n### S1\n\n| A b | C d |\n| --- | --- |\n| x | 1 |\n\n"
        "## Not read\n\n- photo.png: not a kind that is read\n- offer.pdf: damaged\n- none.txt: empty\n"
        "- attachment (application/octet-stream): not a kind that is read"
    )


def test_attached_messages_are_read_down_to_a_depth(taken: Taken) -> None:
    """Each is a section with its own people; the one too deep is named."""
    message = mail("innermost", "Level 6")
    for level in range(5, 0, -1):
        outer = mail(f"text {level}", f"Level {level}")
        outer.add_attachment(message)
        message = outer

    text = taken(message).text

    assert [line for line in text.split("\n") if line.startswith("#")] == [
        "# Level 1", "## Level 2", "### Level 3", "#### Level 4", "## Not read",
    ]  # fmt: skip
    assert "text 4" in text
    assert text.endswith("- Level 5: one too many")


def test_headers_that_nobody_should_write_are_read_all_the_same(tmp_path: Path) -> None:
    """Raw bytes, unknown character sets, broken words, a date that is none, a name in two encodings."""
    data = (
        b"From: J\xf6rg <j@example.org>\r\nTo: =?x-none?q?a=FC?= =?utf-8?b?w6Q?=\r\n"
        b"Subject: =?utf-8?b?abc?= G\xc3\xbc\r\nDate: soon\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=nothing\r\n\r\nText \xe4\r\n"
    )

    extraction = read(put(tmp_path, "a", data))

    assert "From: Jörg <j@example.org>\nTo: aüä\nDate: soon\n\nText ä" in extraction.text
    assert extraction.title.endswith(" Gü")
    assert extraction.encoding == "cp1252"


def test_locked_and_empty_messages_have_their_reasons(tmp_path: Path) -> None:
    """Encrypted mail, both kinds; a message of a subject only."""
    head = b"From: a@example.org\nMIME-Version: 1.0\nContent-Type: %s; boundary=b\n\n"
    locked = head + b"--b\nContent-Type: a/b\n\nx\n--b--\n"

    assert reason_of(put(tmp_path, "a", locked % b"multipart/encrypted")) == "encrypted"
    assert reason_of(put(tmp_path, "a", locked % b"application/pkcs7-mime")) == "encrypted"
    assert reason_of(put(tmp_path, "a.eml", b"Subject: only\n\n")) == "no_text"


def test_more_attachments_than_are_read_are_named_up_to_a_number(taken: Taken) -> None:
    """A hundred are read, the next two hundred named, the rest counted."""
    crowded = mail()
    for number in range(310):
        crowded.add_attachment(f"text {number}", filename=f"{number}.txt")

    text = taken(crowded).text

    assert "## 99.txt\n\ntext 99\n\n## Not read\n\n- 100.txt: one too many\n" in text
    assert text.endswith("- 299.txt: one too many\n- and 10 more")


def test_endless_mail_is_too_long(tmp_path: Path) -> None:
    """More parts than a mail has; more bytes than are read."""
    head = b"From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    path = put(tmp_path, "a", head + b"--b\n\nx\n" * 2_001)

    assert reason_of(path) == "too_long"
    os.truncate(path, 100 * 1024 * 1024 + 1)
    assert reason_of(path) == "too_long"


def test_an_attachment_that_is_too_long_costs_only_itself(tmp_path: Path) -> None:
    """All of them together have half of what a document may hold."""
    message = mail()
    for number in range(3):
        message.add_attachment("words " * 100, filename=f"{number}.txt")

    text = read(put(tmp_path, "a", message.as_bytes()), limits=SizeLimits(max_chars=2600)).text

    assert "## 1.txt" in text
    assert text.endswith("## Not read\n\n- 2.txt: too long")


def test_a_locked_message_inside_another_is_named(taken: Taken) -> None:
    """The rest is read; an attached message without a subject goes by a name that says what it is."""
    inner = EmailMessage()
    inner["Content-Type"] = "application/pkcs7-mime"
    outer = mail()
    outer.add_attachment(inner)

    assert taken(outer).text.endswith("- attachment (message/rfc822): needs a password")


@pytest.mark.parametrize(
    ("name", "data", "mime"),
    [
        ("note.txt", b"From: Mara\nTo: me\nSubject: x\n\nHi", "text/plain"),
        ("note.eml", b"From: Mara\nTo: me\nSubject: x\n\nHi", "message/rfc822"),
        ("a.txt", b"Return-Path: <a>\r\nReceived: by x\r\n\tfor y\r\nFrom: a@b\r\n\r\nHi", "message/rfc822"),
        ("a.py", b"From: x\nReceived = 1\n\nx", "text/x-python"),
        ("a.md", b"---\nFrom: x\nReceived: y\n---\n\nx", "text/markdown"),
    ],
)
def test_mail_is_known_by_fields_that_programs_write(tmp_path: Path, name: str, data: bytes, mime: str) -> None:
    """A note that begins like a letter stays a note, unless its name says that it is mail."""
    assert read(put(tmp_path, "stored", data), name).mime == mime
