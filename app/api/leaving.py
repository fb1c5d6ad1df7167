"""A response whose work ends when the client leaves, before its head was sent too.

Owns noticing that. Used by the `/v1` routes, where an answer is the client's alone; a turn of a chat is only watched
(`app.api.stream`) and goes on.
"""

import asyncio
import math

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.stream import STALL_S, until_gone


class LeavableResponse(Response):
    """Runs `work` until it is done or the client has left, then `ended`, whatever happened. A client whose connection
    takes no byte for `stall_s` seconds counts as gone: a model server would be kept busy for nobody."""

    stall_s = STALL_S

    def __init__(self) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One response. What `work` raises is raised, but for a connection that broke."""

        loop, sending_since = asyncio.get_running_loop(), math.inf

        async def noted(message: Message) -> None:
            nonlocal sending_since
            sending_since = loop.time()
            await send(message)
            sending_since = math.inf

        async def stalled() -> None:
            while loop.time() - sending_since < self.stall_s:  # noqa: ASYNC110 - a clock per message costs more
                await asyncio.sleep(self.stall_s / 4)

        working = asyncio.create_task(self.work(scope, receive, noted))
        others = asyncio.create_task(until_gone(receive)), asyncio.create_task(stalled())
        try:
            await asyncio.wait({working, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, *others):
                task.cancel()
            results = await asyncio.gather(working, *others, return_exceptions=True)
            self.ended()
        if isinstance(results[0], Exception) and not isinstance(results[0], OSError):
            raise results[0]

    async def work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the whole response; cancelled when the client leaves."""
        raise NotImplementedError

    def ended(self) -> None:
        """The response is over."""
