"""What people do to web pages: add them by address, have them fetched again, choose how often.

Owns these operations as whole transactions, with the owner check, and wakes the worker; nothing is fetched here.
Removing a page is `app.ingest.sources`', as for every document. Called by `app.api`, `app.web` and the command line,
always from a worker thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.clock import Clock
from app.errors import AppError, InvalidInputError, NotFoundError
from app.ingest.fetch_address import WebAddress, parse_address
from app.ingest.fetch_errors import FetchError
from app.ingest.fetch_rules import Rules, is_number
from app.ingest.sources import Outcome
from app.store import collections, documents, intake, jobs, web_pages
from app.store.engine import Database, Session
from app.store.web_pages import Refresh

MAX_ADDRESSES = 100
"""Addresses in one request."""


@dataclass(frozen=True, slots=True)
class AddedPage:
    """What became of one address: a document and whether it is new, or an error of its own."""

    url: str
    document_id: int | None = None
    outcome: Outcome | None = None
    error: AppError | None = None


class WebPages:
    """The operations on documents that come from an address.

    Args:
        rules: What is refused at once, where the address names a machine by its number.
        wake: Tells the worker that there is something to do; may do nothing.
    """

    def __init__(self, database: Database, rules: Rules, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = database
        self._rules = rules
        self._clock = clock
        self._wake = wake

    def add(self, user_id: int, urls: Sequence[str], collection_id: int | None = None) -> list[AddedPage]:
        """Gives every address its document, in order; one that is there already is linked, and fetched again where it
        failed. Without `collection_id` they go where uploads go.

        Raises:
            InvalidInputError: `pages_none` or `pages_too_many`.
            NotFoundError: for a collection that is not there or not the user's to change.
            InvalidInputError: `collection_of_folder` for one that follows a folder.
        """
        if not urls:
            raise InvalidInputError("pages_none")
        if len(urls) > MAX_ADDRESSES:
            raise InvalidInputError("pages_too_many", params={"limit": MAX_ADDRESSES})
        read = [self._read(url) for url in urls]
        addresses: dict[str, WebAddress] = {}
        for address in read:
            if isinstance(address, WebAddress):
                addresses.setdefault(address.path, address)

        def work(session: Session) -> dict[str, tuple[int, Outcome]]:
            return self._add(session, self._collection(session, user_id, collection_id), addresses)

        added = self._database.write(work)
        self._wake()
        return [
            AddedPage(url, error=address) if isinstance(address, FetchError) else AddedPage(url, *added[address.path])
            for url, address in zip(urls, read, strict=True)
        ]

    def refresh(self, user_id: int, document_id: int) -> None:
        """Has a page fetched again now; what is here stays until something else has come.

        Raises:
            NotFoundError: when it is not there, not the user's to change, or has no address.
        """

        def work(session: Session) -> None:
            documents.check_writable(session, user_id, document_id)
            if web_pages.find_item(session, document_id) is None:
                raise NotFoundError("document_without_address")
            self._queue(session, [document_id])

        self._database.write(work)
        self._wake()

    def refresh_all(self, user_id: int) -> int:
        """Has every page fetched again that the user may change; returns how many there are."""

        def work(session: Session) -> int:
            found = web_pages.writable_pages(session, user_id)
            self._queue(session, found)
            return len(found)

        found = self._database.write(work)
        self._wake()
        return found

    def set_refresh(self, user_id: int, document_id: int, refresh: Refresh) -> None:
        """Chooses how often a page is fetched again by itself.

        Raises:
            NotFoundError: when it is not there, not the user's to change, or has no address.
        """

        def work(session: Session) -> None:
            documents.check_writable(session, user_id, document_id)
            if not web_pages.set_refresh(session, document_id, refresh, self._clock.now()):
                raise NotFoundError("document_without_address")

        self._database.write(work)
        self._wake()

    def _read(self, url: str) -> WebAddress | FetchError:
        try:
            address = parse_address(url)
            if is_number(address.host):
                self._rules.check(address.host, address.port)
        except FetchError as error:
            return error
        return address

    def _collection(self, session: Session, user_id: int, collection_id: int | None) -> int:
        if collection_id is None:
            return collections.library_id(session, user_id, self._clock.now())
        row = collections.get_collection(session, user_id, collection_id, to_change=True)
        if row.kind != "library":
            raise InvalidInputError("collection_of_folder")
        return row.id

    def _add(
        self, session: Session, collection_id: int, addresses: dict[str, WebAddress]
    ) -> dict[str, tuple[int, Outcome]]:
        now = self._clock.now()
        known = intake.find_files(session, collection_id, "url", list(addresses))
        new = [intake.NewDocument(collection_id, "url", path, "", 0) for path in addresses if path not in known]
        ids = dict(zip((document.path for document in new), intake.add_documents(session, new, now), strict=True))
        web_pages.add_pages(session, {number: addresses[path].text for path, number in ids.items()})
        again = [row.id for row in known.values() if row.status == "failed"]
        for document_id in again:
            intake.requeue(session, document_id, now)
            jobs.drop_failed(session, document_id)
        self._queue(session, [*ids.values(), *again])
        added: dict[str, tuple[int, Outcome]] = {path: (number, "added") for path, number in ids.items()}
        added.update({path: (row.id, "unchanged") for path, row in known.items()})
        return added

    def _queue(self, session: Session, document_ids: Sequence[int]) -> None:
        jobs.enqueue(session, [jobs.fetch_job(number) for number in document_ids], self._clock.now())
        for document_id in document_ids:
            jobs.make_due(session, document_id)
