"""Send answers as one JSON body or server-sent events; both fold one stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.answer.passage_records import Source
from app.api.pump import Pump, StreamSlots, last_item
from app.api.schemas.answers import QueryResponse
from app.api.services import Answering
from app.api.sse import EventStream, Made, cancel_on_disconnect, each, event
from app.core.types import (
    Answer,
    AnswerEvent,
    FinalEvent,
    MetaEvent,
    Question,
    QuoteEvent,
    ReadingEvent,
    SourcesEvent,
    TokenEvent,
)


async def reply(
    rag: Answering, question: Question, slots: StreamSlots, request_id: str, *, stream: bool
) -> Response:
    """Return the response to a question.

    A search without an answer is quick and runs in the loop's own pool (0.24 ms there and back;
    FastAPI's takes 0.33). Everything else may wait for a model: it runs in a thread of its own, so
    that answers use up no pool, and stops when the client leaves.

    Raises:
        Busy: As many answers as are allowed are being written.
    """
    if question.retrieve_only and not stream:
        found = await asyncio.to_thread(lambda: body(rag.answer(question), request_id))
        return Response(found, media_type="application/json")
    if stream:
        return EventStream(
            Pump(
                lambda cancel: each(
                    rag.stream(question, cancel), lambda item: render(item, request_id)
                ),
                slots,
            ),
            request_id,
        )
    return AnswerReply(
        Pump(
            lambda cancel: finals(
                rag.stream(question, cancel), lambda answer: body(answer, request_id)
            ),
            slots,
        )
    )


def finals(events: Iterator[AnswerEvent], make: Callable[[Answer], Made]) -> Iterator[Made]:
    """Yield only the final answer's reply.

    A reply in one piece need not wake the event loop for every token.
    """
    with closing(
        each(events, lambda item: make(item.answer) if isinstance(item, FinalEvent) else None)
    ) as found:
        yield from (made for made in found if made is not None)


class AnswerReply(Response):
    """A JSON answer that is given up when the client leaves before it is ready."""

    def __init__(self, pump: Pump[bytes]) -> None:
        """Bind a pump that yields the body and has not started."""
        super().__init__()
        self._pump = pump

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the final event and send it."""
        watcher = asyncio.create_task(cancel_on_disconnect(receive, self._pump.cancel))
        try:
            found = await last_item(self._pump)
        finally:
            watcher.cancel()
        if found is not None:
            await Response(found, media_type="application/json")(scope, receive, send)


def body(answer: Answer, request_id: str) -> bytes:
    """Return a QueryResponse as UTF-8 JSON."""
    return to_json(QueryResponse.of(answer, request_id=request_id))


def render(item: AnswerEvent, request_id: str) -> bytes:
    """Return the server-sent event of one step of an answer."""
    match item:
        case MetaEvent():
            return event(
                "meta",
                {
                    "answer_id": item.answer_id,
                    "conversation_id": item.conversation_id,
                    "generator": item.generator,
                    "embedder": item.embedder,
                    "request_id": request_id,
                },
            )
        case SourcesEvent():
            return event(
                "sources",
                {"sources": [Source.of(evidence).json_values() for evidence in item.evidence]},
            )
        case QuoteEvent():
            return event("quote", asdict(item.quote))
        case ReadingEvent():
            return event(
                "reading",
                {
                    "model": item.model,
                    "tokens": item.tokens,
                    "seconds": item.seconds,
                    "part": item.part,
                    "parts": item.parts,
                    "waits_for": item.waits_for,
                },
            )
        case TokenEvent():
            return event("token", {"text": item.text})
        case FinalEvent():
            return event(
                "final", QueryResponse.of(item.answer, request_id=request_id).json_values()
            )
