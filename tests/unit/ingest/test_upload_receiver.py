"""A multipart body taken apart while it arrives: the same whatever the pieces, each file with its own outcome."""

from pathlib import Path

import pytest

from app.errors import InvalidInputError
from app.ingest.stored_files import StoredFiles
from app.ingest.uploads import MAX_FILES, Arrival, UploadReceiver

BOUNDARY = b"limit"


def part(name: str, content: bytes, field: str = "files") -> bytes:
    head = f'--limit\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\nContent-Type: x/y\r\n\r\n'
    return head.encode() + content + b"\r\n"


def body(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--limit--\r\n"


def receive(tmp_path: Path, data: bytes, size: int = 1 << 20) -> list[Arrival]:
    return feed_all(UploadReceiver(BOUNDARY, StoredFiles(tmp_path), 1), data, size)


def feed_all(receiver: UploadReceiver, data: bytes, size: int) -> list[Arrival]:
    for start in range(0, len(data), size):
        receiver.feed(data[start : start + size])
    return receiver.finish()


def test_files_are_the_same_whatever_the_pieces(tmp_path: Path) -> None:
    """Split at every byte, or not at all."""
    data = body(part("a.md", b"first\r\n--limi\r\n"), part("b/c.md", b""), part("d.bin", bytes(range(256))))
    results: list[list[tuple[str, bytes]]] = []
    for size in (1, 2, 7, len(data)):
        arrivals = receive(tmp_path / str(size), data, size)
        results.append([(arrival.name, arrival.temp.path.read_bytes()) for arrival in arrivals if arrival.temp])
    assert all(result == results[0] for result in results)
    assert results[0] == [("a.md", b"first\r\n--limi\r\n"), ("b/c.md", b""), ("d.bin", bytes(range(256)))]


def test_a_file_that_is_too_large_does_not_lose_the_others(tmp_path: Path) -> None:
    """Its bytes are dropped as they come; nothing of it stays on disk."""
    big = bytes(1024 * 1024 + 1)
    before, large, after = receive(tmp_path, body(part("a.md", b"a"), part("big", big), part("b.md", b"b")), 65536)
    assert before.temp is not None
    assert after.temp is not None
    assert (large.temp, large.error and large.error.code) == (None, "upload_too_large")
    assert len(list((tmp_path / "tmp").iterdir())) == 2
    exact = receive(tmp_path / "exact", body(part("big", bytes(1024 * 1024))))
    assert exact[0].temp is not None


def test_a_browsers_empty_choice_is_no_file(tmp_path: Path) -> None:
    """A form sent without choosing has one nameless, empty part."""
    with pytest.raises(InvalidInputError) as caught:
        receive(tmp_path, body(part("", b"")))
    assert caught.value.code == "upload_empty"


def test_names_are_decoded_as_browsers_send_them_and_cleaned(tmp_path: Path) -> None:
    """UTF-8; the quote and line ends percent-encoded, the percent sign not."""
    names = ["100%25 \u00fc\u4e2d.md", "a%22b%0D%0Ac.md", "../../x.md"]
    arrivals = receive(tmp_path, body(*(part(name, b"x") for name in names)))
    assert [arrival.name for arrival in arrivals] == ["100%25 \u00fc\u4e2d.md", 'a"bc.md', "x.md"]


@pytest.mark.parametrize(
    "data",
    [
        b"no multipart at all",
        body(part("a.md", b"x"))[:-4],
        part("a.md", b"x")[:40],
        body(part("a.md", b"x", field="other")),
        b'--limit\r\nContent-Disposition: form-data; name="files"\r\n\r\nno file\r\n--limit--\r\n',
        b"--limit\r\nX: " + b"y" * 20_000 + b"\r\n\r\nx\r\n--limit--\r\n",
        b"--limit\r\n" + b"X: y\r\n" * 100 + b"\r\nx\r\n--limit--\r\n",
        b"--limit\r\n\r\nno headers\r\n--limit--\r\n",
    ],
)
def test_a_body_that_is_no_upload_is_refused_and_leaves_nothing(tmp_path: Path, data: bytes) -> None:
    """Broken off, another field, endless headers."""
    receiver = UploadReceiver(BOUNDARY, StoredFiles(tmp_path), 1)
    with pytest.raises(InvalidInputError) as caught:
        feed_all(receiver, data, 512)
    assert caught.value.code == "upload_malformed"
    receiver.abort()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_boundary_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    """Too long for any browser."""
    with pytest.raises(InvalidInputError):
        UploadReceiver(b"x" * 5000, StoredFiles(tmp_path), 1)


def test_more_files_than_a_request_may_hold_are_refused(tmp_path: Path) -> None:
    """All of them: nobody could tell which ones came."""
    receiver = UploadReceiver(BOUNDARY, StoredFiles(tmp_path), 1)
    with pytest.raises(InvalidInputError) as caught:
        receiver.feed(body(*(part(f"{number}", b"") for number in range(MAX_FILES + 1))))
    assert caught.value.code == "upload_too_many"
    receiver.abort()
    assert list((tmp_path / "tmp").iterdir()) == []
