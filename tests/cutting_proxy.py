"""A proxy that breaks event streams off: every one after some bytes of its body, until it has cut often enough.

Other answers pass untouched. It stands between a browser and the server, as a flaky network does.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

STREAM = b"text/event-stream"
READ_S = 0.1
"""From the last byte to the cut: a browser drops what it has not yet read when a connection is reset."""


@dataclass
class CuttingProxy:
    """`after` holds how many bytes each stream may still pass, one number per stream; then all of them pass."""

    target: int
    after: list[int]
    port: int = 0
    cuts: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _ways: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, both ways, until either end closes it or it is cut."""
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ways = [asyncio.create_task(self._pass(reader, forth)), asyncio.create_task(self._pass_back(back, writer))]
        self._ways.update(ways)
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        self._ways.difference_update(ways)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        forth.close()
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left: int | None = None
        while data := await reader.read(65536):
            head, end, _ = data.partition(b"\r\n\r\n")
            if left is None and self.after and STREAM in head:
                left = self.after.pop(0) + len(head) + len(end)
            if left is not None and len(data) >= left:
                writer.write(data[:left])
                await writer.drain()
                await asyncio.sleep(READ_S)
                self.cuts += 1
                _reset(writer)
                return
            left = None if left is None else left - len(data)
            writer.write(data)
            await writer.drain()

    def run(self, started: threading.Event) -> None:
        """Serves until the loop is stopped; in a thread of its own."""

        async def begin() -> None:
            server = await asyncio.start_server(self.carry, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            with suppress(asyncio.CancelledError):
                await server.serve_forever()

        self._main = self._loop.create_task(begin())
        self._loop.run_until_complete(self._main)
        for way in self._ways:
            way.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.1))  # connections notice, and close
        self._loop.close()

    def stop(self) -> None:
        """Ends `run`."""
        self._loop.call_soon_threadsafe(self._main.cancel)


def _reset(writer: asyncio.StreamWriter) -> None:
    plain = writer.get_extra_info("socket")
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def cutting(target: int, after: Sequence[int]) -> Iterator[CuttingProxy]:
    """A proxy before the server at port `target`."""
    proxy, started = CuttingProxy(target, list(after)), threading.Event()
    thread = threading.Thread(target=proxy.run, args=(started,), daemon=True)
    thread.start()
    assert started.wait(10), "the proxy did not start"
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join(10)
