"""Serve OpenAI's chat API; each library is a model.

`documind` (the default of questions), `documind-public`, `documind-papers`, `documind-all`. An
answer is the same as of /api/v1/query: `RAGService.stream`, folded into OpenAI's shapes by
`app.api.completions`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.answer.completion import Completions, needs_model
from app.api.answers import AnswerReply, finals
from app.api.chat_tasks import ChatTask, plain_reply, task_of
from app.api.completions import Chunks, Completion
from app.api.contract import events
from app.api.deps import AtDoor, AtEdge, Door
from app.api.errors import status_of_code
from app.api.pump import Pump
from app.api.schemas.openai import (
    ChatCompletion,
    ChatCompletionRequest,
    Model,
    ModelPage,
    OpenAIErrorReply,
)
from app.api.sse import EventStream, each
from app.core.cancel import CancelToken
from app.core.errors import NotFound
from app.core.types import (
    Answer,
    Message,
    Question,
    Scope,
    Strategy,
)

router = APIRouter(prefix="/v1", tags=["openai"])

MODELS: Mapping[str, Scope | None] = {
    "documind": None,
    "documind-public": "public",
    "documind-papers": "papers",
    "documind-all": "all",
}


def _errors(*codes: str) -> dict[int | str, dict[str, object]]:
    """Return OpenAPI `responses` for errors in OpenAI's shape."""
    failures = {status_of_code(code) for code in (*codes, "busy")}
    refused: dict[int | str, dict[str, object]] = {
        "4XX": {"model": OpenAIErrorReply, "description": "Refused"}
    }
    return {
        **refused,
        **{status: {"model": OpenAIErrorReply} for status in sorted(failures) if status >= 500},
    }


_PROVIDER = (
    "model_not_installed",
    "provider_unreachable",
    "provider_timeout",
    "provider_bad_response",
)


@router.get("/models", operation_id="openai_models", response_model=ModelPage, responses=_errors())
def models(edge: AtEdge) -> ModelPage:
    """The libraries, as models."""
    return ModelPage(data=[_model(name, edge.uptime_s()) for name in MODELS])


@router.get(
    "/models/{model}",
    operation_id="openai_model",
    response_model=Model,
    responses=_errors("not_found"),
)
def model(edge: AtEdge, model: str) -> Model:
    """One library, as a model."""
    _scope_of(model)
    return _model(model, edge.uptime_s())


@router.post(
    "/chat/completions",
    operation_id="openai_chat_completion",
    response_model=ChatCompletion,
    responses={
        **events(
            "The answer; with `stream: true` server-sent events of chat.completion.chunk, then"
            " [DONE]"
        ),
        **_errors(*_PROVIDER, "not_found", "index_damaged", "disk_full"),
    },
)
async def chat_completion(asked: ChatCompletionRequest, request: Request, door: AtDoor) -> Response:
    """Answer the user's last message from the documents.

    Titles and tags of chat programs are answered as such.
    """
    named = _scope_of(asked.model)
    task = task_of(asked.last_words())
    if task is not None:
        return await chat_task(task, asked, door)
    text, history = asked.question()
    strategy: Strategy = "flare" if door.edge.settings.flare_active_retrieval else "baseline"
    question = Question(
        text=text,
        library=await door.asked(named),
        strategy=strategy,
        history=history,
        trace="none",
        wishes=asked.wishes(),
    )
    host = f"{request.url.scheme}://{request.url.netloc}"
    shown = Completion(asked.model, host, door.request_id)
    schema = asked.response_format.schema_wanted() if asked.response_format else None
    if schema is not None and not await asyncio.to_thread(door.services.completions.can_write):
        raise needs_model()

    rag, chunks = door.answering(), Chunks(shown, usage=asked.wants_usage())

    def make(cancel: CancelToken) -> Iterator[bytes]:
        steps = rag.stream(question, cancel)
        if schema is not None:
            shape = _shaped(
                shown, door.services.completions, schema, chunks if asked.stream else None
            )
            return finals(steps, lambda answer: shape(answer, cancel))
        return each(steps, chunks.render) if asked.stream else finals(steps, shown.whole)

    pump = Pump(make, door.edge.streams)
    return EventStream(pump, door.request_id, end=chunks.end) if asked.stream else AnswerReply(pump)


def _shaped(
    shown: Completion, completions: Completions, schema: Mapping[str, object], chunks: Chunks | None
) -> Callable[[Answer, CancelToken], bytes]:
    """Return a function that makes a JSON reply of an answer; `chunks`: for a stream."""

    def shape(answer: Answer, cancel: CancelToken) -> bytes:
        content = completions.structured(answer, schema, cancel)
        return shown.whole(answer, content) if chunks is None else chunks.at_once(answer, content)

    return shape


async def chat_task(task: ChatTask, asked: ChatCompletionRequest, door: Door) -> Response:
    """Answer a chat program's own request by the model, or with a plain reply."""
    library = asked.model.removeprefix("documind-").capitalize()
    shown = Completion(asked.model, "", door.request_id)
    messages = [
        Message("system" if one.role == "system" else "user", one.plain())
        for one in asked.messages
        if one.plain()
    ]

    def make(cancel: CancelToken) -> Iterator[bytes]:
        content = door.services.completions.reply(messages, cancel) or plain_reply(
            task, asked.last_words(), library
        )
        yield (
            Chunks(shown, usage=False).at_once(None, content)
            if asked.stream
            else shown.whole(None, content)
        )

    pump = Pump(make, door.edge.streams)
    return (
        EventStream(pump, door.request_id, end=Chunks(shown, usage=False).end)
        if asked.stream
        else AnswerReply(pump)
    )


def _scope_of(model: str) -> Scope | None:
    """Return the libraries that a model's name stands for; None: the default of questions.

    Raises:
        NotFound: It is none of ours.
    """
    if model not in MODELS:
        raise NotFound(f"there is no model {model!r}; the models here are {', '.join(MODELS)}")
    return MODELS[model]


def _model(name: str, uptime_s: float) -> Model:
    return Model(id=name, created=int(time.time() - uptime_s))
