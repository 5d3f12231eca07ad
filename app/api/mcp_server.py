"""The tools of the MCP door: search, ask, check, get_document. They only read.

References:
    https://modelcontextprotocol.io/specification (tools)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Generic, TypeVar

from anyio import to_thread
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
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, ValidationError

from app.answer.records import AnswerRecord
from app.api.deps import Edge
from app.api.middleware.access import ANYONE, caller_of
from app.api.routes import documents, questions
from app.api.routes import documents as papers
from app.api.schemas.base import Tolerant
from app.api.schemas.documents import DocumentReply
from app.api.schemas.questions import (
    MOST_CHARACTERS,
    CheckRequest,
    FilterFields,
    QueryRequest,
    SearchQuery,
    Tag,
)
from app.api.streaming import Pump, finals, last_item
from app.client import as_text
from app.core.access import Caller, KeyScope
from app.core.errors import Busy, DocuMindError
from app.core.labels import MOST_TAGS, Condition
from app.core.types import Library, LibraryName, Mode, Scope

_MAX_TEXT_CHARACTERS = 20_000
"""Of one call; a model that wants more asks for the next part."""
_A = TypeVar("_A", bound=BaseModel)


_LIBRARY = Field(
    None, description="where to look, null: where the user's own documents are (DEFAULT_LIBRARY)"
)


class Narrowed(Tolerant):
    """Which documents are asked."""

    tags: list[Tag] = Field(
        default_factory=list, max_length=MOST_TAGS, description="only documents with one of these"
    )
    metadata: list[Annotated[str, Field(max_length=600)]] = Field(
        default_factory=list,
        max_length=MOST_TAGS,
        description="only documents whose own metadata is so: KEY=VALUE or KEY=FROM..TO",
    )
    collection: Tag | None = Field(None, description="only what this saved filter allows")

    def given(self) -> dict[str, Any]:
        """Return the fields as a search takes them."""
        return {"tags": self.tags, "metadata": self.metadata, "collection": self.collection}


class SearchArguments(Narrowed):
    """The query of a search."""

    query: Annotated[str, Field(min_length=1, max_length=4000, description="words or a question")]
    library: Scope | None = _LIBRARY
    limit: Annotated[int, Field(ge=1, le=20, description="passages to return")] = 5


class AskArguments(Narrowed):
    """The question to answer."""

    question: Annotated[
        str, Field(min_length=1, max_length=4000, description="a complete question")
    ]
    library: Scope | None = _LIBRARY
    mode: Mode = Field("general", description="mode of the answer")


class GetDocumentArguments(Tolerant):
    """Which characters of which document."""

    library: LibraryName
    document: Annotated[
        str, Field(min_length=1, max_length=1024, description="doc_id, file name or title")
    ]
    start: Annotated[
        int, Field(ge=0, le=2**31, description="first character, in Unicode code points")
    ] = 0
    length: Annotated[
        int, Field(ge=1, le=_MAX_TEXT_CHARACTERS, description="characters to return")
    ] = _MAX_TEXT_CHARACTERS


class CheckArguments(Tolerant):
    """The text to check."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_MAX_TEXT_CHARACTERS,
            description="sentences to check against documents",
        ),
    ]
    library: Scope | None = Field(
        None,
        description="where to look, null: as in `ask`; with `against`: where to look for a better"
        " source of sentences that it does not hold, null: nowhere",
    )
    against: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)] | None = Field(
        None, description="check the sentences against this text instead of a library"
    )
    judge: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="ask this model too; its verdict is shown next to the check's own"
    )


def _told(text: str, data: Mapping[str, object]) -> CallToolResult:
    """Return text for a model, and the same as data for programs."""
    return CallToolResult(content=[TextContent(text=text)], structured_content=dict(data))


@dataclass(frozen=True, slots=True)
class _Tool(Generic[_A]):
    """One tool: its name, what it says of itself, its arguments, and what it does."""

    name: str
    title: str
    description: str
    arguments: type[_A]
    scope: KeyScope
    """Which a key needs for it."""
    run: Callable[[Edge, Caller, _A], Awaitable[CallToolResult]]

    def listing(self) -> Tool:
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )


async def _search(edge: Edge, caller: Caller, asked: SearchArguments) -> CallToolResult:
    wanted = SearchQuery(q=asked.query, library=asked.library, limit=asked.limit, **asked.given())
    found = await to_thread.run_sync(
        questions.search, edge.startup.services(), edge, caller, wanted
    )
    passages = [
        f"[{n}] {hit.title}, {hit.section or 'no section'} (library {hit.library}, document"
        f" {hit.doc_id}, characters"
        f" {hit.start} to {hit.end}{_warning(hit.flags)})\n{hit.text}"
        for n, hit in enumerate(found.hits, 1)
    ]
    return _told(
        "\n\n".join(passages) or "Nothing was found.", found.model_dump(mode="json", by_alias=True)
    )


def _warning(flags: Sequence[str]) -> str:
    """Return a document's warning for a model to read first; empty for most."""
    return f", flagged: {', '.join(flags)}" if flags else ""


async def _ask(edge: Edge, caller: Caller, asked: AskArguments) -> CallToolResult:
    metadata = {c.key: c.given for c in map(Condition.written, asked.metadata)}
    wanted = QueryRequest(
        question=asked.question,
        library=asked.library,
        query_mode=asked.mode,
        filters=FilterFields(**{**asked.given(), "metadata": metadata}),
        trace="none",
    )
    services = edge.startup.services()
    library = await to_thread.run_sync(edge.asked, services, caller, asked.library)
    question = wanted.to_question(library, edge.settings.flare_active_retrieval)
    question = await to_thread.run_sync(questions.collected, services, wanted.filters, question)
    rag = edge.answering(services)

    answer = await last_item(
        Pump(lambda cancel: finals(rag.stream(question, cancel), lambda found: found), edge.streams)
    )
    if answer is None:
        raise Busy("the answer was stopped before its end; ask again", retry_after_s=1)
    sources = [
        f"[{item.n}] {item.hit.passage.document.title} (library"
        f" {item.hit.passage.chunk.library.value}, document"
        f" {item.hit.passage.chunk.doc_id}{_warning(item.hit.passage.document.flags)})"
        for item in answer.evidence
        if any(
            citation.n == item.n for sentence in answer.sentences for citation in sentence.citations
        )
    ]
    notices = [f"Note: {notice.message}" for notice in answer.notices]
    return _told(
        "\n".join([answer.text, "", *sources, *notices]).strip(),
        AnswerRecord.of(answer).json_values(),
    )


async def _get_document(edge: Edge, caller: Caller, asked: GetDocumentArguments) -> CallToolResult:
    services, library = edge.startup.services(), caller.library(Library(asked.library))

    def read() -> CallToolResult:
        doc_id = papers.resolve(services, library, asked.document)
        document = DocumentReply.model_validate(services.catalog.document(library, doc_id))
        end = max(asked.start, min(asked.start + asked.length, document.characters))
        span = documents.document_text(services, library, doc_id, asked.start, end)
        more = f"\n\n(characters {span.start} to {span.end} of {span.length})"
        return _told(
            f"# {document.title}{_warning(document.flags)}\n\n{span.text}{more}",
            {"document": document.model_dump(mode="json"), **asdict(span)},
        )

    return await to_thread.run_sync(read)


async def _check(edge: Edge, caller: Caller, asked: CheckArguments) -> CallToolResult:
    wanted = CheckRequest(
        text=asked.text, library=asked.library, against=asked.against, judge=asked.judge
    )
    services = edge.startup.services()
    report = await edge.checks.run(partial(questions.checked, services, edge, caller, wanted))
    data = report.model_dump(mode="json")
    return _told(as_text(data) or "There is no sentence in it.", data)


TOOLS: Mapping[str, _Tool[Any]] = {
    tool.name: tool
    for tool in (
        _Tool(
            "search",
            "Search",
            "Find passages in the libraries, best first, each with its place.",
            SearchArguments,
            "read",
            _search,
        ),
        _Tool(
            "ask",
            "Ask",
            "Answer a question from the libraries. Every [n] was checked against the passage it"
            " names; without enough evidence the"
            " answer says so.",
            AskArguments,
            "ask",
            _ask,
        ),
        _Tool(
            "check",
            "Check a text",
            "Check every sentence of a text against the libraries, or against another text:"
            " supported, weak (close to a place, not confirmed), contradicted or not found, with"
            " the place. A model can judge too.",
            CheckArguments,
            "ask",
            _check,
        ),
        _Tool(
            "get_document",
            "Read a document",
            "Return a document's text, or a part of it.",
            GetDocumentArguments,
            "read",
            _get_document,
        ),
    )
}


_INSTRUCTIONS = (
    "Two libraries: `public` (encyclopedia articles) and `papers` (the user's own documents). Use"
    " `ask` for a question that wants"
    " an answer with checked citations, `search` for passages to read yourself, `check` to see"
    " which sentences of"
    " a text the documents hold, `get_document` for a document's text."
)


def make_server(edge: Edge, version: str) -> Server[Any]:
    async def list_tools(
        context: ServerRequestContext[Any], page: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del page  # they fit on one
        caller = _caller(context)
        usable = (tool for tool in TOOLS.values() if caller.may(tool.scope))
        return ListToolsResult(tools=[tool.listing() for tool in usable])

    async def call_tool(
        context: ServerRequestContext[Any], asked: CallToolRequestParams
    ) -> CallToolResult:
        return await _call(edge, _caller(context), asked)

    return Server(
        "documind",
        version=version,
        title="DocuMind",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _caller(context: ServerRequestContext[Any]) -> Caller:
    """Return whose request it is; within this process no key is asked for."""
    return ANYONE if context.request is None else caller_of(context.request.scope)


async def _call(edge: Edge, caller: Caller, asked: CallToolRequestParams) -> CallToolResult:
    """Run a tool. Errors that a model can correct become the tool's error text."""
    tool = TOOLS.get(asked.name)
    if tool is None:
        raise MCPError(
            INVALID_PARAMS, f"there is no tool {asked.name!r}; the tools are {', '.join(TOOLS)}"
        )
    try:
        caller.require(tool.scope, every_library=False)
        return await tool.run(edge, caller, tool.arguments.model_validate(asked.arguments or {}))
    except DocuMindError as error:
        return _failed(f"{error.code}: {error.message}")
    except ValidationError as error:
        found = (
            f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"
            for one in error.errors()[:20]
        )
        return _failed(f"invalid_input: {'; '.join(found)}")


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)
