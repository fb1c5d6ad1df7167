"""Uploads on their way in: the request's body streams to disk, file by file, under limits.

Owns the request side for API and pages alike: content type, announced and counted length, what a browser that goes away
leaves behind. Taking the body apart is `app.ingest.uploads`', making rows `app.ingest.sources`'.
"""

import logging
from dataclasses import dataclass

import anyio.to_thread
from fastapi import Request
from python_multipart.multipart import parse_options_header

from app.edge.deps import Services
from app.errors import AppError, InvalidInputError, TooLargeError
from app.ingest.sources import Outcome
from app.ingest.uploads import Arrival, UploadReceiver
from app.logs import kv
from app.store import documents
from app.store.documents import DocumentRow

REQUEST_FILES = 20
"""A request may be as long as this many files at their limit."""

PIECE_BYTES = 256 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of one file: its row and outcome, or an error of its own."""

    name: str
    row: DocumentRow | None
    outcome: Outcome | None
    error: AppError | None


async def receive_uploads(request: Request, services: Services, user_id: int) -> list[Uploaded]:
    """Takes every file of the multipart field `files`, each with its own outcome, in order.

    Raises:
        InvalidInputError: `upload_malformed`, `upload_empty`, `upload_too_many`: nothing was stored.
        TooLargeError: `upload_request_too_large`: nothing was stored.
        NoSpaceError: when the disk has no room for what is announced; nothing was read.
    """
    limit = REQUEST_FILES * services.settings.upload_max_mb * 1024 * 1024
    boundary = _boundary(request.headers.get("content-type", ""))
    await anyio.to_thread.run_sync(_check_announced, request.headers.get("content-length"), limit, services)
    receiver = UploadReceiver(boundary, services.files, services.settings.upload_max_mb)
    try:
        await _take(request, receiver, limit)
        arrivals = receiver.finish()
        return await anyio.to_thread.run_sync(_add, services, user_id, arrivals)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(receiver.abort)


async def _take(request: Request, receiver: UploadReceiver, limit: int) -> None:
    """Feeds the body from a worker thread, a quarter of a megabyte at a time."""
    seen = 0
    piece = bytearray()
    async for data in request.stream():
        seen += len(data)
        if seen > limit:
            raise TooLargeError("upload_request_too_large", setting="UPLOAD_MAX_MB", params={"limit": limit >> 20})
        piece += data
        if len(piece) >= PIECE_BYTES:
            await anyio.to_thread.run_sync(receiver.feed, bytes(piece))
            piece.clear()
    if piece:
        await anyio.to_thread.run_sync(receiver.feed, bytes(piece))


def _add(services: Services, user_id: int, arrivals: list[Arrival]) -> list[Uploaded]:
    for arrival in arrivals:
        if arrival.error is not None:
            _log.info(kv("upload_refused", name=arrival.name, code=arrival.error.code))
    added = services.sources.add_uploads(user_id, arrivals)
    ids = [item.document_id for item in added if item is not None]
    found = services.database.read(lambda session: documents.get_rows(session, user_id, ids))
    rows = {row.id: row for row in found}
    return [
        Uploaded(
            name=arrival.name,
            row=rows.get(item.document_id) if item is not None else None,
            outcome=item.outcome if item is not None else None,
            error=arrival.error,
        )
        for arrival, item in zip(arrivals, added, strict=True)
    ]


def _check_announced(length: str | None, limit: int, services: Services) -> None:
    announced = int(length) if length is not None and length.isdecimal() else 0
    if announced > limit:
        raise TooLargeError("upload_request_too_large", setting="UPLOAD_MAX_MB", params={"limit": limit >> 20})
    services.files.check_space(announced)


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidInputError("upload_malformed")
    return boundary
