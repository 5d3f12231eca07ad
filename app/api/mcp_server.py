"""The tools of the MCP door, and its resources, which are the documents.

References:
    https://modelcontextprotocol.io/specification (2025-11-25 and 2026-07-28: tools, resources)
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import mcp_types as types
from anyio import to_thread
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request

from app.answer.records import AnswerRecord, view_of
from app.api.deps import AppState, RequestContext
from app.api.middleware.access import ANYONE, caller_of, changed
from app.api.routes import documents, questions
from app.api.routes.documents import DocumentPage
from app.api.routes.ingest import submitted
from app.api.schemas.base import IngestResponse, Reply, Tolerant
from app.api.schemas.questions import (
    MOST_CHARACTERS,
    FilterFields,
    QueryRequest,
    SearchQuery,
    SearchResponse,
    Tag,
    TextToCheck,
)
from app.api.streaming import Pump, finals, last_item, settled
from app.check_report import as_text
from app.client import NEAREST
from app.core.access import Caller, KeyScope
from app.core.errors import Busy, DocuMindError, InvalidInput, NotFound, TooLarge
from app.core.labels import MOST_LABEL_CHARACTERS, MOST_TAGS, Condition
from app.core.serialization import adapter, json_values
from app.core.types import CheckReport, Document, Heading, Job, Library, LibraryName, Mode, Scope
from app.ingest.names import display_name, source_key
from app.jobs.payloads import IngestPayload, UploadedFile, has_text, report_of

if TYPE_CHECKING:
    from app.bootstrap.services import Services

_MAX_TEXT_CHARACTERS = 20_000
"""Of one call; a model that wants more asks for the next part."""
_AROUND = 120
"""Characters of a line that are shown on each side of what was found in it."""
_R = TypeVar("_R")


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


class ListArguments(Tolerant):
    """Which documents to list."""

    library: LibraryName
    query: Annotated[str, Field(max_length=500, description="part of a title or file name")] = ""
    tag: Annotated[str, Field(max_length=MOST_LABEL_CHARACTERS, description="with this tag")] = ""
    cursor: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="`next_cursor` of the page before"
    )
    limit: Annotated[int, Field(ge=1, le=200, description="documents to return")] = 50


class OfDocument(Tolerant):
    """Which document."""

    library: LibraryName
    document: Annotated[
        str, Field(min_length=1, max_length=1024, description="doc_id, file name or title")
    ]


class GrepArguments(OfDocument):
    """Characters to find in a document."""

    text: Annotated[
        str, Field(min_length=1, max_length=200, description="exact characters; case is ignored")
    ]
    limit: Annotated[int, Field(ge=1, le=100, description="places to return")] = 20


class ReadArguments(OfDocument):
    """Which characters of which document."""

    start: Annotated[
        int, Field(ge=0, le=2**31, description="first character, in Unicode code points")
    ] = 0
    length: Annotated[
        int, Field(ge=1, le=_MAX_TEXT_CHARACTERS, description="characters to return")
    ] = _MAX_TEXT_CHARACTERS


class CiteArguments(OfDocument):
    """The characters to cite, as a hit or `grep` places them."""

    start: Annotated[int, Field(ge=0, le=2**31)]
    end: Annotated[int, Field(ge=1, le=2**31)]


class AddArguments(Tolerant):
    """A text to index as a file."""

    filename: Annotated[
        str, Field(min_length=1, max_length=255, description="replaces the file of this name")
    ]
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    library: LibraryName = "papers"


class OutlineReply(Reply):
    """The headings of a document, in order."""

    doc_id: str
    title: str
    characters: int
    headings: list[Heading]


class Place(Reply):
    """The place of characters, and the line around them."""

    start: int
    end: int
    line: str


class GrepReply(Reply):
    """The first places of a text in a document, and how many there are."""

    doc_id: str
    total: int
    places: list[Place]


class ReadReply(Reply):
    """A part of a document's text."""

    document: Document
    text: str
    start: int
    end: int
    length: int
    revision: int


class CiteReply(Reply):
    """Exact characters of a document, and where they stand."""

    doc_id: str
    library: LibraryName
    title: str
    authors: list[str]
    year: int | None
    section: str = Field(description="the heading above; empty: there is none")
    page: int | None
    quote: str
    start: int
    end: int
    revision: int
    view_url: str = Field(description="relative to the server: the page shows the characters")


class CheckArguments(TextToCheck, extra="ignore"):
    """The text to check."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_MAX_TEXT_CHARACTERS,
            description="sentences to check against documents",
        ),
    ]


def _told(text: str, found: object) -> types.CallToolResult:
    shown = [types.TextContent(text=text)]
    return types.CallToolResult(content=shown, structured_content=json_values(found))


@dataclass(frozen=True, slots=True)
class At:
    """The server that a tool works in, and the caller that it works for."""

    edge: AppState
    caller: Caller
    request: Request | None = None

    @property
    def services(self) -> Services:
        return self.edge.startup.services()

    @property
    def door(self) -> RequestContext:
        return RequestContext(self.edge, self.services, "", self.caller)

    def document(self, asked: OfDocument) -> Document:
        """Return the document that is named.

        Raises:
            Forbidden: It is in a library that the caller may not use.
            NotFound: There is none.
        """
        library = self.caller.library(Library(asked.library))
        services = self.services
        return services.catalog.document(
            library, documents.resolve(services, library, asked.document)
        )


@dataclass(frozen=True, slots=True)
class _Tool:
    """One tool: its name, what it says of itself, its arguments, and what it does."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    scope: KeyScope
    """Which a key needs for it."""
    reply: type
    work: Callable[[At, Any], Awaitable[types.CallToolResult]]

    def listing(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema=adapter(self.reply).json_schema(mode="serialization"),
            annotations=types.ToolAnnotations(
                read_only_hint=self.scope != "write", open_world_hint=False
            ),
        )


TOOLS: dict[str, _Tool] = {}
"""By name, as they are listed."""


async def _in_thread(work: Callable[[At, Any], _R], at: At, asked: BaseModel) -> _R:
    return await to_thread.run_sync(work, at, asked)


def _tool(
    title: str, scope: KeyScope, reply: type
) -> Callable[[Callable[[At, Any], object]], None]:
    """Make a function a tool: its name, arguments and docstring are those that a client sees."""

    def add(work: Callable[[At, Any], object]) -> None:
        name, arguments = work.__name__.removeprefix("_"), get_type_hints(work)["asked"]
        described = " ".join((work.__doc__ or "").split())
        waits: Any = work if iscoroutinefunction(work) else partial(_in_thread, work)
        TOOLS[name] = _Tool(name, title, described, arguments, scope, reply, waits)

    return add


@_tool("Search", "read", SearchResponse)
def _search(at: At, asked: SearchArguments) -> types.CallToolResult:
    """Find passages in the libraries, best first, each with its place."""
    wanted = SearchQuery(q=asked.query, **asked.model_dump(exclude={"query"}))
    found = questions.search(at.door, wanted)
    passages = [
        f"[{n}] {hit.title}, {hit.section or 'no section'} (library {hit.library}, document"
        f" {hit.doc_id}, characters"
        f" {hit.start} to {hit.end}{_warning(hit.flags)})\n{hit.text}"
        for n, hit in enumerate(found.hits, 1)
    ]
    return _told("\n\n".join(passages) or "Nothing was found.", found)


def _warning(flags: Sequence[str]) -> str:
    """Return a document's warning for a model to read first; empty for most."""
    return f", flagged: {', '.join(flags)}" if flags else ""


@_tool("Ask", "ask", AnswerRecord)
async def _ask(at: At, asked: AskArguments) -> types.CallToolResult:
    """Answer a question from the libraries.

    Every [n] was checked against the passage it names; without enough evidence the answer says so.
    """
    metadata = {c.key: c.given for c in map(Condition.written, asked.metadata)}
    wanted = QueryRequest(
        question=asked.question,
        library=asked.library,
        query_mode=asked.mode,
        filters=FilterFields(tags=asked.tags, metadata=metadata, collection=asked.collection),
        trace="none",
    )
    door, streams = at.door, at.edge.streams
    library = await door.asked(asked.library)
    question = wanted.to_question(library, at.edge.settings.flare_active_retrieval)
    question = await to_thread.run_sync(questions.collected, door, wanted.filters, question)
    rag = door.answering()

    answer = await last_item(
        Pump(lambda cancel: finals(rag.stream(question, cancel), lambda found: found), streams)
    )
    if answer is None:
        raise Busy("the answer was stopped before its end; ask again", retry_after_s=1)
    cited = {citation.n for sentence in answer.sentences for citation in sentence.citations}
    sources = [
        f"[{n}] {of.document.title} (library {of.chunk.library.value}, document"
        f" {of.chunk.doc_id}{_warning(of.document.flags)})"
        for n, of in ((item.n, item.hit.passage) for item in answer.evidence)
        if n in cited
    ]
    places = [
        f"- \u201c{near.quote}\u201d ({of.document.title}, library {of.chunk.library.value},"
        f" document {of.chunk.doc_id}, characters {near.start} to {near.end}"
        f"{_warning(of.document.flags)})"
        for near, of in ((near, near.passage) for near in answer.nearest)
    ]
    notices = [f"Note: {notice.message}" for notice in answer.notices]
    said = [answer.text, "", *sources, *([NEAREST, *places] if places else ()), *notices]
    return _told("\n".join(said).strip(), AnswerRecord.of(answer))


@_tool("Check a text", "ask", CheckReport)
async def _check(at: At, asked: CheckArguments) -> types.CallToolResult:
    """Check every sentence of a text against the libraries, or against another text.

    Each is supported, unsure (a place may say it), contradicted or not found, with the
    place. A model can judge too.
    """
    report = await at.edge.checks.run(partial(questions.checked, at.door, asked))
    said = as_text(json_values(report))
    return _told(said or "There is no sentence in it.", report)


@_tool("List documents", "read", DocumentPage)
def _list(at: At, asked: ListArguments) -> types.CallToolResult:
    """List the documents of a library, a page at a time, with id, title and file name."""
    library = at.caller.library(Library(asked.library))
    page = documents.list_documents(
        at.services, library, asked.query, asked.cursor, asked.limit, [asked.tag]
    )
    lines = [
        f"{one.doc_id}: {one.title} ({one.filename}, {one.type}, {one.characters} characters"
        f"{_warning(one.flags)})"
        for one in page.documents
    ]
    more = [f"(more with cursor {page.next_cursor})"] if page.next_cursor else []
    return _told("\n".join([*lines, *more]) or "There is no document.", page)


@_tool("Outline of a document", "read", OutlineReply)
def _outline(at: At, asked: OfDocument) -> types.CallToolResult:
    """Return the headings of a document, and where their sections begin."""
    document = at.document(asked)
    headings = at.services.catalog.outline(document.library, document.doc_id)
    found = OutlineReply(
        doc_id=document.doc_id,
        title=document.title,
        characters=document.characters,
        headings=list(headings),
    )
    lines = [f"{'  ' * (one.level - 1)}{one.title} (at {one.start})" for one in found.headings]
    return _told("\n".join(lines) or "It has no headings.", found)


@_tool("Find characters", "read", GrepReply)
def _grep(at: At, asked: GrepArguments) -> types.CallToolResult:
    """Find exact characters in a document: every place, with its line."""
    document = at.document(asked)
    text = at.services.catalog.text(document.library, document.doc_id).text
    spans = [one.span() for one in re.finditer(re.escape(asked.text), text, re.IGNORECASE)]
    places = [
        Place(start=start, end=end, line=_line(text, start, end))
        for start, end in spans[: asked.limit]
    ]
    lines = [f"{one.start} to {one.end}: {one.line}" for one in places]
    found = GrepReply(doc_id=document.doc_id, total=len(spans), places=places)
    return _told("\n".join([f"{found.total} places", *lines]), found)


def _line(text: str, start: int, end: int) -> str:
    """Return the line that holds characters, cut to what stands near them."""
    first = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
    last = text.find("\n", end)
    return text[first : min(len(text) if last < 0 else last, end + _AROUND)]


@_tool("Read a document", "read", ReadReply)
def _read(at: At, asked: ReadArguments) -> types.CallToolResult:
    """Return a document's text, or a part of it."""
    document = at.document(asked)
    end = max(asked.start, min(asked.start + asked.length, document.characters))
    catalog, library = at.services.catalog, document.library
    span = catalog.text(library, document.doc_id, asked.start, end)
    more = f"\n\n(characters {span.start} to {span.end} of {span.length})"
    found = ReadReply(document=document, **asdict(span))
    return _told(f"# {document.title}{_warning(document.flags)}\n\n{span.text}{more}", found)


@_tool("Cite a place", "read", CiteReply)
def _cite(at: At, asked: CiteArguments) -> types.CallToolResult:
    """Return exact characters of a document with title, authors, section, page and address."""
    if not asked.start < asked.end <= asked.start + _MAX_TEXT_CHARACTERS:
        raise InvalidInput(
            f"end {asked.end} must be after start {asked.start}, by at most"
            f" {_MAX_TEXT_CHARACTERS:,} characters"
        )
    document = at.document(asked)
    library, doc_id = document.library, document.doc_id
    span = at.services.catalog.text(library, doc_id, asked.start, asked.end)
    chunks = at.services.catalog.chunks(library, doc_id)
    chunk = next((one for one in chunks if one.start <= asked.start < one.end), None)
    headings = at.services.catalog.outline(library, doc_id)
    above = [one.title for one in headings if one.start <= asked.start]
    found = CiteReply(
        doc_id=doc_id,
        library=library.value,
        title=document.title,
        authors=list(document.authors),
        year=document.year,
        section=above[-1] if above else "",
        page=chunk.page if chunk else None,
        quote=span.text,
        start=span.start,
        end=span.end,
        revision=span.revision,
        view_url=view_of(library, doc_id, span.revision, span.start, span.end),
    )
    where = [*found.authors, found.year, found.section, found.page and f"page {found.page}"]
    return _told(
        f"\u201c{span.text}\u201d ({', '.join(map(str, filter(None, [found.title, *where])))})",
        found,
    )


@_tool("Add a text", "write", IngestResponse)
async def _add(at: At, asked: AddArguments) -> types.CallToolResult:
    """Index a text as a document of a library; a file of the same name is replaced."""
    library = at.caller.library(Library(asked.library))
    name = display_name(asked.filename)
    if at.request is not None:
        changed(at.request, name)

    def accept() -> Job:
        sha256 = at.services.writer.store_original(asked.text.encode("utf-8", "replace"))
        file = UploadedFile(name, source_key(name), sha256)
        return submitted(at.services, IngestPayload(library, (file,), retry=False))

    job = await to_thread.run_sync(accept)
    done = await settled(at.services.jobs, job.id, has_text, at.edge.stopping)
    report = report_of(done.result) if done else None
    if report is None:
        raise Busy(f"job {job.id} goes on; list the documents in a moment", retry_after_s=1)
    (row,) = report.documents
    if row.status == "failed":
        return _failed(f"{row.code}: {row.reason}")
    found = IngestResponse(job_id=job.id, documents=[row])
    return _told(f"{name} is {row.status} as {row.doc_id}", found)


_INSTRUCTIONS = (
    "Two libraries: `public` (encyclopedia articles) and `papers` (the user's own documents). Use"
    " `ask` for a question that wants an answer with checked citations, `search` for passages to"
    " read yourself, `check` to see which sentences of a text the documents hold. `list`,"
    " `outline`, `grep` and `read` find a place without a question, `cite` quotes it. Documents"
    " are resources too."
)


def make_server(edge: AppState, version: str) -> Server[Any]:
    return Server(
        "documind",
        version=version,
        title="DocuMind",
        instructions=_INSTRUCTIONS,
        on_list_tools=lambda context, _: _tools(_at(edge, context)),
        on_call_tool=lambda context, asked: _call(_at(edge, context), asked),
        on_list_resources=lambda context, page: _refused(
            _resources(at := _at(edge, context), page.cursor if page else None), at
        ),
        on_list_resource_templates=lambda *_: _templates(),
        on_read_resource=lambda context, asked: _refused(
            to_thread.run_sync(_resource, at := _at(edge, context), asked.uri), at
        ),
    )


def _at(edge: AppState, context: ServerRequestContext[Any]) -> At:
    """Return where a request works; within this process no key is asked for."""
    request: Request | None = context.request
    return At(edge, ANYONE if request is None else caller_of(request.scope), request)


_PAGE = 100
"""Resources of one page."""
_TEMPLATE = types.ResourceTemplate(
    name="document",
    title="A document's text",
    uri_template="documind://{library}/{doc_id}",
    mime_type="text/plain",
)
_URI = re.compile(r"documind://(public|papers)/([A-Za-z0-9_.-]{1,64})")


async def _resources(at: At, cursor: str | None) -> types.ListResourcesResult:
    """Return a page of the documents of every library that the caller may use.

    A cursor is a library's name and, after a colon, the catalog's own.
    """
    at.caller.require("read", every_library=False)
    libraries = sorted(at.caller.libraries)
    named, _, after = (cursor or libraries[0].value).partition(":")
    if named not in libraries:
        raise InvalidInput(f"cursor {cursor!r} is none of this server")
    library = Library(named)
    found, following = await to_thread.run_sync(
        at.services.catalog.documents, library, "", after or None, _PAGE
    )
    later = libraries[libraries.index(library) + 1 :]
    return types.ListResourcesResult(
        resources=[
            types.Resource(
                name=document.filename or document.doc_id,
                title=document.title,
                uri=f"documind://{library.value}/{document.doc_id}",
                mime_type="text/plain",
            )
            for document in found
        ],
        next_cursor=f"{named}:{following}" if following else later[0].value if later else None,
    )


def _resource(at: At, uri: str) -> types.ReadResourceResult:
    """Return the whole text of a document."""
    at.caller.require("read", every_library=False)
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(f"there is no resource {uri!r}; they are {_TEMPLATE.uri_template}")
    library = at.caller.library(Library(match[1]))
    document = at.services.catalog.document(library, match[2])
    if document.characters > MOST_CHARACTERS:
        raise TooLarge(f"{uri!r} has {document.characters:,} characters; `read` returns parts")
    text = at.services.catalog.text(library, document.doc_id).text
    contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    return types.ReadResourceResult(contents=[contents])


async def _refused(work: Awaitable[_R], at: At) -> _R:
    try:
        return await work
    except DocuMindError as error:
        told = f"{error.code}: {at.caller.heard(error).message}"
        raise MCPError(types.INVALID_PARAMS, told) from error


async def _tools(at: At) -> types.ListToolsResult:
    """Return the tools that the caller may use; they fit on one page."""
    usable = (tool for tool in TOOLS.values() if at.caller.may(tool.scope))
    return types.ListToolsResult(tools=[tool.listing() for tool in usable])


async def _templates() -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[_TEMPLATE])


async def _call(at: At, asked: types.CallToolRequestParams) -> types.CallToolResult:
    """Run a tool. Errors that a model can correct become the tool's error text."""
    tool = TOOLS.get(asked.name)
    if tool is None:
        raise MCPError(
            types.INVALID_PARAMS,
            f"there is no tool {asked.name!r}; the tools are {', '.join(TOOLS)}",
        )
    try:
        at.caller.require(tool.scope, every_library=False)
        return await tool.work(at, tool.arguments.model_validate(asked.arguments or {}))
    except DocuMindError as error:
        return _failed(f"{error.code}: {at.caller.heard(error).message}")
    except ValidationError as error:
        found = (
            f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"
            for one in error.errors()[:20]
        )
        return _failed(f"invalid_input: {'; '.join(found)}")


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
