"""A multipart body becomes files on disk while it arrives; nothing is held in memory but the piece at hand.

Owns the limits of one request (bytes of a file, number of files) and gives each file its own outcome, so that one that
is too large does not lose the others. Knows no HTTP: `app.edge.uploads` feeds it from a worker thread.
"""

import errno
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.errors import AppError, InvalidInputError, TooLargeError
from app.ingest.filenames import clean_name
from app.ingest.stored_files import Incoming, NoSpaceError, StoredFiles, TempFile

FIELD = b"files"
MAX_FILES = 1000
HEADER_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Arrival:
    """One file of the request: `temp` where it came whole, else the `error` that is its own."""

    name: str
    temp: TempFile | None
    error: AppError | None = None


class UploadReceiver:
    """Takes a multipart body piece by piece: feed and finish, or `abort`.

    Args:
        boundary: From the request's content type.
        files: Where files go.
        max_mb: The limit of one file, in MiB.
    """

    def __init__(self, boundary: bytes, files: StoredFiles, max_mb: int) -> None:
        self._files = files
        self._max_mb = max_mb
        self._header = (b"", b"")
        self._disposition = b""
        self._arrivals: list[Arrival] = []
        self._current: Incoming | None = None
        self._name = ""
        self._error: AppError | None = None
        self._is_file = False
        self._is_whole = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._header_field,
                    "on_header_value": self._header_value,
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._open,
                    "on_part_data": self._data,
                    "on_part_end": self._close,
                    "on_end": self._end,
                },
                max_header_size=HEADER_BYTES,
            )
        except FormParserError as error:
            raise InvalidInputError("upload_malformed") from error

    def feed(self, data: bytes) -> None:
        """Takes the next piece.

        Raises:
            InvalidInputError: `upload_malformed` or `upload_too_many`; call `abort` then.
        """
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise InvalidInputError("upload_malformed") from error

    def finish(self) -> list[Arrival]:
        """What came, in order.

        Raises:
            InvalidInputError: `upload_malformed` for a body that broke off, `upload_empty` for one without a file.
        """
        if not self._is_whole:
            raise InvalidInputError("upload_malformed")
        if not self._arrivals:
            raise InvalidInputError("upload_empty")
        return self._arrivals

    def abort(self) -> None:
        """Deletes whatever has arrived and was not moved away since."""
        if self._current is not None:
            self._current.drop()
            self._current = None
        for arrival in self._arrivals:
            if arrival.temp is not None:
                arrival.temp.path.unlink(missing_ok=True)

    def _begin(self) -> None:
        self._disposition = b""
        self._header = (b"", b"")
        self._is_file = False

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0] + data[start:end], self._header[1])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0], self._header[1] + data[start:end])

    def _header_end(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = (b"", b"")

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name") != FIELD or b"filename" not in options:
            raise InvalidInputError("upload_malformed")
        raw = options[b"filename"]
        if not raw:
            return
        if len(self._arrivals) >= MAX_FILES:
            raise InvalidInputError("upload_too_many", params={"limit": MAX_FILES})
        self._name = clean_name(_text(raw))
        self._error = None
        self._is_file = True
        self._current = self._files.begin()

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._current is None:
            return
        if self._current.bytes + end - start > self._max_mb * 1024 * 1024:
            self._refuse(TooLargeError("upload_too_large", setting="UPLOAD_MAX_MB", params={"limit": self._max_mb}))
            return
        try:
            self._current.write(memoryview(data)[start:end])
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            self._refuse(NoSpaceError(params={"coming": self._current.bytes, "free": 0}))

    def _refuse(self, error: AppError) -> None:
        if self._current is not None:
            self._current.drop()
        self._current, self._error = None, error

    def _close(self) -> None:
        if self._is_file:
            temp = self._current.done() if self._current is not None else None
            self._arrivals.append(Arrival(self._name, temp, self._error))
        self._current = None

    def _end(self) -> None:
        self._is_whole = True


def _text(raw: bytes) -> str:
    """A file name as browsers send it: UTF-8, with the quote and line ends alone percent-encoded."""
    text = raw.decode("utf-8", "replace")
    return text.replace("%22", '"').replace("%0D", "").replace("%0A", "")
