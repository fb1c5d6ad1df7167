"""A TCP proxy that lets so many bytes of an answer through and then breaks the connection off, both ways."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

CHUNK = 64 * 1024


@dataclass
class ByteProxy:
    """The running proxy. `limits` are taken by the connections to come, one each; without one nothing is cut."""

    port: int = 0
    limits: list[int] = field(default_factory=list)
    cuts: int = 0

    async def _serve(self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limit = self.limits.pop(0) if self.limits else None
        upstream, down = await asyncio.open_connection("127.0.0.1", target)
        sending = asyncio.create_task(_copy(reader, down))
        try:
            left = limit
            while left is None or left > 0:
                data = await upstream.read(CHUNK if left is None else min(left, CHUNK))
                if not data:
                    return
                writer.write(data)
                await writer.drain()
                left = None if left is None else left - len(data)
            self.cuts += 1
            _reset(down)
        except ConnectionError:
            pass  # the reader left first
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            writer.close()
            down.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def byte_proxy(target: int) -> AsyncGenerator[ByteProxy]:
    """Runs the proxy in front of a port of this machine."""
    proxy = ByteProxy()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await proxy._serve(target, reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        await asyncio.gather(*tasks, return_exceptions=True)
