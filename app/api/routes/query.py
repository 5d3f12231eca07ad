"""Questions, chats, and search without an answer."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api.answers import reply
from app.api.contract import events
from app.api.deps import AtDoor, AtEdge, Composition
from app.api.errors import declared
from app.api.schemas.answers import QueryResponse
from app.api.schemas.documents import Highlight, SearchHit, SearchResponse
from app.api.schemas.query import ChatRequest, QueryRequest, SearchQuery
from app.api.services import ServicePort
from app.core.languages import DEFAULT
from app.core.spans import ended_with_block
from app.core.text import tokenise
from app.core.trace import Trace
from app.core.types import Hit, Library, Scope
from app.retrieval.merge import merge
from app.retrieval.request import Retrieval, SearchRequest

router = APIRouter(prefix="/api/v1", tags=["questions"])

_PROVIDER = (
    "model_not_installed",
    "provider_unreachable",
    "provider_timeout",
    "provider_bad_response",
)
_EVENT_STREAM = events(
    "The answer; with `stream: true` server-sent events: meta, sources, token (any number), then"
    " final or error"
)
_WORD = re.compile(r"[^\W_]+")


@router.post(
    "/query",
    operation_id="query",
    response_model=QueryResponse,
    responses={**_EVENT_STREAM, **declared(*_PROVIDER, "not_found", "index_damaged", "disk_full")},
)
async def query(asked: QueryRequest, door: AtDoor) -> Response:
    """Answer a question from the documents, with citations that can be checked."""
    library = await door.asked(asked.library, asked.conditions().doc_ids)
    question = asked.to_question(library, door.edge.settings.flare_active_retrieval)
    return await reply(
        door.answering(), question, door.edge.streams, door.request_id, stream=asked.stream
    )


@router.post(
    "/chat",
    operation_id="chat",
    response_model=QueryResponse,
    responses={**_EVENT_STREAM, **declared(*_PROVIDER, "not_found", "index_damaged", "disk_full")},
)
async def chat(asked: ChatRequest, door: AtDoor) -> Response:
    """Answer a turn of a conversation that the server remembers."""
    library = await door.asked(asked.library, asked.conditions().doc_ids)
    question = asked.question_of(
        asked.message,
        library=library,
        flare=door.edge.settings.flare_active_retrieval,
        history=(),
        conversation_id=await asyncio.to_thread(
            door.services.memory.open, asked.conversation_id, library, asked.message
        ),
    )
    return await reply(
        door.answering(), question, door.edge.streams, door.request_id, stream=asked.stream
    )


@router.get(
    "/search",
    operation_id="search",
    response_model=SearchResponse,
    responses=declared("index_damaged"),
)
def search(
    services: Composition, edge: AtEdge, asked: Annotated[SearchQuery, Query()]
) -> SearchResponse:
    """Rank passages, with the matched words marked; nothing is written about them."""
    library = edge.asked(services, asked.library, asked.doc_ids)
    found = _search(services, library, asked)
    return SearchResponse(
        query=asked.q,
        library=library,
        hits=[_hit(hit, asked.q) for hit in found.hits],
        notices=list(found.notices),
    )


def _search(services: ServicePort, scope: Scope, asked: SearchQuery) -> Retrieval:
    """Search one library, or both and merge."""
    libraries = list(Library) if scope == "all" else [Library(scope)]
    filters = asked.conditions()
    with ended_with_block(services.spans.begin("search", {"documind.library": scope})) as span:
        trace = Trace(span=span)
        found = {
            library: services.retriever.retrieve(
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
    return merge(found, asked.limit) if len(found) > 1 else next(iter(found.values()))


def _hit(hit: Hit, query: str) -> SearchHit:
    """Return a hit with the words that share a stem with the query marked."""
    text, language = hit.passage.chunk.text, hit.passage.document.language or DEFAULT
    stems = frozenset(tokenise(query, language))
    marked = tuple(
        Highlight(start=start, end=end) for start, end in highlights(text, stems, language)
    )
    return SearchHit.of_hit(hit, type=hit.passage.document.type, text=text, highlights=marked)


def highlights(text: str, stems: frozenset[str], language: str = DEFAULT) -> list[tuple[int, int]]:
    """Return spans of words whose stem in a language is in `stems`.

    In a run of CJK, spans of the characters that match.
    """
    known: dict[str, list[tuple[int, int]]] = {}
    spans: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word not in known:
            known[word] = _matches(word, stems, language)
        spans.extend((match.start() + start, match.start() + end) for start, end in known[word])
    return spans


def _matches(word: str, stems: frozenset[str], language: str) -> list[tuple[int, int]]:
    """Return the matching spans of one word: all of it, or its matching bigrams.

    Bigrams if it is a run without spaces.
    """
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
