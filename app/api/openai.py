"""Serve OpenAI's chat API; each library is a model.

`documind-public`, `documind-papers`, `documind-all`. An answer is the same as of /api/v1/query:
`RAGService.stream`, folded into OpenAI's shapes. Every citation that was verified is a
`url_citation` annotation that leads to the exact characters. A stream cannot take words back, so
its last chunk carries the annotations of what was shown and, under `documind`, the guarded answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.answers import AnswerReply, finals
from app.api.contract import events
from app.api.deps import AtDoor, AtEdge
from app.api.errors import status_of_code
from app.api.openai_completion import Chunks, Completion
from app.api.pump import Pump
from app.api.schemas.openai import ChatCompletion, ChatCompletionRequest, Model, ModelPage, OpenAIErrorReply
from app.api.sse import EventStream, each
from app.core.errors import NotFound
from app.core.types import Question, Scope, Strategy

router = APIRouter(prefix="/v1", tags=["openai"])

MODELS: Mapping[str, Scope] = {"documind-public": "public", "documind-papers": "papers", "documind-all": "all"}


def _errors(*codes: str) -> dict[int | str, dict[str, object]]:
    """Return OpenAPI `responses` for errors in OpenAI's shape."""
    failures = {status_of_code(code) for code in (*codes, "busy")}
    refused: dict[int | str, dict[str, object]] = {"4XX": {"model": OpenAIErrorReply, "description": "Refused"}}
    return {**refused, **{status: {"model": OpenAIErrorReply} for status in sorted(failures) if status >= 500}}


_PROVIDER = ("model_not_installed", "provider_unreachable", "provider_timeout", "provider_bad_response")


@router.get("/models", operation_id="openai_models", response_model=ModelPage, responses=_errors())
def models(edge: AtEdge) -> ModelPage:
    """The libraries, as models."""
    return ModelPage(data=[_model(name, edge.uptime_s()) for name in MODELS])


@router.get("/models/{model}", operation_id="openai_model", response_model=Model, responses=_errors("not_found"))
def model(edge: AtEdge, model: str) -> Model:
    """One library, as a model."""
    _scope_of(model)
    return _model(model, edge.uptime_s())


@router.post(
    "/chat/completions",
    operation_id="openai_chat_completion",
    response_model=ChatCompletion,
    responses={
        **events("The answer; with `stream: true` server-sent events of chat.completion.chunk, then [DONE]"),
        **_errors(*_PROVIDER, "not_found", "index_damaged", "disk_full"),
    },
)
async def chat_completion(asked: ChatCompletionRequest, request: Request, door: AtDoor) -> Response:
    """Answer the last message of the user from the documents."""
    scope = _scope_of(asked.model)
    text, history = asked.question()
    strategy: Strategy = "flare" if door.edge.settings.flare_active_retrieval else "baseline"
    question = Question(text=text, library=scope, strategy=strategy, history=history, trace="none")
    shown = Completion(asked.model, str(request.base_url).rstrip("/"), door.request_id)

    rag = door.answering()
    if not asked.stream:
        return AnswerReply(Pump(lambda cancel: finals(rag.stream(question, cancel), shown.whole), door.edge.streams))
    chunks = Chunks(shown, usage=asked.stream_options is not None and asked.stream_options.include_usage)
    pump = Pump(lambda cancel: each(rag.stream(question, cancel), chunks.render), door.edge.streams)
    return EventStream(pump, door.request_id, end=chunks.end)


def _scope_of(model: str) -> Scope:
    """Return what a model's name stands for.

    Raises:
        NotFound: It is none of ours.
    """
    if model not in MODELS:
        raise NotFound(f"there is no model {model!r}; the models here are {', '.join(MODELS)}")
    return MODELS[model]


def _model(name: str, uptime_s: float) -> Model:
    return Model(id=name, created=int(time.time() - uptime_s))
