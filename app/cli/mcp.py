"""`documind mcp`: the server's MCP tools over stdio, for clients that need it.

Such clients start a process instead of opening a connection. Only a bridge: tools and checks are
those of /mcp, so both doors always offer the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from app.cli.connection import connect
from app.settings import Settings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server import Server

_CONNECT_TIMEOUT_S = 30.0
_SILENCE_S = 600.0
"""A slow model may think for minutes before its first word."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(serve_stdio)


def serve_stdio() -> None:
    """Offer search, ask, check and get_document to an MCP client over stdio.

    Example: documind mcp
    """
    # The SDK takes a third of a second to import; no other command needs it.
    import anyio  # noqa: PLC0415

    settings = Settings()
    with connect(settings) as client:
        anyio.run(_bridge, f"{client.base_url}/mcp", settings.api_key)


async def _bridge(url: str, api_key: str) -> None:
    """Pass requests on until standard input ends."""
    import httpx2  # noqa: PLC0415  # as above
    from mcp import Client, stdio_server  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    headers = {"X-API-Key": api_key} if api_key else {}
    timeout = httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_SILENCE_S)
    # No proxy of the environment has any business between two processes of this machine.
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as remote,
        stdio_server() as (received, sent),
    ):
        server = _mirror(remote)
        await server.run(received, sent, server.create_initialization_options())


def _mirror(remote: Client) -> Server[Any]:
    """Return a server that offers what the one behind `remote` does."""
    from mcp.server import Server  # noqa: PLC0415  # as above
    from mcp.server.context import ServerRequestContext  # noqa: PLC0415
    from mcp_types import (  # noqa: PLC0415
        CallToolRequestParams,
        CallToolResult,
        ListToolsResult,
        PaginatedRequestParams,
    )

    async def list_tools(
        _: ServerRequestContext[Any], page: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return await remote.list_tools(cursor=page.cursor if page else None)

    async def call_tool(
        _: ServerRequestContext[Any], asked: CallToolRequestParams
    ) -> CallToolResult:
        return await remote.call_tool(asked.name, asked.arguments)

    about = remote.server_info  # optional in the protocol
    return Server(
        about.name if about else "documind",
        version=about.version if about else "",
        instructions=remote.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
