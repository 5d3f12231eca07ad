"""Questions, chats, search; conversations, stored answers, suggestions; checks of texts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from app.answer.checking import Watch
from app.answer.records import answer_set
from app.api.deps import Composition, ContextDep, RequestContext, events, files, needs, needs_all
from app.api.errors import ANSWERING, PROVIDER, declared
from app.api.schemas.base import DocId
from app.api.schemas.questions import (
    MOST_CHARACTERS,
    AnswerList,
    Branch,
    ChatRequest,
    CheckRequest,
    Conversation,
    ConversationList,
    ConversationSummary,
    FeedbackReply,
    FeedbackRequest,
    FileText,
    FilterValues,
    Forgotten,
    Highlight,
    NewConversation,
    QueryOptions,
    QueryRequest,
    QueryResponse,
    Rename,
    SearchHit,
    SearchQuery,
    SearchResponse,
    StoredAnswer,
    SuggestionList,
    TextToCheck,
)
from app.api.streaming import EventStream, PlacedWork, event, reply
from app.api.uploads import UploadReceiver, form_of, received
from app.check_report import ReportForm, written
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, NotFound, TooLarge
from app.core.languages import DEFAULT
from app.core.normalisation import normalise
from app.core.ports import Parser
from app.core.serialization import adapter, from_json, json_values
from app.core.text import tokenise
from app.core.trace import Trace, ended_with_block
from app.core.types import CheckReport, Filters, Hit, Library, Question, Scope
from app.ingest.names import display_name
from app.retrieval.request import Retrieval, SearchRequest
from app.retrieval.retrievers import merge

router = APIRouter(prefix="/api/v1", tags=["questions"], responses=declared())

_ANSWERED = events(
    "The answer; with `stream: true` server-sent events: meta, sources, token (any number),"
    " then final or error"
)
_WORD = re.compile(r"[^\W_]+")


@router.post("/query", response_model=QueryResponse, **needs("ask", *ANSWERING, also=_ANSWERED))
async def query(asked: QueryRequest, context: ContextDep) -> Response:
    """Answer a question from the documents, with citations that can be checked."""
    library = await context.asked(asked.library, asked.conditions().doc_ids)
    question = asked.to_question(library, context.edge.settings.flare_active_retrieval)
    return await _answered(context, asked, question)


@router.post("/chat", response_model=QueryResponse, **needs_all("ask", *ANSWERING, also=_ANSWERED))
async def chat(asked: ChatRequest, context: ContextDep) -> Response:
    """Answer a turn of a conversation that the server remembers."""
    library = await context.asked(asked.library, asked.conditions().doc_ids)
    question = asked.question_of(
        asked.message,
        library=library,
        flare=context.edge.settings.flare_active_retrieval,
        conversation_id=await asyncio.to_thread(
            context.services.memory.open, asked.conversation_id, library, asked.message
        ),
    )
    question = replace(question, replaces=asked.replaces, begun=normalise(asked.begun)[0])
    return await _answered(context, asked, question)


async def _answered(context: RequestContext, asked: QueryOptions, question: Question) -> Response:
    if asked.filters.collection:
        question = await asyncio.to_thread(collected, context, asked.filters, question)
    return await reply(
        context.answering(), question, context.edge.streams, context.request_id, stream=asked.stream
    )


def collected(context: RequestContext, asked: FilterValues, question: Question) -> Question:
    """Return a question under the saved filter that it names; see `with_saved`."""
    return replace(question, filters=with_saved(context, asked, question.filters))


def with_saved(context: RequestContext, asked: FilterValues, filters: Filters) -> Filters:
    """Return filters laid over the saved one that they name.

    Raises:
        NotFound: There is none of this name.
    """
    if not asked.collection:
        return filters
    return filters.over(context.services.store.labels.collection(asked.collection))


@router.get("/search", **needs("read", "index_damaged"))
def search(context: ContextDep, asked: Annotated[SearchQuery, Query()]) -> SearchResponse:
    """Rank passages, with the matched words marked; nothing is written about them."""
    library = context.scope(asked.library, asked.doc_ids)
    found = ranked(context, library, asked)
    return SearchResponse(
        query=asked.q,
        library=library,
        hits=[_hit(hit, asked.q) for hit in found.hits],
        notices=list(found.notices),
    )


def ranked(context: RequestContext, scope: Scope, asked: SearchQuery) -> Retrieval:
    """Search one library, or both and merge."""
    services, libraries = context.services, list(Library) if scope == "all" else [Library(scope)]
    filters = with_saved(context, asked, asked.conditions())
    with ended_with_block(services.spans.begin("search", {"documind.library": scope})) as span:
        trace = Trace(span=span)
        found = {
            library: services.libraries.retrieve(
                SearchRequest(
                    asked.q,
                    library,
                    top_k=asked.limit,
                    filters=filters,
                    fusion=asked.fusion,
                    rerank=asked.rerank,
                    keep_weak=True,
                ),
                trace,
            )
            for library in libraries
        }
    return merge(found, asked.limit)


def _hit(hit: Hit, query: str) -> SearchHit:
    """Return a hit with the words that share a stem with the query marked."""
    text, language = hit.passage.chunk.text, hit.passage.document.language or DEFAULT
    stems = frozenset(tokenise(query, language))
    marked = tuple(
        Highlight(start=start, end=end) for start, end in highlights(text, stems, language)
    )
    document = hit.passage.document
    return SearchHit.of_hit(hit, type=document.type, text=text, highlights=marked)


def highlights(text: str, stems: frozenset[str], language: str = DEFAULT) -> list[tuple[int, int]]:
    """Return spans of words whose stem is in `stems`; in a run of CJK, of matching characters."""
    known: dict[str, list[tuple[int, int]]] = {}
    spans: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word not in known:
            known[word] = _matches(word, stems, language)
        spans.extend((match.start() + start, match.start() + end) for start, end in known[word])
    return spans


def _matches(word: str, stems: frozenset[str], language: str) -> list[tuple[int, int]]:
    """Return matching spans of a word: all of it, or the bigrams of a run without spaces."""
    tokens = tokenise(word, language)
    if len(tokens) <= 1:
        return [(0, len(word))] if tokens and tokens[0] in stems else []
    spans: list[tuple[int, int]] = []
    for token in tokens:
        at = word.find(token) if token in stems else -1
        if at >= 0 and spans and at <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], at + len(token)))
        elif at >= 0:
            spans.append((at, at + len(token)))
    return spans


conversations_router = APIRouter(prefix="/api/v1", tags=["conversations"], responses=declared())

GRACE_S = 10.0
"""In which a deleted conversation can be brought back, unless the request says otherwise."""
Grace = Annotated[
    float, Query(ge=0, le=86400, description="seconds during which it can be restored")
]
Identity = Annotated[str, Path(min_length=1, max_length=64)]


@conversations_router.get("/conversations", **needs_all("read"))
def list_conversations(
    services: Composition, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> ConversationList:
    """Conversations, newest first, without their turns."""
    found = services.store.conversations.list(limit)
    return ConversationList(
        conversations=[ConversationSummary.model_validate(one) for one in found]
    )


@conversations_router.post("/conversations", status_code=201, **needs_all("ask", "disk_full"))
def create_conversation(services: Composition, new: NewConversation) -> Conversation:
    """Begin a conversation; chatting without an id begins one too."""
    return Conversation.model_validate(
        services.store.conversations.get(
            services.store.conversations.create(new.title, new.library)
        )
    )


@conversations_router.get("/conversations/{conversation_id}", **needs_all("read", "not_found"))
def get_conversation(services: Composition, conversation_id: Identity) -> Conversation:
    """One conversation with its turns; a question without an answer was broken off."""
    return Conversation.model_validate(services.store.conversations.get(conversation_id))


@conversations_router.patch(
    "/conversations/{conversation_id}", **needs_all("ask", "not_found", "disk_full")
)
def rename_conversation(
    services: Composition, conversation_id: Identity, rename: Rename
) -> Conversation:
    """Give a conversation another title."""
    services.store.conversations.rename(conversation_id, rename.title)
    return Conversation.model_validate(services.store.conversations.get(conversation_id))


@conversations_router.put(
    "/conversations/{conversation_id}/branch", **needs_all("ask", "not_found", "disk_full")
)
def show_branch(services: Composition, conversation_id: Identity, branch: Branch) -> Conversation:
    """Show the newest branch that has an answer; the next question goes on from there."""
    services.store.conversations.show(conversation_id, branch.answer_id)
    return Conversation.model_validate(services.store.conversations.get(conversation_id))


@conversations_router.delete("/conversations", **needs_all("admin", "disk_full"))
def forget_conversations(services: Composition) -> Forgotten:
    """Forget every conversation."""
    return Forgotten(forgotten=services.store.conversations.delete_all())


@conversations_router.delete(
    "/conversations/{conversation_id}", **needs_all("ask", "not_found", "disk_full")
)
def forget_conversation(
    services: Composition, conversation_id: Identity, grace_s: Grace = GRACE_S
) -> Forgotten:
    """Hide a conversation at once, and forget it after the grace period."""
    forgotten = services.store.conversations.delete(conversation_id, grace_s)
    if not forgotten:
        raise NotFound(f"no conversation {conversation_id!r}")
    return Forgotten(forgotten=forgotten)


@conversations_router.post(
    "/conversations/{conversation_id}/restore", **needs_all("ask", "not_found", "disk_full")
)
def restore_conversation(services: Composition, conversation_id: Identity) -> Conversation:
    """Undo the deletion of a conversation within its grace."""
    services.store.conversations.restore(conversation_id)
    return Conversation.model_validate(services.store.conversations.get(conversation_id))


@conversations_router.get("/answers", **needs_all("read"))
def list_answers(
    services: Composition, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> AnswerList:
    """Stored answers, newest first; without their text and trace."""
    return AnswerList.of(services.store.answers.list(limit))


@conversations_router.get("/answers/{answer_id}", **needs_all("read", "not_found"))
def get_answer(context: ContextDep, answer_id: Identity) -> StoredAnswer:
    """A stored answer with its full trace."""
    kept = context.services.store.answers.get(answer_id)
    return from_json(StoredAnswer, {**kept, "request_id": context.request_id})


@conversations_router.post(
    "/answers/{answer_id}/feedback", **needs_all("ask", "not_found", "disk_full")
)
def give_feedback(
    services: Composition, answer_id: Identity, feedback: FeedbackRequest
) -> FeedbackReply:
    """Rate an answer, say why, and name the passage that would have been right.

    The newest rating replaces older ones.
    """
    given: dict[str, object] = feedback.model_dump(exclude_none=True)
    services.store.answers.add_feedback(answer_id, given)
    return FeedbackReply(answer_id=answer_id, feedback=given)


@conversations_router.delete("/answers", **needs_all("admin", "disk_full"))
def forget_answers(services: Composition) -> Forgotten:
    """Forget every stored answer, with its question, trace and feedback."""
    return Forgotten(forgotten=services.store.answers.delete())


@conversations_router.get(
    "/feedback",
    response_class=Response,
    **needs_all("read", also=files("JSON lines", ["application/x-ndjson"])),
)
def export_feedback(
    services: Composition,
    limit: Annotated[int, Query(ge=1, le=100_000, description="answers, newest first")] = 100_000,
) -> Response:
    """Export ratings of answers as JSON Lines for `documind evaluate answers`."""
    return Response(
        answer_set(services.store.answers.list(limit, with_feedback=True)),
        media_type="application/x-ndjson",
    )


@conversations_router.get("/suggestions", **needs("read", "not_found"))
def suggestions(
    context: ContextDep,
    n: Annotated[int, Query(ge=1, le=20)] = 4,
    doc_id: DocId | None = None,
    library: Annotated[Scope | None, Query(description="default: DEFAULT_LIBRARY")] = None,
) -> SuggestionList:
    """Example questions for what is indexed, each of which has an answer there."""
    found = context.services.suggester.suggest(context.scope(library), n, doc_id)
    return SuggestionList(suggestions=list(found))


checks_router = APIRouter(prefix="/api/v1", tags=["questions"], **needs("ask"))

_FORM = form_of(file={"type": "string", "format": "binary"})
_MEDIA: dict[ReportForm, tuple[str, str]] = {
    "markdown": ("text/markdown", "md"),
    "html": ("text/html", "html"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
}


_TOLD = events("the report; with `stream`, server-sent events: `progress`, `report`, `final`")


@checks_router.post(
    "/check",
    response_model=CheckReport,
    responses={**_TOLD, **declared("index_damaged", *PROVIDER)},
)
async def check(request: Request, asked: CheckRequest, context: ContextDep) -> Response:
    """Check every sentence of a text against documents, or against another text.

    Nothing is stored. Few checks run at once: over that, and after a wait, the reply is `busy`.
    """
    places = context.edge.checks
    if asked.stream:
        work = partial(_checked_aloud, context, asked)
        return EventStream(PlacedWork(places, work), context.request_id)

    def silent(cancel: CancelToken) -> Response:
        body = adapter(CheckReport).dump_json(checked(context, asked, cancel))
        return Response(body, media_type="application/json")

    return await places.run(silent, request.receive)


def checked(
    context: RequestContext,
    asked: TextToCheck,
    cancel: CancelToken,
    tell: Callable[[str, object], None] = lambda *_: None,
) -> CheckReport:
    """Return the checked text.

    Args:
        context: Who asks, and the services.
        asked: The text, and what it is held against.
        cancel: Ends it between sentences, and the calls of the judge.
        tell: Is given the events `progress` and `report`.
    """
    checker, judge = context.services.checker, context.services.judge

    def watched(by: str) -> Watch:
        def watch(done: int, of: int) -> None:
            cancel.raise_if_cancelled()
            tell("progress", {"done": done, "of": of, "by": by})

        return watch

    read = watched("reader")
    if asked.against is not None:
        report = checker.against(asked.text, asked.against, read)
        if asked.library is not None:
            report = checker.with_better(report, context.scope(asked.library))
    else:
        report = checker.in_libraries(asked.text, context.scope(asked.library), read)
    cancel.raise_if_cancelled()
    if judge.speaks(asked.judge, asked.check_by):
        tell("report", json_values(report))
    return judge.on_report(
        report, cancel, model=asked.judge, by=asked.check_by, watch=watched("model")
    )


def _checked_aloud(
    context: RequestContext, asked: TextToCheck, cancel: CancelToken, send: Callable[[bytes], None]
) -> bytes:
    report = checked(context, asked, cancel, lambda name, data: send(event(name, data)))
    return event("final", json_values(report))


@checks_router.post(
    "/check/text",
    operation_id="readText",
    openapi_extra=_FORM,
    responses=declared(
        "unsupported_type", "encrypted", "no_text_layer", "unreadable", "too_large", "disk_full"
    ),
)
async def read_text(  # async: the body is read as it arrives
    request: Request, context: ContextDep
) -> FileText:
    """Return the text of a file to check, of any format that is read; store nothing."""
    async with received(request, context.edge.settings) as (receiver, rest):
        work = partial(_read, receiver, rest, context.services.parser)
        return await context.edge.checks.run(work, request.receive)


@checks_router.post(
    "/check/report",
    operation_id="checkReport",
    response_class=Response,
    responses=files("the report as a file", dict(_MEDIA.values())),
)
def check_report(
    report: CheckReport, kind: Annotated[ReportForm, Query(alias="format")] = "markdown"
) -> Response:
    """Return a checked text as a report for reading: Markdown, a page, or Word with comments."""
    media, ending = _MEDIA[kind]
    return Response(
        written(json_values(report), kind),
        media_type=media,
        headers={"Content-Disposition": f'attachment; filename="check.{ending}"'},
    )


def _read(receiver: UploadReceiver, rest: bytes, parser: Parser, cancel: CancelToken) -> FileText:
    receiver.feed(rest)
    sent = receiver.finish().files
    if len(sent) > 1:
        raise InvalidInput(f"{len(sent)} files were sent; send one at a time")
    name = display_name(sent[0].raw_name)
    text = parser.parse(sent[0].path, name, cancel).text
    if len(text) > MOST_CHARACTERS:
        raise TooLarge(
            f"{name!r} has {len(text):,} characters, at most {MOST_CHARACTERS:,} are checked"
            " at a time; check it in parts"
        )
    return FileText(filename=name, text=text)
