"""Serve OpenAI's Responses API: one question, one response, nothing kept between them.

An answer is that of chat completions; its citations are `file_citation` annotations.

References:
    https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from app.api.deps import ContextDep, events
from app.api.errors import ANSWERING
from app.api.openai import Completion, host_of, openai_needs, question_of, rest_of, usage_of
from app.api.schemas.openai import (
    FileCitation,
    OutputMessage,
    OutputText,
    ResponseReply,
    ResponseRequest,
    ResponseUsage,
)
from app.api.schemas.questions import QueryResponse
from app.api.streaming import AnswerReply, EventStream, Pump, each, event, finals, stream_problem
from app.core.cancel import CancelToken
from app.core.types import Answer, AnswerEvent, FinalEvent, MetaEvent, TokenEvent

router = APIRouter(prefix="/v1", tags=["openai"])


class Responder:
    """Makes a response, whole or as events; used once."""

    def __init__(self, completion: Completion, instructions: str | None) -> None:
        self._completion = completion
        self._instructions = instructions
        self._id = ""
        self._shown = ""
        self._sent = 0

    def whole(self, answer: Answer) -> bytes:
        self._id = answer.answer_id
        done = self._response(self._message(answer, answer.text), answer)
        return done.model_dump_json(by_alias=True).encode("utf-8", "replace")

    def render(self, item: AnswerEvent) -> bytes:
        match item:
            case MetaEvent():
                self._id = item.answer_id
                begun = self._response()
                message = OutputMessage(id=f"msg_{self._id}", status="in_progress", content=[])
                return (
                    self._event("created", response=begun)
                    + self._event("in_progress", response=begun)
                    + self._event("output_item.added", output_index=0, item=message)
                    + self._part("content_part.added", part=OutputText(text="", annotations=[]))
                )
            case TokenEvent():
                return self._delta(item.text)
            case FinalEvent():
                return self._last(item.answer)
            case _:
                return b""

    def end(self, error: BaseException | None) -> bytes:
        """Return what closes the stream: nothing, or an error."""
        if error is None:
            return b""
        problem = stream_problem(error, self._completion.request_id)
        told = {"code": problem["code"], "message": problem["detail"], "param": None}
        return event("error", {"type": "error", "sequence_number": self._sent, **told})

    def _last(self, answer: Answer) -> bytes:
        lead, missing, text = rest_of(answer, self._shown)
        rest = self._delta(missing) if missing else b""
        message = self._message(answer, text, lead)
        (part,) = message.content
        cited = [
            self._part("output_text.annotation.added", annotation_index=at, annotation=one)
            for at, one in enumerate(part.annotations)
        ]
        return (
            rest
            + b"".join(cited)
            + self._part("output_text.done", text=part.text, logprobs=[])
            + self._part("content_part.done", part=part)
            + self._event("output_item.done", output_index=0, item=message)
            + self._event("completed", response=self._response(message, answer))
        )

    def _delta(self, text: str) -> bytes:
        self._shown += text
        return self._part("output_text.delta", delta=text, logprobs=[])

    def _part(self, name: str, **fields: object) -> bytes:
        """Return an event about the one text of the one message."""
        at = {"item_id": f"msg_{self._id}", "output_index": 0, "content_index": 0}
        return self._event(name, **at, **fields)

    def _event(self, name: str, **fields: object) -> bytes:
        kind, number = f"response.{name}", self._sent
        self._sent += 1
        values = {
            field: value.model_dump(mode="json", by_alias=True)
            if isinstance(value, BaseModel)
            else value
            for field, value in fields.items()
        }
        return event(kind, {"type": kind, "sequence_number": number, **values})

    def _message(self, answer: Answer, text: str, lead: str = "") -> OutputMessage:
        """Return the answer as a message; `lead` was shown before its text."""
        documents = [item.hit.passage.document for item in answer.evidence]
        names = {one.doc_id: one.filename or one.title for one in documents}
        cited = [one.url_citation for one in self._completion.annotations(answer, text, len(lead))]
        citations = [
            FileCitation(
                file_id=one.doc_id,
                filename=names[one.doc_id],
                index=one.start_index,
                **one.model_dump(
                    include=set(FileCitation.model_fields) & set(type(one).model_fields)
                ),
            )
            for one in cited
        ]
        part = OutputText(text=lead + text, annotations=citations)
        return OutputMessage(id=f"msg_{self._id}", status="completed", content=[part])

    def _response(
        self, message: OutputMessage | None = None, answer: Answer | None = None
    ) -> ResponseReply:
        shared, counted = self._completion, usage_of(answer)
        usage = ResponseUsage(
            input_tokens=counted.prompt_tokens,
            output_tokens=counted.completion_tokens,
            total_tokens=counted.total_tokens,
        )
        return ResponseReply(
            id=f"resp_{self._id}",
            created_at=shared.created,
            status="completed" if answer else "in_progress",
            model=shared.model,
            output=[message] if message else [],
            instructions=self._instructions,
            usage=usage if answer else None,
            documind=QueryResponse.of(answer, request_id=shared.request_id) if answer else None,
        )


@router.post(
    "/responses",
    operation_id="openai_response",
    response_model=ResponseReply,
    **openai_needs(
        "ask", *ANSWERING, also=events("The answer; with `stream: true` the events of a response")
    ),
)
async def respond(asked: ResponseRequest, request: Request, context: ContextDep) -> Response:
    """Answer the user's last message from the documents; nothing is kept for a next one."""
    question = await question_of(asked.as_chat(), context)
    responder = Responder(
        Completion(asked.model, host_of(request), context.request_id), asked.instructions
    )
    rag = context.answering()

    def make(cancel: CancelToken) -> Iterator[bytes]:
        steps = rag.stream(question, cancel)
        return each(steps, responder.render) if asked.stream else finals(steps, responder.whole)

    pump = Pump(make, context.edge.streams)
    if asked.stream:
        return EventStream(pump, context.request_id, end=responder.end)
    return AnswerReply(pump)
