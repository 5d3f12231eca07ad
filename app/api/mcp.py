"""Serve the MCP tools over streamable HTTP at /mcp; `documind mcp` uses stdio.

Stateless: no session outlives a request, so nothing is lost at a restart and nothing piles up.
Host, origin, key and limits are the middleware's, as on every other path.

References:
    https://modelcontextprotocol.io/specification (streamable HTTP)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from starlette.types import Receive, Scope, Send

from app.api.deps import AppState
from app.core.errors import Busy

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

logger = logging.getLogger(__name__)

RETRY_S = 10.0
"""Between attempts to load the SDK."""

OPENS_WITHIN_S = 10.0
"""How long a request waits for it."""
LOOK_EVERY_S = 0.02
"""How often such a request looks."""


class McpDoor:
    """The ASGI app at /mcp; serves while `open` is entered."""

    def __init__(self, edge: AppState, version: str) -> None:
        self._edge = edge
        self._version = version
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serve until left; the first request loads the SDK, from whichever loop it comes."""
        self._asked, self._loop = asyncio.Event(), asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._serve)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            Busy: The SDK cannot be loaded now, or the server is stopping.
        """
        with anyio.move_on_after(OPENS_WITHIN_S):
            while self._manager is None:
                self._loop.call_soon_threadsafe(self._asked.set)
                await anyio.sleep(LOOK_EVERY_S)
        if self._manager is None:
            raise Busy("the MCP door is not open yet; try again in a moment", retry_after_s=1)
        await self._manager.handle_request(scope, receive, send)

    async def _serve(self) -> None:
        """Run a manager from the first request on; each works once, so every opening makes one."""
        await self._asked.wait()
        while True:
            try:
                manager = await to_thread.run_sync(self._make)
                break
            except OSError:  # too many open files, for one; a half import is made again
                logger.exception(
                    "the MCP door cannot be opened; everything else works, trying again in %.0f s",
                    RETRY_S,
                )
                await anyio.sleep(RETRY_S)
        async with manager.run():
            self._manager = manager
            try:
                await anyio.sleep_forever()
            finally:
                self._manager = None

    def _make(self) -> StreamableHTTPSessionManager:
        # The SDK takes half a second to import, which the first uploads after a start wait for.
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415

        from app.api.mcp_server import make_server  # noqa: PLC0415

        return StreamableHTTPSessionManager(make_server(self._edge, self._version), stateless=True)
