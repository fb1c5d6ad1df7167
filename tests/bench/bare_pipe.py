"""A program that copies bytes between a client and a server, and does nothing else: what any proxy costs here at least.

    python -m tests.bench.bare_pipe PORT SERVER_PORT

Started by `tests.bench.proxy_cost`.
"""

import asyncio
import sys


class ToServer(asyncio.Protocol):
    """The connection to the server."""

    def __init__(self, client: asyncio.Transport) -> None:
        self.client = client

    def data_received(self, data: bytes) -> None:
        self.client.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.client.close()


class FromClient(asyncio.Protocol):
    """A client's connection; what it sends before the server is reached waits."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.server: asyncio.Transport | None = None
        self.waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.client = transport
        self.connecting = asyncio.create_task(self.connect())

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        self.server, _ = await loop.create_connection(lambda: ToServer(self.client), "127.0.0.1", self.server_port)
        self.server.write(self.waiting)

    def data_received(self, data: bytes) -> None:
        if self.server is None:
            self.waiting += data
        else:
            self.server.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.server is not None:
            self.server.close()


async def main(port: int, server_port: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: FromClient(server_port), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
