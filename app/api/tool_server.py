"""The MCP server: its tools, listed and called, for any transport."""

from __future__ import annotations

from typing import Any

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import ValidationError

from app.api.deps import Edge
from app.api.tools import TOOLS
from app.core.errors import DocuMindError

_INSTRUCTIONS = (
    "Two libraries: `public` (encyclopedia articles) and `papers` (the user's own documents). Use"
    " `ask` for a question that wants"
    " an answer with checked citations, `search` for passages to read yourself, `check` to see"
    " which sentences of"
    " a text the documents hold, `get_document` for a document's text."
)


def make_server(edge: Edge, version: str) -> Server[Any]:
    """Return an MCP server with the tools, for any transport.

    Args:
        edge: What the tools work on.
        version: To report.
    """

    async def list_tools(
        _: ServerRequestContext[Any], page: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del page  # they fit on one
        return ListToolsResult(tools=[tool.listing() for tool in TOOLS.values()])

    async def call_tool(
        _: ServerRequestContext[Any], asked: CallToolRequestParams
    ) -> CallToolResult:
        return await _call(edge, asked)

    return Server(
        "documind",
        version=version,
        title="DocuMind",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(edge: Edge, asked: CallToolRequestParams) -> CallToolResult:
    """Run a tool. Errors that a model can correct become the tool's error text."""
    tool = TOOLS.get(asked.name)
    if tool is None:
        raise MCPError(
            INVALID_PARAMS, f"there is no tool {asked.name!r}; the tools are {', '.join(TOOLS)}"
        )
    try:
        result = await tool.call(edge, asked.arguments or {})
    except DocuMindError as error:
        return _failed(f"{error.code}: {error.message}")
    except ValidationError as error:
        found = (
            f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"
            for one in error.errors()[:20]
        )
        return _failed(f"invalid_input: {'; '.join(found)}")
    return CallToolResult(
        content=[TextContent(text=result.text)], structured_content=dict(result.data)
    )


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)
